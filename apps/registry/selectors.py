"""Which models a person may see. Reads only."""

from __future__ import annotations

import uuid

from django.db.models import QuerySet

from apps.accounts.models import User
from apps.errors import NotFound
from apps.namespaces.selectors import namespace_for, namespaces_visible, reading_note
from apps.registry.models import Model
from apps.stores import storage
from apps.uploads.manifest import ADDRESS_LIFE
from apps.uploads.selectors import StoredFile


def models_visible(user: User, *, namespace: str | None = None) -> QuerySet[Model]:
    """Complete models of the user's namespaces, or of one of them."""
    complete = (
        Model.objects.select_related("namespace", "job")
        .filter(completed_at__isnull=False, job__deleted_at__isnull=True)
        .defer("job__spec", "job__waiting")
    )
    if namespace:
        return complete.filter(namespace=namespace_for(user, namespace))
    return complete if user.is_staff else complete.filter(namespace__in=namespaces_visible(user))


def model_for(user: User, model_id: uuid.UUID) -> Model:
    """The model, if the user may see it. Unknown, unfinished or foreign: the same 404."""
    found = models_visible(user).filter(pk=model_id).first()
    if found is None:
        raise NotFound()
    reading_note(user, "model", found.pk, found.namespace)
    return found


def model_of_job(job_id: uuid.UUID) -> Model:
    """The newest model that the job has kept. 404 where there is none."""
    found = Model.objects.select_related("namespace", "job").filter(job_id=job_id, completed_at__isnull=False)
    newest = found.order_by("-attempt").first()
    if newest is None:
        raise NotFound(
            "This job has no model.",
            remedy="Files that the script writes to its model directory (paths.model_env) are saved when it exits.",
        )
    return newest


def stored_files(model: Model) -> list[StoredFile]:
    """The model's files and where they lie, by path."""
    files = [StoredFile(one["path"], one["size"], one["sha256"], one["key"]) for one in model.files]
    return sorted(files, key=lambda file: file.path)


def file_address(model: Model, path: str) -> str:
    """A short-lived address of one file of the model. 404 where it has no such file."""
    file = next((one for one in stored_files(model) if one.path == path), None)
    if file is None:
        raise NotFound("This model has no such file.", remedy="Its page lists them.")
    return storage().read_url(file.key, ADDRESS_LIFE, filename=path.rpartition("/")[2])
