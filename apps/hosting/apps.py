from django.apps import AppConfig


class HostingConfig(AppConfig):
    name = "apps.hosting"
    default_auto_field = "django.db.models.BigAutoField"
