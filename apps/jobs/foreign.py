"""Models that others made, on an engine that isolates no user from another: there a model runs as the portal's user.
What is in a graph can read and write files, so that an administrator says that this is meant.

Of the portal's own programs that load models alone: what a user's script does with its inputs is the user's.
"""

from __future__ import annotations

from django.conf import settings

from apps.accounts.models import User
from apps.errors import Conflict
from apps.jobs.engines.configured import engine_named
from apps.registry.models import ModelVersion
from yardmaster.job.spec import TrainingSpec

FIELD = "confirm_foreign_model"


class ForeignModel(Conflict):
    """It has to be confirmed that the model of another user is to run as the portal."""

    code = "foreign_model"


def foreign_models(user: User, spec: TrainingSpec, engine: str, *, confirmed: bool) -> list[ModelVersion]:
    """Those of the job that would run as the portal and that others made. Raises `ForeignModel` where there are some
    and that is not confirmed."""
    wanted = [one.model_version for one in spec.inputs if one.model_version is not None] if spec.program else []
    if not wanted or settings.YARDMASTER_LOCAL_ENGINE_FOR_ALL or engine_named(engine).isolates:
        return []
    versions = ModelVersion.objects.filter(pk__in=wanted).select_related("parent__namespace", "created_by")
    found = [one for one in versions if one.created_by_id != user.pk]
    if found and not confirmed:
        first = found[0]
        maker = "A deleted user" if first.created_by is None else first.created_by.username
        raise ForeignModel(
            f"{maker} made version {first.number} of {first.parent.name}, and the engine {engine} isolates no user "
            "from another: what is in the model could read and write all that the portal can.",
            remedy=f"Use an engine that isolates, or confirm it with {FIELD} (--confirm-foreign-model) if you trust "
            "who made it.",
        )
    return found
