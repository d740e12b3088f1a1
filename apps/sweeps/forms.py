"""The form of a new sweep: what is tried, in rows of a name and a text of values, and how it is judged.

It says a plan as the API takes it, so that the rules of both are the same. Not here: those rules.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from django import forms

from yardmaster.errors import Problem
from yardmaster.sweeps.plan import Goal, Method, Rule
from yardmaster.sweeps.space import LONGEST_NAME, LONGEST_TEXT, MOST_PARAMETERS

FIRST_ROWS = 4
_PLACE = re.compile(r"\{\{\s*([A-Za-z_][A-Za-z0-9_.-]*)\s*\}\}")
_METHODS = [(Method.GRID, "Grid: every combination"), (Method.RANDOM, "Random: a given number of trials")]
_GOALS = [(Goal.MINIMIZE, "Lower is better"), (Goal.MAXIMIZE, "Higher is better")]
_RULES = [
    (Rule.NONE, "Never: every trial runs to its end"),
    (Rule.MEDIAN, "Median rule: worse than the median of the others"),
    (Rule.HALVING, "Successive halving: not among the best at a rung"),
]


def _text(label: str, help_text: str = "", **attrs: Any) -> forms.CharField:
    widget = forms.TextInput(attrs={"autocomplete": "off", **attrs})
    return forms.CharField(label=label, required=False, help_text=help_text, widget=widget)


def _number(label: str, initial: int, help_text: str = "") -> forms.CharField:
    return forms.CharField(label=label, required=False, initial=str(initial), help_text=help_text,
                           widget=forms.NumberInput(attrs={"inputmode": "numeric"}))  # fmt: skip


class SweepForm(forms.Form):
    """Everything but the rows of parameters, which `rows` holds as they were typed."""

    name = _text("Name", "Its jobs are called name-001, name-002 and so on.", maxlength=150)
    method = forms.ChoiceField(label="Method", choices=_METHODS, initial=Method.GRID)
    trials = _number("Trials", 10, "Only for the method Random.")
    seed = _number("Seed", 0, "The same seed gives the same trials.")
    parallel = _number("Parallel trials", 2, "Trials that are queued or run at the same time.")
    metric = _text("Metric", "The tag of a scalar that the script writes. Empty: nothing is compared.", maxlength=200)
    run = _text("Run", "The folder of its event files, such as validation. Empty: the first by name.", maxlength=200)
    goal = forms.ChoiceField(label="Goal", choices=_GOALS, initial=Goal.MINIMIZE)
    target = _text("Target", "Once a trial is as good as this, the sweep ends.", maxlength=30, inputmode="decimal")
    rule = forms.ChoiceField(label="Stop early", choices=_RULES, initial=Rule.NONE)
    min_steps = _number("First step", 1, "No trial is stopped before this step. With halving, it is the first rung.")
    factor = _number("Factor", 3, "Only for halving: one in this many trials continues, and rungs grow by this factor.")
    stop_after_failures = _number("Failures in a row", 3, "The sweep pauses after this many. 0: it does not pause.")

    def __init__(self, data: Mapping[str, str] | None = None, *, base: Mapping[str, Any], more: bool = False) -> None:
        super().__init__(data, initial={"name": base.get("name", "")})
        names = suggested(base)
        placed = [one for one in names if one in _placed(base)]
        self.names = names
        self.rows = _rows(data) if data is not None else [(one, "") for one in placed]
        blank = FIRST_ROWS - len(self.rows) if data is None or not more else 3
        self.rows += [("", "")] * max(0 if self.rows else 1, blank)
        self.rows = self.rows[:MOST_PARAMETERS]
        self.can_add = len(self.rows) < MOST_PARAMETERS
        self.row_errors: dict[str, str] = {}

    @property
    def numbered(self) -> list[tuple[int, str, str, str]]:
        """Each row: its number, name, values, and what is wrong with it."""
        return [(at, name, text, self.row_errors.get(name, "")) for at, (name, text) in enumerate(self.rows)]

    def plan(self) -> dict[str, Any]:
        """The plan that the form says, of a bound form that is valid."""
        said = self.cleaned_data
        is_random = said["method"] == Method.RANDOM
        plan: dict[str, Any] = {
            "parameters": {name: text for name, text in self.rows if name or text},
            "method": said["method"],
            "early_stop": {
                "rule": said["rule"], "min_steps": _whole(said["min_steps"]), "factor": _whole(said["factor"]),
            },
        }  # fmt: skip
        plan |= {name: _whole(said[name]) for name in ("parallel", "stop_after_failures", "seed")}
        plan |= {"trials": _whole(said["trials"])} if is_random else {}
        if said["metric"]:
            plan["metric"] = {"tag": said["metric"], "goal": said["goal"]}
            plan["metric"] |= {"run": said["run"]} if said["run"] else {}
            plan["metric"] |= {"target": _decimal(said["target"])} if said["target"] else {}
        return plan

    def add_problems(self, problems: tuple[Problem, ...]) -> None:
        """Put each at the field or the row that it is about, all others above."""
        for one in problems:
            head, _, rest = one.field.partition(".")
            message = f"{one.message} {one.remedy}".strip()
            field = {"metric.tag": "metric", "early_stop.rule": "rule"}.get(one.field, rest or head)
            if head == "parameters" and rest in dict(self.rows):
                self.row_errors[rest] = message
            elif field in self.fields and head != "roles":
                self.add_error(field, message)
            else:
                where = f"{one.field}: " if one.field and head != "parameters" else ""
                self.add_error(None, f"{where}{message}")


def suggested(base: Mapping[str, Any]) -> list[str]:
    """Names that the job has places for: placeholders, and its flags."""
    arguments = base.get("arguments")
    flags = [
        one[2:].partition("=")[0]
        for one in (arguments if isinstance(arguments, list) else [])
        if isinstance(one, str) and one.startswith("--") and "{{" not in one
    ]
    return list(dict.fromkeys([*_placed(base), *(one for one in flags if one)]))[:50]


def _placed(base: Mapping[str, Any]) -> list[str]:
    texts: list[Any] = []
    for key in ("arguments", "environment", "parameters"):
        said = base.get(key)
        texts += list(said.values()) if isinstance(said, Mapping) else said if isinstance(said, list) else []
    return list(dict.fromkeys(name for one in texts if isinstance(one, str) for name in _PLACE.findall(one)))


def _rows(data: Mapping[str, str]) -> list[tuple[str, str]]:
    rows = []
    for number in range(MOST_PARAMETERS):
        name, text = data.get(f"p-{number}-name", "").strip(), data.get(f"p-{number}-values", "").strip()
        if name or text:
            rows.append((name[: LONGEST_NAME + 1], text[: LONGEST_TEXT + 1]))
    return rows


def _whole(text: str) -> int | str:
    return int(text) if text.isascii() and text.isdigit() and len(text) < 16 else text


def _decimal(text: str) -> float | str:
    try:
        return float(text)
    except ValueError:
        return text
