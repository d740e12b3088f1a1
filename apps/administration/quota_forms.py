"""What administrators type to change many quotas at once: each limit is left empty (unchanged), the word `unlimited`,
or an amount. Not here: what an amount is (the serializer of the API).
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

from django import forms

from apps.administration.quota_bulk import Changes, Defaults
from apps.administration.quota_serializers import ChangesSerializer
from apps.namespaces.models import QUANTITY_NAMES
from apps.namespaces.quota_models import LONGEST_REASON

UNLIMITED = ("unlimited", "no limit", "none")
_LONGEST = 30
_NO_LIMITS = ("reason", "defaults", "starts", "ends")
_MOMENT = forms.DateTimeInput(attrs={"step": "60"}, format="%Y-%m-%dT%H:%M")
_MOMENT.input_type = "datetime-local"


class BulkForm(forms.Form):
    """One field for each limit, and why. After `is_valid`, `changes` has what was named."""

    extended = forms.CharField(
        label="Other resources",
        max_length=2000,
        required=False,
        help_text="amd.com/gpu=4, rdma/hca=unlimited",
        widget=forms.TextInput(attrs={"list": "resource-names"}),
    )
    priority_ceiling = forms.CharField(label="Priority ceiling", max_length=_LONGEST, required=False)
    defaults = forms.BooleanField(label="Set every limit to the defaults of new namespaces", required=False)
    starts = forms.DateTimeField(
        label="From (UTC)", required=False, widget=_MOMENT, help_text="Empty: now. Needs an end."
    )
    ends = forms.DateTimeField(
        label="Until (UTC)",
        required=False,
        widget=_MOMENT,
        help_text="Empty: no end. After the end, the limits are as before.",
    )
    reason = forms.CharField(
        label="Reason", max_length=LONGEST_REASON, required=True, help_text="Members of the namespaces read it."
    )

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        limits = {
            key: forms.CharField(label=label, max_length=_LONGEST, required=False)
            for key, (label, _) in QUANTITY_NAMES.items()
        }
        self.fields = {**limits, **self.fields}
        self.changes: Changes | Defaults = {}

    @property
    def limit_fields(self) -> list[forms.BoundField]:
        """The fields of the page that say limits; the others say how and when."""
        return [self[name] for name in self.fields if name not in _NO_LIMITS]

    def clean(self) -> dict[str, Any]:
        limits = {name: text for name, text in self.cleaned_data.items() if text and name not in _NO_LIMITS}
        wish: dict[str, Any] = {name: _read(text) for name, text in limits.items()}
        if isinstance(wish.get("extended"), str):
            wish["extended"] = amounts_by_name(wish["extended"])
        if self.cleaned_data.get("starts") and not self.cleaned_data.get("ends") and "ends" not in self.errors:
            self.add_error("ends", "A change with a start needs an end, too.")
        if self.cleaned_data.get("defaults"):
            self._take_defaults(limits)
            return self.cleaned_data
        read = ChangesSerializer(data=wish)
        if not read.is_valid():
            for name, errors in read.errors.items():
                self.add_error(name if name in self.fields else None, [str(error) for error in errors])
        elif not read.validated_data:
            self.add_error(None, "Fill in at least one limit.")
        else:
            self.changes = dict(read.validated_data)
        return self.cleaned_data

    def _take_defaults(self, limits: Collection[str]) -> None:
        if limits:
            self.add_error("defaults", "Either fill in limits, or set all of them to the defaults.")
        else:
            self.changes = Defaults()


def _read(text: str) -> str | None:
    return None if text.strip().lower() in UNLIMITED else text.strip()


def amounts_by_name(text: str) -> dict[str, int | str | None]:
    """`amd.com/gpu=4, rdma/hca=unlimited`: each name with its number, None for no limit, or the text that is neither.
    Pure."""
    found: dict[str, int | str | None] = {}
    for piece in filter(None, map(str.strip, text.split(","))):
        name, _, limit = map(str.strip, piece.partition("="))
        value = _read(limit)
        is_number = value is not None and value.isascii() and value.isdigit() and len(value) < 12
        found[name] = int(value) if value is not None and is_number else value
    return found
