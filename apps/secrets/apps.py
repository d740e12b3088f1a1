from django.apps import AppConfig


class SecretsConfig(AppConfig):
    name = "apps.secrets"
    label = "namespace_secrets"
    verbose_name = "Secrets"
