from django.apps import AppConfig


class SchedulesConfig(AppConfig):
    name = "apps.schedules"
    default_auto_field = "django.db.models.BigAutoField"
