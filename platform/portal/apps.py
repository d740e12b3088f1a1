"""What Django's system check asks of the settings: mistakes that would show only when the first job runs."""

from typing import Any

from django.apps import AppConfig
from django.conf import settings
from django.core.checks import CheckMessage, Error, Warning, register

from apps.stores import storage
from apps.workbench.proxy.origins import Origins
from portal.reach import contradictions, reach_of
from yardmaster.engines.registry import EngineRegistry
from yardmaster.errors import YardmasterError

OF_DEPLOYMENT = "yardmaster_deployment"
"""The tag of checks that `manage.py doctor` and `manage.py check --deploy` make, and no start."""


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


def sessions_have_origins_of_their_own(**options: Any) -> list[CheckMessage]:
    places: Origins = settings.YARDMASTER_WORKBENCH_ORIGINS
    if places.each_its_own:
        return []
    message = f"All sessions of the workbench share the origin {places.shared}"
    if settings.YARDMASTER_WORKBENCH_SHARED_ORIGIN:
        message += ": what one Jupyter shows can act in the sessions of others (YARDMASTER_WORKBENCH_SHARED_ORIGIN)."
    else:
        message += ", so no Jupyter is started."
    return [Warning(message, hint=_OWN_ORIGINS, id="yardmaster.W001")]


def sessions_cannot_set_cookies_of_the_portal(**options: Any) -> list[CheckMessage]:
    places: Origins = settings.YARDMASTER_WORKBENCH_ORIGINS
    if not places.can_set_cookies_of_portal():
        return []
    message = f"Sessions at {places.host} can set cookies that browsers send to the portal at {settings.PUBLIC_URL}."
    hint = "Serve the portal over https (YARDMASTER_PUBLIC_URL), or sessions elsewhere (YARDMASTER_WORKBENCH_URL)."
    return [Warning(message, hint=hint, id="yardmaster.W002")]


_OWN_ORIGINS = (
    "Set YARDMASTER_WORKBENCH_URL to an address whose host begins with `*.`: docs/workbench.md says what it needs."
)


class PortalConfig(AppConfig):
    name = "portal"

    def ready(self) -> None:
        from portal import second_factor_keys  # noqa: F401 - it hears when secrets are to be sealed again

        register(engines_can_be_made)
        register(storage_can_be_made)
        register(default_engine_exists)
        register(tasks_can_reach_the_portal)
        # Not at each start: the operator may have chosen so.
        register(sessions_have_origins_of_their_own, OF_DEPLOYMENT, deploy=True)
        register(sessions_cannot_set_cookies_of_the_portal, OF_DEPLOYMENT, deploy=True)
