from django.apps import AppConfig


class RemovalsConfig(AppConfig):
    name = "apps.removals"
    default_auto_field = "django.db.models.BigAutoField"
