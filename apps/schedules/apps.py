from django.apps import AppConfig


class SchedulesConfig(AppConfig):
    name = "apps.schedules"
    default_auto_field = "django.db.models.BigAutoField"

    def ready(self) -> None:
        from apps.schedules import in_use  # noqa: F401  # answers what retention asks for
