"""The engines that the settings name, made once per process, and who may launch on which."""

from __future__ import annotations

import contextlib
import hashlib
import json
from collections.abc import Mapping
from functools import cache
from typing import Any

from django.conf import settings
from django.core.signals import setting_changed

from apps.accounts.models import User
from apps.errors import Forbidden
from yardmaster.engines.base import Engine, Refuses, RunsSpark, Volumes
from yardmaster.engines.registry import EngineRegistry
from yardmaster.errors import Misconfigured, Problem, SpecRejected, YardmasterError
from yardmaster.job.spec import TrainingSpec
from yardmaster.job.volumes import where_there_are_none


@cache
def registry() -> EngineRegistry:
    """The engines of the settings, made when they are first asked for."""
    return EngineRegistry(settings.YARDMASTER_ENGINES)


def _forget(*, setting: str, **rest: Any) -> None:
    if setting == "YARDMASTER_ENGINES":
        registry.cache_clear()


setting_changed.connect(_forget)


def engine_named(name: str) -> Engine:
    """The engine of that name. Raises `Misconfigured` when the settings no longer have it, or it cannot be made."""
    return registry().get(name)


def portal_seen_from(name: str) -> str:
    """The portal's address, as tasks on this engine receive it."""
    engines: Mapping[str, Any] = settings.YARDMASTER_ENGINES
    tasks = engines.get(name, {}).get("options", {}).get("tasks") or {}
    own = tasks.get("portal_url") if isinstance(tasks, Mapping) else tasks.portal_url
    return str(own or settings.TASK_URL)


def settings_digest(name: str) -> str:
    """By which it is known that the engine's options, or the portal's address for tasks, have changed. Tells nothing
    of the options, which may hold secrets."""
    chosen = [settings.TASK_URL, settings.YARDMASTER_ENGINES.get(name)]
    return hashlib.sha256(json.dumps(chosen, sort_keys=True, default=str).encode()).hexdigest()


def engine_names() -> list[str]:
    return sorted(settings.YARDMASTER_ENGINES)


def engine_chosen(user: User, name: str | None) -> str:
    """The name of the engine that a job of this user runs on: the one asked for, or the default.

    Raises `SpecRejected` for a name that is none and `Forbidden` where the user may not launch on it.
    """
    chosen = name or settings.YARDMASTER_DEFAULT_ENGINE
    if chosen not in settings.YARDMASTER_ENGINES:
        names = ", ".join(engine_names())
        problem = Problem("engine", "unknown_engine", "There is no such engine.", f"Use one of: {names}.", chosen)
        raise SpecRejected([problem])
    refusal = why_not(user, chosen)
    if refusal is not None:
        raise refusal
    return chosen


def engines_for(user: User) -> list[str]:
    """The engines that this user may launch on and that can be made."""
    return [name for name in engine_names() if _may_use(user, name)]


def _may_use(user: User, name: str) -> bool:
    try:
        return why_not(user, name) is None
    except YardmasterError:  # an engine that cannot be made
        return False


def why_not(user: User, name: str) -> Forbidden | None:
    """Why the user may not launch on this engine; None where they may."""
    if user.is_staff or settings.YARDMASTER_LOCAL_ENGINE_FOR_ALL or engine_named(name).isolates:
        return None
    return Forbidden(
        f"The engine {name} runs the scripts of all as one user and isolates no user from another, so that only "
        "administrators may launch on it.",
        "Ask an administrator to set up an engine that isolates users, such as a cluster, or to set "
        "YARDMASTER_LOCAL_ENGINE_FOR_ALL=1 if all users trust each other.",
    )


def why_nowhere(user: User) -> Forbidden | None:
    """Why the user may launch on no engine; None where they may on some."""
    if engines_for(user):
        return None
    with contextlib.suppress(YardmasterError):
        return why_not(user, settings.YARDMASTER_DEFAULT_ENGINE)
    return None


def refuse_unrunnable(name: str, spec: TrainingSpec) -> None:
    """Raise `SpecRejected` where this engine will never run such a job. One that cannot be made now says nothing: the
    job waits for it, and says why."""
    with contextlib.suppress(Misconfigured):
        engine = engine_named(name)
        problem = engine.refusal(spec) if isinstance(engine, Refuses) else None
        problems = [] if problem is None else [problem]
        if not offers_volumes(engine):
            problems += where_there_are_none(spec)
        if problems:
            raise SpecRejected(problems)


def has_own_spark(engine: Engine) -> bool:
    """Whether it has a Spark of its own, once what it lacks for it is installed."""
    return isinstance(engine, RunsSpark) and engine.has_own_spark()


def missing_for_spark(name: str) -> str:
    """What this engine needs before jobs can have a Spark cluster there, in sentences; empty: nothing, as far as it can
    say."""
    with contextlib.suppress(YardmasterError):
        engine = engine_named(name)
        return engine.missing_for_spark() if isinstance(engine, RunsSpark) else ""
    return ""


def why_no_spark(name: str) -> str:
    """Why the portal's own programs have no Spark on this engine, in sentences; empty: they have one."""
    with contextlib.suppress(YardmasterError):
        if has_own_spark(engine_named(name)):
            return missing_for_spark(name)
        return (
            f"The engine {name} has no Spark installation: jobs there use Spark from their packages or images. "
            "Administrators can set one up (docs/spark.md, On other engines)."
        )
    return ""


def can_have_spark(name: str) -> bool:
    """Whether this engine can bring a Spark, once what it lacks for it is installed."""
    with contextlib.suppress(YardmasterError):
        return has_own_spark(engine_named(name))
    return False


def offers_volumes(engine: Engine) -> bool:
    """Whether a namespace can have volumes there."""
    return isinstance(engine, Volumes) and engine.offers_volumes()
