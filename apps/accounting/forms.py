"""Forms of accounting: which use to show, and what a budget bounds."""

from __future__ import annotations

from datetime import date, datetime
from decimal import Decimal
from typing import Any

from django import forms

from yardmaster.accounting.budgets import CPU_HOURS, GPU_HOURS, MEMORY_HOURS, MONEY, NAMES
from yardmaster.accounting.calendar import DAY, STEPS, begin_of, day_of, month_of

LONGEST = 366
MOST_STEPS = 93
"""Bars of one picture."""
BY = {"namespace": "Namespace", "role": "Role", "engine": "Engine", "user": "User"}


class RangeForm(forms.Form):
    """Which use the dashboard shows. What is left out is this month, by day and namespace."""

    since = forms.DateField(label="From", required=False, widget=forms.DateInput(attrs={"type": "date"}))
    until = forms.DateField(label="To", required=False, widget=forms.DateInput(attrs={"type": "date"}))
    by = forms.ChoiceField(label="By", choices=list(BY.items()), required=False)
    step = forms.ChoiceField(label="Each bar", choices=[(one, one.capitalize()) for one in STEPS], required=False)
    resource = forms.CharField(label="Resource", max_length=253, required=False)

    def __init__(self, data: Any, now: datetime) -> None:
        self.now = now
        super().__init__(data)

    def clean(self) -> dict[str, Any]:
        said = dict(super().clean() or self.cleaned_data)
        today = day_of(self.now)
        said["until"] = said.get("until") or today
        said["since"] = said.get("since") or month_of(said["until"])
        said["by"], said["step"] = said.get("by") or "namespace", said.get("step") or "day"
        said["resource"] = said.get("resource") or "cpu"
        days = (said["until"] - said["since"]).days + 1
        if not date(1970, 1, 2) <= said["since"] <= said["until"] < date(9990, 1, 1):
            self.add_error("until", "The last day is before the first. Choose a later day.")
        elif days > LONGEST:
            self.add_error("since", f"More than {LONGEST} days. Choose a shorter time.")
        elif said["step"] == "day" and days > MOST_STEPS:
            said["step"] = "week"
        return said

    def times(self) -> tuple[datetime, datetime]:
        """From the first moment of the first day to the last of the last, or until now."""
        said = self.cleaned_data
        return begin_of(said["since"]), max(min(begin_of(said["until"] + DAY), self.now), begin_of(said["since"]))


def _bound(name: str, places: int) -> forms.DecimalField:
    return forms.DecimalField(label=NAMES[name], min_value=0, max_digits=14, decimal_places=places, required=False)


class BudgetForm(forms.Form):
    """The bounds of a month. Empty: no limit."""

    cpu_hours, gpu_hours = _bound(CPU_HOURS, 3), _bound(GPU_HOURS, 3)
    memory_gib_hours, money = _bound(MEMORY_HOURS, 3), _bound(MONEY, 2)
    is_default = forms.BooleanField(label="Use the default budget of the settings", required=False)

    def clean(self) -> dict[str, Any]:
        """Bounds that were typed count, also where the box was left as it was."""
        said = dict(super().clean() or self.cleaned_data)
        if said.get("is_default") and any(name in self.changed_data for name in NAMES):
            if "is_default" in self.changed_data:
                self.add_error("is_default", "Either change limits, or use the default budget.")
            said["is_default"] = False
        return said

    def limits(self) -> dict[str, Decimal | None] | None:
        """None: the default ones."""
        said = self.cleaned_data
        return None if said["is_default"] else {name: said[name] for name in NAMES}
