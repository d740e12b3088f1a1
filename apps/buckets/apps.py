from django.apps import AppConfig


class BucketsConfig(AppConfig):
    name = "apps.buckets"
    default_auto_field = "django.db.models.BigAutoField"
