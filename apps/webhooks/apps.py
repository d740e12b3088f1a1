from django.apps import AppConfig


class WebhooksConfig(AppConfig):
    name = "apps.webhooks"
    default_auto_field = "django.db.models.BigAutoField"

    def ready(self) -> None:
        from apps.webhooks import sealed_parts  # noqa: F401  # connects the receiver
