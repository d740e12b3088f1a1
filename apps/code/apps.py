from django.apps import AppConfig


class CodeConfig(AppConfig):
    name = "apps.code"
    default_auto_field = "django.db.models.BigAutoField"
