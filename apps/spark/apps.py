from django.apps import AppConfig


class SparkConfig(AppConfig):
    name = "apps.spark"
    default_auto_field = "django.db.models.BigAutoField"

    def ready(self) -> None:
        from apps.spark import sealed  # noqa: F401 - it hears when secrets are sealed again
