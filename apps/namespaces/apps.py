from django.apps import AppConfig


class NamespacesConfig(AppConfig):
    name = "apps.namespaces"
    default_auto_field = "django.db.models.BigAutoField"

    def ready(self) -> None:
        from apps.namespaces import managers, personal, provider_teams, service_accounts  # noqa: F401  # connects the receivers
