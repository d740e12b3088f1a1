from django.apps import AppConfig
from django.core.checks import register


class PortalConfig(AppConfig):
    name = "portal"

    def ready(self) -> None:
        from portal import checks

        register(checks.engines_can_be_made)
        register(checks.storage_can_be_made)
        register(checks.default_engine_exists)
        register(checks.tasks_can_reach_the_portal)
