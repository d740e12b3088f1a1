"""Code and its versions."""

from __future__ import annotations

from django.db import models

from apps.uploads.versioned.models import Collection, Version


class Code(Collection):
    """Training scripts that belong together."""


class CodeVersion(Version):
    """What a job runs."""

    parent = models.ForeignKey(Code, on_delete=models.CASCADE, related_name="versions", db_index=False)
