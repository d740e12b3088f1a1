"""Models that others made, on an engine that isolates no user from another: there a model runs as the portal's user.
What is in a graph can read and write files, so that an administrator says that this is meant.
"""

from __future__ import annotations

from django.conf import settings

from apps.accounts.models import User
from apps.audit.services import record
from apps.errors import Conflict
from apps.jobs.engines.configured import engine_chosen, engine_named
from apps.registry.models import ModelVersion

FIELD = "confirm_foreign_model"
CODE = "foreign_model"


class ForeignModel(Conflict):
    """It has to be confirmed that the model of another user is to run as the portal."""

    code = CODE


def foreign_model_allow(*, user: User, version: ModelVersion, engine: str | None, confirmed: bool) -> None:
    """Raise `ForeignModel` where this has to be confirmed and was not; write down that it was. Raises as
    `engine_chosen`, too."""
    name = engine_chosen(user, engine)
    if version.created_by_id == user.pk or settings.YARDMASTER_LOCAL_ENGINE_FOR_ALL or engine_named(name).isolates:
        return
    model, maker = version.parent, "a deleted user" if version.created_by is None else version.created_by.username
    if not confirmed:
        raise ForeignModel(
            f"{maker} made version {version.number} of {model.name}, and the engine {name} isolates no user from "
            "another: what is in the model could read and write all that the portal can.",
            CODE,
            remedy=f"Use an engine that isolates, or confirm it with {FIELD} (--confirm-foreign-model) if you trust "
            "who made it.",
        )
    record(
        user, "model_version.run_foreign", f"model_version:{version.pk}", namespace=model.namespace, name=model.name,
        version=version.number, engine=name,
    )  # fmt: skip
