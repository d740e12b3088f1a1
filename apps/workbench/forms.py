"""The form that starts a session: its size, for how long it may be unused, and the engine."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import timedelta
from typing import Any

from django import forms
from django.conf import settings

from apps.accounts.models import User
from apps.jobs.engines.configured import engines_for
from apps.workbench.models import Kind
from apps.workbench.sizes import sizes, usual_size

IDLE_LIMITS = (("900", "15 minutes"), ("3600", "1 hour"), ("14400", "4 hours"), ("28800", "8 hours"))


class StartForm(forms.Form):
    """Its fields are called as in the API. What is left empty has its default."""

    size = forms.ChoiceField(label="Size", required=False)
    idle_limit = forms.ChoiceField(label="Stop if unused for", required=False)
    engine = forms.ChoiceField(label="Engine", required=False)

    def __init__(self, data: Mapping[str, Any] | None = None, *, kind: Kind, user: User, size: str = "") -> None:
        super().__init__(data, auto_id=f"{kind.value}-%s")
        longest = settings.YARDMASTER_WORKBENCH["LONGEST_IDLE"].total_seconds()
        usual = int(settings.YARDMASTER_WORKBENCH["IDLE"].total_seconds())
        default = settings.YARDMASTER_DEFAULT_ENGINE
        self._choose("size", [(one.name, one.words) for one in sizes().values()], size or usual_size(kind))
        self._choose("idle_limit", [one for one in IDLE_LIMITS if int(one[0]) <= longest], str(usual))
        self._choose("engine", [("", f"Default ({default})"), *((one, one) for one in engines_for(user))], "")

    def _choose(self, name: str, choices: list[tuple[str, str]], first: str) -> None:
        field = self.fields[name]
        field.choices = choices  # type: ignore[attr-defined]
        field.initial = first
        field.widget.attrs |= {"class": "form-select", "autocomplete": "off"}

    @property
    def wanted(self) -> dict[str, Any]:
        """What the valid form says, as `session_start` takes it."""
        said = self.cleaned_data
        limit = timedelta(seconds=int(said["idle_limit"])) if said["idle_limit"] else None
        return {"size": said["size"] or None, "idle_limit": limit, "engine": said["engine"] or None}
