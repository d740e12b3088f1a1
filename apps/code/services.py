"""Making code and its versions."""

from __future__ import annotations

from apps.accounts.models import User
from apps.code.models import Code, CodeVersion
from apps.code.shelf import CODE
from apps.namespaces.models import Namespace
from apps.uploads.models import Upload
from apps.uploads.versioned import services


def code_create(*, namespace: Namespace, actor: User | None, name: str, upload: Upload, description: str = "") -> Code:
    """Code whose version 1 is the upload's files."""
    return services.collection_create(
        CODE, namespace=namespace, actor=actor, name=name, description=description, upload=upload
    )


def code_version_add(*, code: Code, actor: User | None, upload: Upload, note: str = "") -> CodeVersion:
    """The code's next version."""
    return services.version_add(CODE, code, actor=actor, upload=upload, note=note)
