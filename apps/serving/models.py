"""Services: which version of a model a job of the strategy `service` serves."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from django.db import models

from apps.hosting.models import Hosted


class Service(Hosted):
    """A version of a model that is served, or was. One per version."""

    KIND = NOUN = "service"

    version = models.OneToOneField("registry.ModelVersion", on_delete=models.CASCADE, related_name="service")
    requests = models.PositiveBigIntegerField(default=0)
    """That were answered since its last start."""

    def __str__(self) -> str:
        return f"service {self.pk} of version {self.version_id}"

    @property
    def health_path(self) -> str:
        return "/healthz"

    @property
    def steps(self) -> Mapping[str, str]:
        return {
            "staging": "Fetching the model's files.",
            "running": "Starting TensorFlow and loading the model.",
        }

    @property
    def facts(self) -> Mapping[str, Any]:
        return {"name": self.version.parent.name, "version": self.version.number}
