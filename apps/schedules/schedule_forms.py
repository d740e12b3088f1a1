"""The form of a schedule: easy choices or a cron expression, from and until on the clock of its time zone, and what
happens when jobs overlap or times were missed. Not here: what is valid (`services`)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any
from zoneinfo import ZoneInfo

from django import forms
from django.utils import timezone

from apps.schedules.models import Schedule
from apps.schedules.saving import LONGEST_NAME
from apps.schedules.services import MOST_KEPT
from apps.schedules.template_forms import BEFORE, given_values, parameter_fields
from yardmaster.job.template_parameters import Parameter, written
from yardmaster.schedules.cron import LONGEST, zones
from yardmaster.schedules.due import Overlap
from yardmaster.schedules.easy import CHOICES, CUSTOM, DAILY, DAYS, Easy, cron_of, easy_of

OVERLAPS = {
    Overlap.SKIP.value: "Skip the new run",
    Overlap.QUEUE.value: "Launch the new run when the old one has ended",
    Overlap.STOP.value: "Stop the old run, then launch",
}
GRACES = {300: "5 minutes", 3600: "1 hour", 21_600: "6 hours", 86_400: "1 day", 604_800: "1 week"}
_LOCAL = "%Y-%m-%dT%H:%M"


class TimesForm(forms.Form):
    """When. `cron` is what the fields say."""

    every = forms.ChoiceField(label="Repeat", choices=list(CHOICES.items()), initial=DAILY)
    at = forms.CharField(label="Time of day", required=False, max_length=8, initial="02:00",
                         widget=forms.TimeInput(attrs={"type": "time"}))  # fmt: skip
    weekday = forms.ChoiceField(label="Day of the week", choices=list(enumerate(DAYS)), initial=1, required=False)
    day = forms.IntegerField(label="Day of the month", required=False, initial=1)
    cron = forms.CharField(
        label="Cron expression", required=False, max_length=LONGEST, initial="0 2 * * *",
        help_text="Minute, hour, day of the month, month, day of the week: 30 2 * * 1-5.",
    )  # fmt: skip
    time_zone = forms.CharField(
        label="Time zone", max_length=64, initial="UTC", widget=forms.TextInput(attrs={"list": "time-zones"})
    )

    @property
    def expression(self) -> str:
        """Of a valid form."""
        data = self.cleaned_data
        if data["every"] == CUSTOM:
            return str(data["cron"])
        easy = Easy(data["every"], data["at"], int(data["weekday"] or 0), data["day"] or 1)
        return cron_of(easy)

    @property
    def zone_names(self) -> tuple[str, ...]:
        return zones()


class ScheduleForm(TimesForm):
    """A schedule of a template with these parameters."""

    name = forms.CharField(label="Name", max_length=LONGEST_NAME)
    starts_at = forms.CharField(label="Not before", required=False, max_length=20,
                                help_text="In the time zone above.",
                                widget=forms.TextInput(attrs={"type": "datetime-local"}))  # fmt: skip
    ends_at = forms.CharField(label="Not after", required=False, max_length=20,
                              widget=forms.TextInput(attrs={"type": "datetime-local"}))  # fmt: skip
    overlap = forms.ChoiceField(label="If the previous job has not ended", choices=list(OVERLAPS.items()))
    grace = forms.TypedChoiceField(
        label="If the portal was not running at that time", coerce=int, initial=3600,
        choices=[(key, f"Run once, if it is at most {words} late") for key, words in GRACES.items()],
    )  # fmt: skip
    keeps = forms.IntegerField(
        label="Jobs to keep", required=False, initial=0, min_value=0, max_value=MOST_KEPT,
        help_text="Older ended jobs are deleted, with logs and checkpoints. 0 keeps all.",
    )  # fmt: skip

    def __init__(self, *args: Any, parameters: Sequence[Parameter] = (), **options: Any) -> None:
        super().__init__(*args, **options)
        self.parameters = parameters
        self.fields.update(parameter_fields(parameters))
        grace, own = self.fields["grace"], (options.get("initial") or {}).get("grace")
        if own is not None and own not in GRACES and isinstance(grace, forms.ChoiceField):
            usual = [(key, f"Run once, if it is at most {words} late") for key, words in GRACES.items()]
            grace.choices = [(own, f"Run once, if it is at most {own} seconds late"), *usual]

    @property
    def rows(self) -> list[forms.BoundField]:
        return [self[f"{BEFORE}{one.name}"] for one in self.parameters]

    def clean(self) -> dict[str, Any]:
        data: dict[str, Any] = super().clean() or {}
        zone = ZoneInfo(data["time_zone"]) if data.get("time_zone") in zones() else ZoneInfo("UTC")
        for name in ("starts_at", "ends_at"):
            data[name] = self._moment(name, data.get(name, ""), zone)
        return data

    def said(self) -> dict[str, Any]:
        """The fields as `services` takes them."""
        data = self.cleaned_data
        plain = {name: data[name] for name in ("name", "time_zone", "starts_at", "ends_at", "overlap", "grace")}
        values = given_values(self.parameters, data)
        return {**plain, "cron": self.expression, "keeps": data["keeps"] or 0, "values": values}

    def _moment(self, name: str, text: str, zone: ZoneInfo) -> datetime | None:
        if not text:
            return None
        try:
            return datetime.fromisoformat(text).replace(tzinfo=zone)
        except ValueError:
            self.add_error(name, "This is not a date and time. Enter it as 2026-12-01T02:00.")
            return None


def initial_of(schedule: Schedule) -> Mapping[str, Any]:
    """The form that says this schedule."""
    easy, zone = easy_of(schedule.cron), ZoneInfo(schedule.time_zone)
    moments = {name: getattr(schedule, name) for name in ("starts_at", "ends_at")}
    return {
        "name": schedule.name,
        "every": easy.every,
        "at": easy.at,
        "weekday": easy.weekday,
        "day": easy.day,
        "cron": schedule.cron,
        "time_zone": schedule.time_zone,
        **{name: one and timezone.localtime(one, zone).strftime(_LOCAL) for name, one in moments.items()},
        "overlap": schedule.overlap,
        "grace": schedule.grace,
        "keeps": schedule.keeps,
        **{f"{BEFORE}{name}": written(value) for name, value in schedule.values.items()},
    }
