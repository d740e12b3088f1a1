"""What people do with sessions of the workbench: start, stop, restart, resize and extend them, and take over a Jupyter.

A session is a job; its start is a launch, and all that stands in a launch's way stands in its. A restart is a stop and
a start: the second comes when the job has ended (`worker`), since there is one task with the files of a Jupyter.
"""

from __future__ import annotations

import hashlib
import uuid
from collections.abc import Mapping, Sequence
from datetime import timedelta
from typing import Any

from django.conf import settings
from django.db import transaction
from django.db.models import QuerySet
from django.utils import timezone

from apps.accounts.models import User
from apps.audit.services import record
from apps.errors import Conflict, Forbidden, Invalid, QuotaExceeded
from apps.hosting import services as hosting
from apps.hosting.selectors import NOT_ENDED
from apps.hosting.services import IdleLimits
from apps.jobs.engines.configured import engine_chosen, engines_for, why_no_spark
from apps.jobs.models import Job
from apps.jobs.selectors import jobs_for
from apps.jobs.services import job_stop_unused
from apps.namespaces.models import Namespace, Role
from apps.namespaces.selectors import require_role
from apps.workbench.access import require_change, require_files, require_own_origin, require_start
from apps.workbench.boards import MOST_JOBS
from apps.workbench.chosen import is_chosen, oldest_drop
from apps.workbench.credentials import token_forget
from apps.workbench.home_keeping import homes_give_up
from apps.workbench.homes import home_taken, homes_of
from apps.workbench.models import Kind, WorkbenchSession
from apps.workbench.packages import requirements_of
from apps.workbench.session_quota import refuse_full, stop_above_quota
from apps.workbench.sizes import size_named
from apps.workbench.spark import AS_BEFORE, Asked, before, spark_of
from apps.workbench.specs import spec_of
from yardmaster.errors import Problem
from yardmaster.job.spec import Strategy
from yardmaster.lifecycle.phases import Phase, Wanted


def limits() -> IdleLimits:
    """How long a session may be unused."""
    found = settings.YARDMASTER_WORKBENCH
    return IdleLimits(found["IDLE"], found["LONGEST_IDLE"], "YARDMASTER_WORKBENCH_LONGEST_IDLE")


def tensorboard_start(
    *, user: User, namespace: Namespace, job_ids: Sequence[uuid.UUID | str] = (), **wanted: Any
) -> tuple[WorkbenchSession, bool]:
    """Start the TensorBoard of these jobs, or of the whole namespace. Returns the session, and whether it was started
    now: one that runs is returned as it is. `wanted` as for `session_start`."""
    require_role(user, namespace, Role.MEMBER)
    return _start_showing(Kind.TENSORBOARD, _jobs_to_show(user, namespace, job_ids), user, namespace, wanted)


def spark_history_start(
    *, user: User, namespace: Namespace, job_ids: Sequence[uuid.UUID | str], **wanted: Any
) -> tuple[WorkbenchSession, bool]:
    """Start Spark's history server over the event logs of these jobs, as `tensorboard_start` does."""
    require_role(user, namespace, Role.MEMBER)
    require_own_origin(Kind.SPARK_HISTORY)
    jobs = _jobs_to_show(user, namespace, job_ids)
    if not jobs:
        message = "A Spark history needs the Spark jobs that it shows."
        raise Invalid([Problem("jobs", "required", message, "Name at least one Spark job.")])
    if other := next((one for one in jobs if one.strategy != Strategy.SPARK.value), None):
        key = str(other.pk)
        raise Invalid([Problem("jobs", "no_spark", f"{other.name} is not a Spark job.", f"Leave out {key}.", key)])
    engine = engine_chosen(user, wanted.get("engine") or _engine_with_spark(user, jobs))
    if missing := why_no_spark(engine):
        raise Conflict(missing, "no_spark", remedy="Choose another engine.")
    return _start_showing(Kind.SPARK_HISTORY, jobs, user, namespace, {**wanted, "engine": engine})


def _engine_with_spark(user: User, jobs: Sequence[Job]) -> str | None:
    """The first of these that has a Spark: the default engine, those of the jobs, all others. None: none has."""
    usable = engines_for(user)
    wished = dict.fromkeys([settings.YARDMASTER_DEFAULT_ENGINE, *(one.engine for one in jobs), *usable])
    return next((one for one in wished if one in usable and not why_no_spark(one)), None)


def _start_showing(
    kind: Kind, jobs: Sequence[Job], user: User, namespace: Namespace, wanted: Mapping[str, Any]
) -> tuple[WorkbenchSession, bool]:
    ids = sorted(str(one.pk) for one in jobs)
    session = _session(namespace, kind, _subject(ids), user, wanted, job_ids=ids)
    return session_start(user=user, session=session, **wanted)


def _jobs_to_show(user: User, namespace: Namespace, job_ids: Sequence[uuid.UUID | str]) -> list[Job]:
    if len(set(job_ids)) > MOST_JOBS:
        message = f"A session shows at most {MOST_JOBS} jobs."
        raise Invalid(
            [Problem("jobs", "too_many", message, "Choose fewer, or all of the namespace.", str(len(job_ids)))]
        )
    jobs = jobs_for(user, job_ids)
    if other := next((one for one in jobs if one.namespace_id != namespace.pk), None):
        message, key = "All jobs of a session must be in one namespace.", str(other.pk)
        raise Invalid([Problem("jobs", "other_namespace", message, f"Leave out {key}.", key)])
    return list(jobs)


def jupyter_start(*, user: User, namespace: Namespace, **wanted: Any) -> tuple[WorkbenchSession, bool]:
    """Start the user's own Jupyter in this namespace, as `tensorboard_start` does."""
    require_role(user, namespace, Role.MEMBER)
    if user.is_service:  # it could not open it, and its token there would have no scopes
        raise Forbidden("A service account cannot have a Jupyter.", "Start it with the account of a person.")
    require_own_origin(Kind.JUPYTER)
    session = _session(namespace, Kind.JUPYTER, f"user:{user.pk}", user, wanted)
    return session_start(user=user, session=session, **wanted)


def session_start(
    *,
    user: User,
    session: WorkbenchSession,
    size: str | None = None,
    idle_limit: timedelta | None = None,
    engine: str | None = None,
    environment: str | None = None,
    spark_executors: int | None = None,
    spark_cluster: str | None = None,
    spark_cores: int | None = None,
    spark_memory: int | None = None,
    accept_never_fits: bool = False,
) -> tuple[WorkbenchSession, bool]:
    """Start it; one that runs already keeps its size, and is kept for as long as `idle_limit` says from now. One whose
    last job is still stopping is started when that has ended (`again`). Raises what a launch raises, and what
    `home_taken` does. `environment`: the ID of one of the namespace, whose packages it has from now on; empty: none;
    None: as before. `spark_executors`: of a Jupyter's Spark cluster; `spark_cluster`: the registered one that they are
    of, empty: within the session; `spark_cores` and `spark_memory` (bytes): of each there; None: as before."""
    require_start(user, session)
    chosen = size_named(size or session.size or None, session.kind)
    requirements = requirements_of(user, session, environment)
    chosen_engine, spark = engine_chosen(user, engine), before(session)
    if not hosting.runs(session.job):
        wanted = Asked(spark_executors, spark_cluster, spark_cores, spark_memory)
        spark = spark_of(session, wanted, chosen, chosen_engine)
        _refuse_many(user, session)
    if _is_ending(session.job):
        asked = {
            "size": chosen.name, "engine": engine, "environment": environment, **spark.said,
            "accept_never_fits": accept_never_fits,
        }  # fmt: skip
        return _start_later(user, session, asked, idle_limit)[0], False
    own = {"size": chosen.name, "requirements": requirements, **spark.columns}
    changes = {**own, "taken_over_by": None, "again": None, "problem": ""}
    with home_taken(session, chosen_engine) as require_kept:
        session, is_new = hosting.start(
            session,
            user=user,
            spec=spec_of(session, name_of(session), chosen.resources, requirements, spark),
            limits=limits(),
            idle_limit=idle_limit,
            engine=engine,
            accept_never_fits=accept_never_fits,
            changes=changes,
            still_good=require_kept,
        )
    if is_new:
        _stop_one_too_many(user, session)
    return session, is_new


def session_stop(*, user: User, session: WorkbenchSession) -> WorkbenchSession:
    """Want it stopped. Not running: nothing changes. What a Jupyter keeps stays."""
    require_change(user, session)
    _forget_restart(session)
    session = hosting.stop(session, user=user)
    token_forget(session)
    return session


def session_restart(
    *, user: User, session: WorkbenchSession, size: str | None = None, starts: int | None = None
) -> WorkbenchSession:
    """Stop it, and start it again when its job has ended, with another size if one is named and the same idle
    limit. Not running: it is started. `starts` says which of its starts is meant: one that was restarted already, by
    another click or in another window, is left as it is, so that each is restarted once."""
    require_start(user, session)
    chosen = size_named(size or session.size or None, session.kind)
    if starts is not None and starts != session.starts:
        return session
    if session.job is None or session.job.deleted_at is not None or session.job.is_over:
        return session_start(user=user, session=session, size=chosen.name, idle_limit=limit_of(session))[0]
    spark_of(session, AS_BEFORE, chosen, session.job.engine)
    is_ending = _is_ending(session.job)
    session, is_due = _start_later(user, session, {"size": chosen.name, "engine": session.job.engine}, None)
    return hosting.stop(session, user=user) if is_due and not is_ending else session


def _is_ending(job: Job | None) -> bool:
    """Whether it is not to run any more, and has not ended yet."""
    return job is not None and job.deleted_at is None and not hosting.runs(job) and not job.is_over


def _start_later(
    user: User, session: WorkbenchSession, asked: Mapping[str, Any], idle_limit: timedelta | None
) -> tuple[WorkbenchSession, bool]:
    """Have it started as `asked` when its job has ended. Where it was started since it was read, it is returned as it
    is now, and False."""
    session.again = {"by": str(user.pk), **asked}
    session.problem = ""
    changes: dict[str, Any] = {"again": session.again, "problem": ""}
    if idle_limit is not None:
        changes["idle_seconds"] = session.idle_seconds = int(limits().checked(idle_limit).total_seconds())
    same = WorkbenchSession.objects.filter(pk=session.pk, starts=session.starts)
    if same.update(**changes):
        return session, True
    return WorkbenchSession.objects.select_related("job", "namespace", "owner").get(pk=session.pk), False


def limit_of(session: WorkbenchSession) -> timedelta | None:
    """The idle limit that its last start had, as far as it is still allowed; None where it was never started."""
    return min(session.idle_limit, limits().longest) if session.idle_seconds else None


def session_extend(*, user: User, session: WorkbenchSession, idle_limit: timedelta | None = None) -> WorkbenchSession:
    """Count the time without use from now, and set its limit where one is given. Raises `Conflict` where it does not
    run."""
    require_change(user, session)
    return hosting.extend(session, user=user, limits=limits(), idle_limit=idle_limit)


def session_take_over(*, user: User, session: WorkbenchSession) -> WorkbenchSession:
    """Let this administrator into a Jupyter that runs, until it is stopped. It is recorded, and its owner sees it."""
    if not user.is_staff:
        raise Forbidden("Only administrators can take over a session.", "Ask an administrator.")
    if not session.is_personal or session.owner_id == user.pk:
        raise Conflict(
            "You do not need to take over this session, because you may open it.", "not_personal", remedy="Open it."
        )
    if not hosting.runs(session.job):
        raise Conflict("The session is not running.", "not_running", remedy="Take it over when it is running.")
    before = session.taken_over_by.username if session.taken_over_by else ""
    if not WorkbenchSession.objects.filter(pk=session.pk, job=session.job).update(taken_over_by=user):
        raise Conflict("The session was started again in the meantime.", remedy="Reload the page and try again.")
    session.taken_over_by = user
    record(
        user,
        "workbench.take_over",
        f"workbench:{session.pk}",
        namespace=session.namespace,
        owner=session.owner.username,
        taken_over_by=user.username,
        taken_over_by_before=before,
    )  # fmt: skip
    return session


def files_delete(*, user: User, session: WorkbenchSession) -> None:
    """Delete what a Jupyter keeps, on every engine, for good; workers do it, and return the quota. Nothing there, or
    asked again: nothing changes. Raises `Conflict` where it is not stopped."""
    require_files(user, session)
    with transaction.atomic():
        homes = homes_of(session)
        # Locked, and the session read then: a start that was written down before is seen, one to come sees `goes`.
        size = sum(one.size for one in homes.select_for_update() if not one.goes)
        _require_stopped(WorkbenchSession.objects.select_related("job").filter(pk=session.pk).first() or session)
        if homes_give_up(homes):
            facts = {"owner": session.owner.username, "size": size}
            record(user, "workbench.delete_files", f"workbench:{session.pk}", namespace=session.namespace, **facts)


def _require_stopped(session: WorkbenchSession) -> None:
    job = session.job  # what is left of one that has ended is waited for by the worker
    if session.again is not None or (job is not None and job.deleted_at is None and not Phase(job.phase).is_final):
        raise Conflict("The session is not stopped.", "not_stopped", remedy="Stop it, then delete its files.")


def name_of(session: WorkbenchSession) -> str:
    """What the session and its job are called."""
    return names_of([session])[session.pk]


def names_of(sessions: Sequence[WorkbenchSession]) -> Mapping[uuid.UUID, str]:
    """What these sessions are called, by their IDs; a TensorBoard after the newest of its jobs. One query at most."""
    newest = {one.pk: max(one.job_ids) for one in sessions if one.job_ids}
    rows = Job.objects.filter(pk__in=set(newest.values())).values_list("pk", "name") if newest else ()
    names = {str(key): name for key, name in rows}
    return {one.pk: _name(one, names.get(newest.get(one.pk, ""), "a deleted job")) for one in sessions}


def _name(session: WorkbenchSession, newest: str) -> str:
    if session.is_personal:
        return f"Jupyter of {session.owner.username}"
    if not session.job_ids:
        return f"TensorBoard of {session.namespace.slug}"
    others = len(session.job_ids) - 1
    return f"{Kind(session.kind).label} of {newest}" + (f" and {others} more" if others else "")


def jobs_of(session: WorkbenchSession) -> list[Job]:
    """The jobs that the session was started for, those that are still there; of a whole namespace none."""
    if not session.job_ids:
        return []
    return list(Job.objects.for_lists().filter(pk__in=session.job_ids, deleted_at__isnull=True).order_by("-pk"))


def _session(
    namespace: Namespace, kind: str, subject: str, user: User, wanted: Mapping[str, Any], **columns: Any
) -> WorkbenchSession:
    """The row with this subject. One is made where a start with what is wanted is not refused for it."""
    rows: QuerySet[WorkbenchSession] = WorkbenchSession.objects.select_related("job", "namespace", "owner")
    known = rows.filter(namespace=namespace, kind=kind, subject=subject).first()
    if known is not None:
        return known
    size_named(wanted.get("size"), kind)
    limits().checked(wanted.get("idle_limit"))
    engine_chosen(user, wanted.get("engine"))
    first = {"owner": user, "idle_seconds": 0, "started_at": timezone.now(), "size": "", **columns}
    with transaction.atomic():
        # Before the namespace, as launches do: the row's references lock both.
        User.objects.select_for_update(no_key=True).get(pk=user.pk)
        if is_chosen(subject):
            oldest_drop(namespace)
        return rows.get_or_create(namespace=namespace, kind=kind, subject=subject, defaults=first)[0]


def _subject(job_ids: Sequence[str]) -> str:
    if not job_ids:
        return "namespace"
    if len(job_ids) == 1:
        return f"job:{job_ids[0]}"
    return f"jobs:{hashlib.sha256(' '.join(job_ids).encode()).hexdigest()[:64]}"


def _refuse_many(user: User, session: WorkbenchSession) -> None:
    if _others(user, session).count() >= settings.YARDMASTER_WORKBENCH["SESSIONS"]:
        raise _too_many()
    refuse_full(session)


def _stop_one_too_many(user: User, session: WorkbenchSession) -> None:
    """Starts at once do not see each other: counted again, one start after the other."""
    most = settings.YARDMASTER_WORKBENCH["SESSIONS"]
    with transaction.atomic():
        User.objects.select_for_update(no_key=True).get(pk=user.pk)
        others = _others(user, session).filter(job__wanted=Wanted.RUN.value).count()
        if others >= most and session.job is not None:
            job_stop_unused(session.job, f"Stopped: its user has {most} sessions that run.")
    if others >= most:
        raise _too_many()
    stop_above_quota(session)


def _others(user: User, session: WorkbenchSession) -> QuerySet[WorkbenchSession]:
    return WorkbenchSession.objects.filter(NOT_ENDED, started_by=user).exclude(pk=session.pk)


def _too_many() -> QuotaExceeded:
    return QuotaExceeded(
        f"You have {settings.YARDMASTER_WORKBENCH['SESSIONS']} sessions that run, as many as are allowed.",
        remedy="Stop one on the page Workbench, or ask an administrator to raise YARDMASTER_WORKBENCH_SESSIONS.",
    )


def _forget_restart(session: WorkbenchSession) -> None:
    WorkbenchSession.objects.filter(pk=session.pk).update(again=None)
    session.again = None
