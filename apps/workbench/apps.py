from django.apps import AppConfig


class WorkbenchConfig(AppConfig):
    name = "apps.workbench"
    default_auto_field = "django.db.models.BigAutoField"

    def ready(self) -> None:
        from apps.workbench import credentials  # noqa: F401  # answers what an order asks for
