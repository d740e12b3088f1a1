from django.apps import AppConfig


class AdministrationConfig(AppConfig):
    name = "apps.administration"
    default_auto_field = "django.db.models.BigAutoField"
