from django.apps import AppConfig


class SweepsConfig(AppConfig):
    name = "apps.sweeps"
    default_auto_field = "django.db.models.BigAutoField"

    def ready(self) -> None:
        from apps.sweeps import in_use  # noqa: F401  # answers what retention asks for
