from django.apps import AppConfig


class ServingConfig(AppConfig):
    name = "apps.serving"
    default_auto_field = "django.db.models.BigAutoField"

    def ready(self) -> None:
        from apps.serving import in_use  # noqa: F401  # answers what retention asks for
