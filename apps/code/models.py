"""Code, its versions and files."""

from __future__ import annotations

from django.db import models

from apps.uploads.versioned.models import Collection, Version, VersionFile


class Code(Collection):
    """Training scripts that belong together."""


class CodeVersion(Version):
    """What a job runs."""

    parent = models.ForeignKey(Code, on_delete=models.CASCADE, related_name="versions", db_index=False)


class CodeFile(VersionFile):
    """One file of a version."""

    version = models.ForeignKey(CodeVersion, on_delete=models.CASCADE, related_name="files", db_index=False)
