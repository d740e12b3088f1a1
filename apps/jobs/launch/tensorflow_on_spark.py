"""What a script for TensorFlowOnSpark is asked for beside its executors, as fields of the launch form. They are
arguments of the script, by the names that its examples have: a job says them nowhere else.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from django import forms

from apps.jobs.launch.parts import SpecForm, Values, WholeField
from yardmaster.job.spec import Role, Strategy

NUMBERS = {"spark_ps": "--num_ps"}
SWITCHES = {"spark_synchronous": "--synchronous", "spark_tensorboard": "--tensorboard"}
_WHOLE = re.compile("0|[1-9][0-9]{0,8}")
_CHOICES = (("", "Default of the script"), ("yes", "Yes"))


class OnSparkFields(SpecForm):
    """The fields, for the form that has them beside others."""

    spark_ps = WholeField(
        label="Parameter servers",
        help_text="How many executors are parameter servers (--num_ps). The others are workers.",
    )
    spark_synchronous = forms.CharField(
        label="Synchronous training", required=False, widget=forms.Select(choices=_CHOICES),
        help_text="Yes passes --synchronous to the script.",
    )  # fmt: skip
    spark_tensorboard = forms.CharField(
        label="TensorBoard of the script", required=False, widget=forms.Select(choices=_CHOICES),
        help_text="Yes passes --tensorboard to the script. The TensorBoard of the portal does not need it.",
    )  # fmt: skip

    def clean(self) -> Values:
        found = super().clean() or self.cleaned_data
        elsewhere = self.data.get("spark_cluster") and "spark_executors"
        executors = self.data.get(elsewhere or f"roles-{Role.EXECUTOR.value}-replicas", "")
        if self.texts()["strategy"] == Strategy.SPARK.value and executors.isdecimal():
            message = _trouble(found.get("spark_ps"), int(executors))
            if message:
                self.add_error("spark_ps", message)
        return found


def _trouble(servers: int | None, executors: int) -> str:
    if servers is None or 0 <= servers < executors:
        return ""
    if executors == 1:
        return "The only executor must be a worker. Enter 0, or add executors."
    return f"Of {executors} executors, 0 to {executors - 1} can be parameter servers: at least one must be a worker."


def with_arguments(spec: Values) -> Values:
    """The specification with these fields among the arguments, after those that were typed."""
    rest = {name: value for name, value in spec.items() if name not in (*NUMBERS, *SWITCHES)}
    typed = spec.get("arguments", [])
    if spec.get("strategy") != Strategy.SPARK.value or not isinstance(typed, list):
        return rest
    numbers = [f"{flag}={spec[name]}" for name, flag in NUMBERS.items() if spec.get(name) not in (None, "")]
    added = [*numbers, *(flag for name, flag in SWITCHES.items() if spec.get(name))]
    return rest | ({"arguments": [*typed, *added]} if added else {})


def from_arguments(strategy: Strategy, arguments: Sequence[str]) -> tuple[list[str], Values]:
    """The arguments without those that these fields say, and the fields: what stands at the end as `with_arguments`
    adds it. All else stays where it is, since the order of arguments can matter."""
    left, fields = list(arguments), dict.fromkeys((*NUMBERS, *SWITCHES), "")
    if strategy is not Strategy.SPARK:
        return left, fields
    for name, switch in reversed(SWITCHES.items()):
        if left and left[-1] == switch:
            fields[name] = "yes"
            left.pop()
    for name, flag in reversed(NUMBERS.items()):
        last, _, value = (left[-1] if left else "").partition("=")
        if last == flag and _WHOLE.fullmatch(value):
            fields[name] = value
            left.pop()
    return left, fields
