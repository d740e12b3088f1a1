"""The form that starts a model server: for how long, and with which resources. What is left empty has its default."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import timedelta
from typing import Any

from django import forms
from django.conf import settings
from rest_framework.exceptions import ValidationError

from apps.accounts.models import User
from apps.jobs.engines.configured import engines_for
from apps.jobs.launch.program_form import ProgramForm
from apps.jobs.selectors import resources_used
from apps.namespaces.models import Namespace
from apps.namespaces.selectors import quota_of
from apps.serving.serializers import MemoryField
from yardmaster.quantity import NotAQuantity, exact_bytes, format_bytes, format_cpu, parse_cpu

_LIMITS = (("900", "15 minutes"), ("3600", "1 hour"), ("14400", "4 hours"))
_LEAST_CPU, _MOST_CPU = 0.001, 4096


class StartForm(ProgramForm):
    """Its fields are called as in the API."""

    idle_limit = forms.ChoiceField(label="Stop if unused for", choices=_LIMITS, required=False)
    memory = forms.CharField(label="Memory", required=False, max_length=40)
    cpu = forms.CharField(label="CPU cores", required=False, max_length=40)
    engine = forms.ChoiceField(label="Engine", required=False)

    def __init__(self, data: Mapping[str, Any] | None = None, *, user: User) -> None:
        super().__init__(data, auto_id="try-%s")
        usual = settings.YARDMASTER_SERVING
        names = engines_for(user)
        default = settings.YARDMASTER_DEFAULT_ENGINE
        self.fields["engine"].choices = [("", f"Default ({default})"), *((one, one) for one in names)]  # type: ignore[attr-defined]
        self.fields["memory"].widget.attrs["placeholder"] = exact_bytes(usual["MEMORY"])
        self.fields["cpu"].widget.attrs["placeholder"] = format_cpu(usual["CPU"])
        for name, field in self.fields.items():
            kind = "form-select" if isinstance(field.widget, forms.Select) else "form-control"
            attributes = {"class": kind, "autocomplete": "off"}
            if self.is_bound and self.errors.get(name):
                attributes |= {"class": f"{kind} is-invalid", "aria-describedby": f"try-{name}_error"}
            field.widget.attrs |= attributes

    @property
    def resources(self) -> list[forms.BoundField]:
        return [self[name] for name in ("memory", "cpu", "engine")]

    @property
    def has_bad_resources(self) -> bool:
        return any(field.errors for field in self.resources)

    def clean_memory(self) -> int | None:
        text = self.cleaned_data["memory"].strip()
        try:
            return int(MemoryField().run_validation(text)) if text else None
        except ValidationError:
            raise forms.ValidationError("Enter an amount between 64Mi and 64Ti, such as 2Gi.") from None

    def clean_cpu(self) -> float | None:
        text = self.cleaned_data["cpu"].strip()
        if not text:
            return None
        try:
            found = parse_cpu(text)
        except NotAQuantity:
            found = 0.0
        if not _LEAST_CPU <= found <= _MOST_CPU:
            raise forms.ValidationError(f"Enter a number of cores up to {_MOST_CPU}, such as 2, 0.5 or 500m.")
        return found

    @property
    def wanted(self) -> dict[str, Any]:
        """What the valid form says, as `service_start` takes it."""
        said = self.cleaned_data
        limit = timedelta(seconds=int(said["idle_limit"])) if said["idle_limit"] else None
        return {"idle_limit": limit, "memory": said["memory"], "cpu": said["cpu"], "engine": said["engine"] or None}


def left_in(namespace: Namespace) -> str:
    """What the namespace's quota leaves, in words."""
    quota, used = quota_of(namespace), resources_used(namespace)
    memory = "no limit" if quota.memory is None else format_bytes(max(0, quota.memory - used["memory"]))
    cpu = "no limit" if quota.cpu is None else format_cpu(max(0.0, float(quota.cpu) - used["cpu"]))
    return f"memory {memory}, CPU cores {cpu}"
