"""What people do with services: start one, keep it for longer, stop it.

Who may do this is decided here, and which job serves a model; all else: `apps.hosting.services`.
"""

from __future__ import annotations

from datetime import datetime, timedelta

from django.conf import settings
from django.db.models import F
from django.utils import timezone

from apps.accounts.models import User
from apps.hosting import services as hosting
from apps.hosting.services import IdleLimits
from apps.namespaces.models import Role
from apps.namespaces.selectors import require_role
from apps.registry.models import ModelVersion
from apps.serving.models import Service
from yardmaster.job.programs import MODEL_SERVER
from yardmaster.job.spec import DatasetInput, Resources, RoleSpec, Strategy, TrainingSpec
from yardmaster.job.spec import Role as TaskRole

RESTARTS = 2


def service_start(
    *,
    user: User,
    version: ModelVersion,
    idle_limit: timedelta | None = None,
    cpu: float | None = None,
    memory: int | None = None,
    engine: str | None = None,
    accept_never_fits: bool = False,
    confirmed: bool = False,
) -> tuple[Service, bool]:
    """Serve this version. Returns the service and whether it was started now: one that runs already keeps its size.
    Raises what `apps.hosting.services.start` raises."""
    require_role(user, version.parent.namespace, Role.MEMBER)
    limits = _limits()
    limits.checked(idle_limit)
    usual = settings.YARDMASTER_SERVING
    resources = Resources(cpu=cpu or usual["CPU"], memory=memory or usual["MEMORY"])
    first = {"namespace": version.parent.namespace, "idle_seconds": 0, "started_at": timezone.now()}
    service, _ = Service.objects.select_related("job", "version__parent").get_or_create(version=version, defaults=first)
    return hosting.start(
        service, user=user, spec=spec_of(version, resources), limits=limits, idle_limit=idle_limit, engine=engine,
        accept_never_fits=accept_never_fits, confirmed=confirmed, changes={"requests": 0},
    )  # fmt: skip


def spec_of(version: ModelVersion, resources: Resources) -> TrainingSpec:
    """The job that serves this version: one task, whose only input is the model."""
    return TrainingSpec(
        name=f"{version.parent.name[:80]} version {version.number}",
        strategy=Strategy.SERVICE,
        roles={TaskRole.WORKER: RoleSpec(1, resources)},
        code_version=None,
        entry_point="",
        program=MODEL_SERVER,
        options={"name": version.parent.name, "version": str(version.number)},
        inputs=(DatasetInput(None, model_version=version.pk),),
        retries=RESTARTS,
        grace_period=timedelta(seconds=10),
        reclaim_delay=timedelta(0),
    )


def request_note(service: Service, now: datetime) -> None:
    """A request was answered: it is counted, and is use of the service."""
    Service.objects.filter(pk=service.pk).update(requests=F("requests") + 1)
    hosting.use_note(service, now)


def service_stop(*, user: User, service: Service) -> Service:
    """Want it stopped. Not running: nothing changes."""
    require_role(user, service.namespace, Role.MEMBER)
    return hosting.stop(service, user=user)


def service_extend(*, user: User, service: Service, idle_limit: timedelta | None = None) -> Service:
    """Count the time without requests from now, and set its limit where one is given. Raises `Conflict` where it does
    not run."""
    require_role(user, service.namespace, Role.MEMBER)
    return hosting.extend(service, user=user, limits=_limits(), idle_limit=idle_limit)


def _limits() -> IdleLimits:
    usual = settings.YARDMASTER_SERVING
    return IdleLimits(usual["IDLE"], usual["LONGEST_IDLE"], "YARDMASTER_SERVICE_LONGEST_IDLE")
