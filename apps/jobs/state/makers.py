"""Who had a part in a model: who began the attempts of its job, who sent and made the code that they ran, and whose
models went into them.

A later attempt continues from the checkpoint of an earlier one, so that all attempts up to the exporting one count. A
job may be retried by others than its owner, with other code. What is not known any more is an unknown user's.
Not here: what may be done with a model that others had a part in (`apps.jobs.foreign`).
"""

from __future__ import annotations

import uuid
from enum import StrEnum
from typing import Any

from apps.accounts.models import User
from apps.code.models import CodeVersion
from apps.jobs.models import Job, JobAttempt
from apps.registry.models import ModelVersion
from apps.uploads.models import Upload

_MOST_ATTEMPTS = 1_000
"""That are looked at. Of a job with more of them the rest is unknown."""


class Part(StrEnum):
    """What a user did for a model."""

    RUN = "run"
    CODE = "code"
    MODEL = "model"


Makers = set[tuple[Part, uuid.UUID | None]]
"""By whom, and which part. None: by an unknown user."""


def began_by(job: Job, attempt: int) -> User | None:
    """Who began this attempt. None: it is not known."""
    if attempt == 1:
        return job.owner
    row = JobAttempt.objects.select_related("begun_by").filter(job=job, number=attempt).first()
    return None if row is None else row.begun_by


def makers_of(job: Job, attempt: int) -> Makers:
    """Of what this attempt of the job exports."""
    rows = JobAttempt.objects.filter(job=job, number__lte=attempt).order_by("-number")
    found = list(rows.values_list("number", "begun_by", "spec__code", "spec__inputs")[:_MOST_ATTEMPTS])
    makers: Makers = {(Part.RUN, job.owner_id if number == 1 else by) for number, by, _, _ in found}
    if len(found) < attempt:
        makers.add((Part.RUN, None))
    makers |= _made_code({_id(code) for _, _, code, _ in found if code is not None})
    inputs = [one for _, _, _, listed in found if isinstance(listed, list) for one in listed]
    models = [one["model_version"] for one in inputs if isinstance(one, dict) and one.get("model_version")]
    return makers | _made_models({_id(one) for one in models})


def makers_to_json(makers: Makers) -> list[dict[str, Any]]:
    """As a version of a model keeps them, with the names that they have now."""
    names = dict(User.objects.filter(pk__in={user for _, user in makers if user}).values_list("pk", "username"))
    rows = [
        {"part": part.value, "user": None if user is None else str(user), "name": names.get(user) if user else None}
        for part, user in makers
    ]
    return sorted(rows, key=lambda one: (one["part"], one["user"] or ""))


def makers_kept(version: ModelVersion) -> Makers:
    """Those that the version keeps; of one that was exported before they were kept, an unknown user."""
    kept = version.source.get("makers")
    if kept is None:
        return {(Part.RUN, None)}
    return {(Part(one["part"]), uuid.UUID(one["user"]) if one["user"] else None) for one in kept}


def _made_code(ids: set[uuid.UUID | None]) -> Makers:
    """Who made these versions, and who sent their files: a version may be made of another's upload."""
    rows = CodeVersion.objects.filter(pk__in=[one for one in ids if one])
    found = {pk: (by, upload) for pk, by, upload in rows.values_list("pk", "created_by", "upload_id")}
    uploads = Upload.objects.filter(pk__in=[upload for _, upload in found.values()])
    senders = dict(uploads.values_list("pk", "created_by"))
    users = {user for by, upload in found.values() for user in (by, senders.get(upload))}
    return {(Part.CODE, user) for user in (users if len(found) == len(ids) else users | {None})}


def _made_models(ids: set[uuid.UUID | None]) -> Makers:
    """Anyone who had a part in a model has one in what is trained from it."""
    known = {one.pk: one for one in ModelVersion.objects.filter(pk__in=[one for one in ids if one]).only("source")}
    users = {user for one in known.values() for _, user in makers_kept(one)}
    return {(Part.MODEL, user) for user in (users if len(known) == len(ids) else users | {None})}


def _id(value: object) -> uuid.UUID | None:
    """None: the stored specification is damaged."""
    try:
        return uuid.UUID(str(value))
    except ValueError:
        return None
