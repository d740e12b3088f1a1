"""What people type into the pages of namespaces."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, cast

from django import forms

from apps.administration.namespace_serializers import LimitsSerializer
from apps.administration.services import Limits
from apps.namespaces.models import Quota, Role
from apps.namespaces.quota_limits import by_fields, usual_limits
from apps.namespaces.quota_models import LONGEST_REASON

ROLE_WORDS = {
    Role.VIEWER: "can view everything",
    Role.MEMBER: "can also launch, stop and upload",
    Role.MANAGER: "can also manage members",
}


class TitleForm(forms.Form):
    title = forms.CharField(max_length=100, required=False)


class MemberForm(forms.Form):
    username = forms.CharField(label="User name", max_length=150)
    role = forms.ChoiceField(choices=Role.choices, initial=Role.MEMBER)


class RoleForm(forms.Form):
    role = forms.ChoiceField(choices=Role.choices)


class TeamForm(forms.Form):
    slug = forms.CharField(label="Short name", max_length=63, help_text="Used in URLs. Cannot be changed.")
    title = forms.CharField(label="Title", max_length=100, required=False)
    manager = forms.CharField(label="Owner", max_length=150, required=False, help_text="Defaults to you.")


_SIZES = ("memory", "storage", "logs")


class QuotaForm(forms.Form):
    """Every limit, as people write amounts; empty: no limit. What an amount is decides the API's serializer."""

    cpu = forms.CharField(label="CPU cores", max_length=30, required=False)
    memory = forms.CharField(label="Memory", max_length=30, required=False)
    gpus = forms.CharField(label="GPUs", max_length=30, required=False)
    storage = forms.CharField(label="Storage", max_length=30, required=False)
    files = forms.CharField(  # type: ignore[assignment]  # a field like the others; forms keep them elsewhere
        label="Files", max_length=30, required=False, help_text="In all versions and uploads together."
    )
    running_jobs = forms.CharField(label="Concurrent jobs", max_length=30, required=False)
    logs = forms.CharField(label="Logs", max_length=30, required=False, help_text="Within the storage.")
    sessions = forms.CharField(label="Sessions", max_length=30, required=False, help_text="Of the workbench, at once.")
    queued_jobs = forms.CharField(label="Queued jobs", max_length=30, required=False)
    extended = forms.CharField(
        label="Others",
        max_length=2000,
        required=False,
        help_text="Example: amd.com/gpu=4, rdma/hca=2. If GPUs are limited, accelerators that are not listed have the "
        "limit 0.",
    )
    priority_ceiling = forms.CharField(
        label="Priority ceiling",
        max_length=30,
        required=False,
        help_text="0 to 1000. Up to this value, a job's priority counts across all namespaces; above it, only within "
        "this namespace.",
    )
    reason = forms.CharField(
        label="Reason", max_length=LONGEST_REASON, help_text="Members of the namespace read it in the history."
    )
    seen = forms.CharField(max_length=5000, required=False, widget=forms.HiddenInput)
    """The limits that the form was made with, so that no change is undone that the sender has not seen."""

    @staticmethod
    def values_of(quota: Quota) -> dict[str, str]:
        usual = by_fields(usual_limits(quota))

        def text(name: str) -> str:
            value = usual[name]
            if value is None:
                return ""
            if name == "extended":
                return ", ".join(f"{one}={limit}" for one, limit in value.items())
            return (
                _exact_bytes(value) if name in ("memory", "storage", "logs") else f"{value:.3f}".rstrip("0").rstrip(".")
            )

        values = {name: text(name) for name in Limits.__annotations__}
        return {**values, "seen": json.dumps(values)}

    def clean(self) -> dict[str, Any]:
        read = LimitsSerializer(data=_wish(self.cleaned_data))
        if not read.is_valid():
            for name, errors in read.errors.items():
                self.add_error(name, [str(error) for error in errors])
            return self.cleaned_data
        return {**read.validated_data, "reason": self.cleaned_data.get("reason", "")}

    def limits(self) -> Limits:
        return cast(
            Limits, {name: value for name, value in self.cleaned_data.items() if name in Limits.__annotations__}
        )

    def limits_seen(self) -> Limits | None:
        """None: the sender had no form of ours."""
        values = self._seen()
        said = {name: value or None for name, value in values.items()}
        if "extended" in values:
            said["extended"] = _by_name(values["extended"])
        read = LimitsSerializer(data=said)
        return cast(Limits, dict(read.validated_data)) if values and read.is_valid() else None

    def over(self, now: dict[str, str]) -> dict[str, str]:
        """What holds now, with what was typed over it."""
        seen = self._seen()
        typed = {name: str(self.data.get(name, "")) for name in Limits.__annotations__}
        changed = {name: text for name, text in typed.items() if text != seen.get(name)}
        return {**now, **changed, "reason": str(self.data.get("reason", ""))}

    def _seen(self) -> dict[str, Any]:
        try:
            values = json.loads(self.data.get("seen", ""))
        except ValueError:
            return {}
        return values if isinstance(values, dict) else {}


def _wish(values: Mapping[str, Any]) -> dict[str, Any]:
    """What was typed, as the API takes it. A ceiling that was emptied is 0, as it was before it was raised."""
    found = {name: values.get(name) or None for name in Limits.__annotations__}
    ceiling, others = found["priority_ceiling"] or 0, _by_name(values.get("extended") or "")
    return {**found, "priority_ceiling": ceiling, "extended": others}


def _by_name(text: Any) -> Any:
    """`amd.com/gpu=4, rdma/hca=2` as the API takes it, which refuses what is no number, and a name said twice."""
    if not isinstance(text, str):
        return text
    found: dict[str, int | str] = {}
    for piece in filter(None, map(str.strip, text.split(","))):
        name, _, limit = map(str.strip, piece.partition("="))
        is_number = limit.isascii() and limit.isdigit() and len(limit) < 12 and name not in found
        found[name] = int(limit) if is_number else limit
    return found


def _exact_bytes(amount: int) -> str:
    """`16Gi` where that is exact, else the plain number: what is saved unchanged stays the same."""
    for unit, size in (("Ti", 1 << 40), ("Gi", 1 << 30), ("Mi", 1 << 20), ("Ki", 1 << 10)):
        if amount and amount % size == 0:
            return f"{amount // size}{unit}"
    return str(amount)
