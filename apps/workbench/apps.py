from django.apps import AppConfig


class WorkbenchConfig(AppConfig):
    name = "apps.workbench"
    default_auto_field = "django.db.models.BigAutoField"

    def ready(self) -> None:
        from apps.workbench import credentials, in_use  # noqa: F401  # answer what orders and retention ask for
