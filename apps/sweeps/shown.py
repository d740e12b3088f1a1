"""What the page of a sweep shows: its trials in a chosen order, and what its plots are drawn from. Reads nothing."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple
from urllib.parse import urlencode

from django.urls import reverse

from apps.sweeps.models import SweepTrial
from apps.sweeps.selectors import Standing, state_of, took
from yardmaster.sweeps.space import Choice, Parameter, Range, Scale, Value, text_of

ROWS = 50
CURVES = 10


class Look(NamedTuple):
    """How a state is said: a word, a colour of the portal's, and an icon."""

    word: str
    color: str
    icon: str


STATE_WORDS = {
    "waiting": Look("Not launched", "none", icon="clock-pause"),
    "queued": Look("Queued", "azure", icon="clock"),
    "running": Look("Running", "blue", icon="player-play"),
    "succeeded": Look("Succeeded", "green", icon="check"),
    "failed": Look("Failed", "red", icon="x"),
    "stopped": Look("Stopped", "none", icon="player-stop"),
    "stopped_early": Look("Stopped early", "orange", icon="player-skip-forward"),
}
SWEEP_WORDS = {
    "running": Look("Running", "blue", icon="player-play"),
    "paused": Look("Paused", "orange", icon="player-pause"),
    "stopping": Look("Stopping", "orange", icon="player-stop"),
    "ended": Look("Ended", "green", icon="check"),
}


@dataclass(frozen=True)
class Column:
    """The head of a column. `sort`: how it is sorted now; `url`: sorts by it."""

    words: str
    url: str
    sort: str = ""
    is_number: bool = False


@dataclass(frozen=True)
class Row:
    trial: SweepTrial
    state: Look
    values: list[tuple[str, bool]]
    """In words, each with whether it is a number."""
    seconds: float | None
    is_best: bool

    @property
    def best(self) -> str:
        return number_words(self.trial.best)

    @property
    def last(self) -> str:
        """At the last step: also where a value before it was one, and the last is no finite number."""
        return "not finite" if _ends_not_finite(self.trial) else number_words(self.trial.value)

    @property
    def has_job(self) -> bool:
        return self.trial.job is not None and self.trial.job.deleted_at is None


def number_words(value: float | None) -> str:
    """Five digits, as the charts say it."""
    return "–" if value is None else f"{value:.5g}"


def rows_of(found: Standing, order: str, first: int) -> tuple[list[Row], list[Column]]:
    """Some of the trials in this order, and the heads of the table. What is no order is that of the numbers."""
    keys = _keys(found)
    falls, name = order.startswith("-"), order.removeprefix("-")
    if name not in keys:
        falls, name = False, "trial"
    key = keys[name][1]
    known = [one for one in found.trials if key(one) is not None]
    known.sort(key=lambda one: (_sortable(key(one)), one.number), reverse=falls)
    trials = known + [one for one in found.trials if key(one) is None]
    rows = [_row(one, found) for one in trials[first : first + ROWS]]
    columns = []
    for each, (words, _, is_number) in keys.items():
        is_this = each == name
        sort = "" if not is_this else "descending" if falls else "ascending"
        turned = f"-{each}" if is_this and not falls else each
        columns.append(Column(words, f"?{urlencode({'order': turned})}#trials", sort, is_number))
    return rows, columns


def _keys(found: Standing) -> dict[str, tuple[str, Callable[[SweepTrial], Any], bool]]:
    keys: dict[str, tuple[str, Callable[[SweepTrial], Any], bool]] = {"trial": ("Trial", lambda one: one.number, False)}
    for parameter in found.plan.space:
        keys[f"p.{parameter.name}"] = (parameter.name, _value_of(parameter.name), _is_number(parameter))
    if found.metric is not None:
        keys["best"] = (f"Best {found.metric.tag}", lambda one: one.best, True)
        keys["last"] = ("Last", _last_of, True)
        keys["steps"] = ("Steps", lambda one: one.steps, True)
    keys["state"] = ("State", state_of, False)
    keys["took"] = ("Duration", lambda one: None if (it := took(one)) is None else it.total_seconds(), True)
    return keys


def _last_of(trial: SweepTrial) -> float | None:
    """What a trial is sorted by as its last value. None, and so after all others: it has none, or it is not finite."""
    return None if _ends_not_finite(trial) else trial.value


def _ends_not_finite(trial: SweepTrial) -> bool:
    return bool(trial.curve) and trial.curve[-1][1] is None


def _value_of(name: str) -> Callable[[SweepTrial], Any]:
    return lambda one: one.values.get(name)


def _sortable(value: Any) -> tuple[int, Any]:
    is_number = isinstance(value, (int, float)) and not isinstance(value, bool)
    return (0, value) if is_number else (1, str(value))


def _is_number(one: Parameter) -> bool:
    return isinstance(one, Range) or all(_sortable(value)[0] == 0 for value in one.values)


def _row(trial: SweepTrial, found: Standing) -> Row:
    values = [
        (text_of(trial.values[one.name]) if one.name in trial.values else "–", _is_number(one))
        for one in found.plan.space
    ]
    time = took(trial)
    seconds = None if time is None else time.total_seconds()
    return Row(trial, STATE_WORDS[state_of(trial)], values, seconds, found.best is not None and trial == found.best)


def plots_of(found: Standing) -> dict[str, Any]:
    """What is drawn: axes, a line for each trial with a value, and the curves of the best."""
    metric = found.metric
    if metric is None:
        return {}
    return {
        "axes": [_axis(one) for one in found.plan.space],
        "metric": {"tag": metric.tag, "goal": metric.goal.value},
        "trials": [
            {"n": one.number, "values": [one.values.get(axis.name) for axis in found.plan.space], "best": one.best,
             "state": STATE_WORDS[state_of(one)][0], "url": _url(one)}
            for one in found.ranked
        ],
        "curves": [{"n": one.number, "points": one.curve} for one in found.ranked[:CURVES] if one.curve],
    }  # fmt: skip


def _axis(one: Parameter) -> dict[str, Any]:
    if isinstance(one, Choice) and not _is_number(one):
        return {"name": one.name, "choices": [text_of(value) for value in one.values]}
    numbers: list[Value] = sorted(one.values) if isinstance(one, Choice) else [one.low, one.high]
    low, high = float(numbers[0]), float(numbers[-1])
    is_log = one.scale is Scale.LOG if isinstance(one, Range) else low > 0 and high / low >= 50
    return {"name": one.name, "low": low, "high": high, "log": is_log}


def _url(trial: SweepTrial) -> str:
    has_job = trial.job is not None and trial.job.deleted_at is None
    return reverse("job_page", args=[trial.job_id]) if has_job else ""
