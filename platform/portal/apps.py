"""What Django's system check asks of the settings: mistakes that would show only when the first job runs."""

from typing import Any

from django.apps import AppConfig
from django.conf import settings
from django.core.checks import CheckMessage, Error, register

from apps.stores import storage
from portal.reach import contradictions, reach_of
from yardmaster.engines.registry import EngineRegistry
from yardmaster.errors import YardmasterError


def engines_can_be_made(**options: Any) -> list[CheckMessage]:
    problems = EngineRegistry(settings.YARDMASTER_ENGINES).problems()
    return [Error(problem.message, hint=problem.remedy or None, id="yardmaster.E001") for problem in problems]


def default_engine_exists(**options: Any) -> list[CheckMessage]:
    name, known = settings.YARDMASTER_DEFAULT_ENGINE, ", ".join(settings.YARDMASTER_ENGINES)
    if name in settings.YARDMASTER_ENGINES:
        return []
    hint = f"Set YARDMASTER_DEFAULT_ENGINE to one of: {known}."
    return [Error(f"YARDMASTER_DEFAULT_ENGINE={name!r} names no engine.", hint=hint, id="yardmaster.E002")]


def tasks_can_reach_the_portal(**options: Any) -> list[CheckMessage]:
    return [Error(one.message, hint=one.remedy, id="yardmaster.E004") for one in contradictions(reach_of(settings))]


def storage_can_be_made(**options: Any) -> list[CheckMessage]:
    try:
        storage()
    except (YardmasterError, ImportError, TypeError, OSError) as error:
        message = f"YARDMASTER_STORAGE cannot be used: {error}"
        return [Error(message, hint="Name a class and its options, and a place it can write to.", id="yardmaster.E003")]
    return []


class PortalConfig(AppConfig):
    name = "portal"

    def ready(self) -> None:
        register(engines_can_be_made)
        register(storage_can_be_made)
        register(default_engine_exists)
        register(tasks_can_reach_the_portal)
