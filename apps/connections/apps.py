from django.apps import AppConfig


class ConnectionsConfig(AppConfig):
    name = "apps.connections"
    default_auto_field = "django.db.models.BigAutoField"
