"""Models that others had a part in, on an engine that isolates no user from another: there a model runs as the portal's
user. What is in a graph can read and write files, so that an administrator says that this is meant.

One's own is a model only if one began all attempts of its job, and made their code and the models in their inputs:
every member of a namespace may retry a job of it, with other code.

Of the portal's own programs that load models alone: what a user's script does with its inputs is the user's.
"""

from __future__ import annotations

import uuid
from collections.abc import Iterable

from django.conf import settings

from apps.accounts.models import User
from apps.audit.services import record
from apps.errors import Conflict
from apps.jobs.engines.configured import engine_named
from apps.jobs.models import Job
from apps.jobs.state.makers import Makers, Part, makers_kept, makers_of
from apps.registry.models import ModelVersion
from yardmaster.job.spec import TrainingSpec

FIELD = "confirm_foreign_model"
_WORDS = {Part.RUN: "ran the job that made", Part.CODE: "wrote the code of", Part.MODEL: "had a part in a model in"}
_NAMED = 3
"""Users in one message."""


class ForeignModel(Conflict):
    """It has to be confirmed that a model in which others had a part is to run as the portal."""

    code = "foreign_model"


def foreign_models(user: User, spec: TrainingSpec, engine: str, *, confirmed: bool) -> list[ModelVersion]:
    """Those of the job that would run as the portal and that others had a part in. Raises `ForeignModel` where there
    are some and that is not confirmed."""
    wanted = [one.model_version for one in spec.inputs if one.model_version is not None] if spec.program else []
    if not wanted or settings.YARDMASTER_LOCAL_ENGINE_FOR_ALL or engine_named(engine).isolates:
        return []
    versions = ModelVersion.objects.filter(pk__in=wanted).select_related("parent__namespace", "created_by", "job")
    found = {one: others for one in versions if (others := _others(user, one))}
    if found and not confirmed:
        first = next(iter(found))
        raise ForeignModel(
            f"{_who(found[first], first)}, and the engine {engine} isolates no user from another: what is in the model "
            "could read and write all that the portal can.",
            remedy=f"Use an engine that isolates, or confirm it with {FIELD} (--confirm-foreign-model) if you trust "
            "who made it.",
        )
    return list(found)


def foreign_record(user: User, models: Iterable[ModelVersion], job: Job) -> None:
    """Write down that the user let these run as the portal."""
    for one in models:
        facts = {"name": one.parent.name, "version": one.number, "engine": job.engine, "job": str(job.pk)}
        record(user, "model_version.run_foreign", f"model_version:{one.pk}", namespace=job.namespace, **facts)


def _others(user: User, version: ModelVersion) -> Makers:
    """Who else had a part in it. Of a version that keeps nothing of that, it is read from its job."""
    is_kept = "makers" in version.source or version.job is None
    makers = makers_kept(version) if is_kept else makers_of(version.job, version.attempt)  # type: ignore[arg-type]
    return {(part, by) for part, by in makers | {(Part.RUN, version.created_by_id)} if by != user.pk}


def _who(others: Makers, version: ModelVersion) -> str:
    """`bob wrote the code of version 3 of digits`, with a clause for each part."""
    names = dict(User.objects.filter(pk__in={by for _, by in others if by}).values_list("pk", "username"))
    clauses: list[str] = []
    for part, words in _WORDS.items():
        if users := [by for one, by in others if one is part]:
            what = "it" if clauses else f"version {version.number} of {version.parent.name}"
            clauses.append(f"{_named(users, names)} {words} {what}")
    said = " and ".join(clauses)
    return said[0].upper() + said[1:] if None in {by for _, by in others} else said


def _named(users: list[uuid.UUID | None], names: dict[uuid.UUID, str]) -> str:
    found = sorted(names[by] for by in users if by in names)
    if len(found) < len(users):
        found.append("an unknown user")
    kept = found if len(found) <= _NAMED else [*found[: _NAMED - 1], f"{len(found) - _NAMED + 1} others"]
    return " and ".join(kept)
