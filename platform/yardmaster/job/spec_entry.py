"""What a job runs: its entry point (a script, a module or a notebook) or its command, and what belongs to each."""

from __future__ import annotations

import keyword
from collections.abc import Iterator

from yardmaster.errors import Problem
from yardmaster.job.spec import Strategy, TrainingSpec
from yardmaster.job.spec_limits import SpecLimits, is_text, shorten
from yardmaster.job.spec_texts import path_is_inside
from yardmaster.job.strategy import runs_script
from yardmaster_runner.entry_point import is_notebook, module_of

_HOW = "Write a path from the top of the code, such as train.py or src/train.ipynb, or a module: -m package.train."


def entry_problems(spec: TrainingSpec, limits: SpecLimits) -> Iterator[Problem]:
    """What is wrong with what the job runs."""
    if not runs_script(spec):
        yield from _without_script(spec)
        return
    yield from _command(spec, limits) if spec.command else _entry_point(spec.entry_point, limits)
    yield from _of_spark(spec)
    yield from _parameters(spec, limits)


def entry_words(spec: TrainingSpec) -> str:
    """What the job runs, as it is written in the specification."""
    return spec.command or spec.entry_point


def _without_script(spec: TrainingSpec) -> Iterator[Problem]:
    """It would silently do nothing."""
    parameters = ", ".join(spec.parameters)
    for field, value in (("command", spec.command), ("parameters", parameters), ("tf1", "true" if spec.tf1 else "")):
        if value:
            message = f"{field} belongs to a job that runs your code, and this one runs none."
            yield Problem(field, "conflict", message, f"Remove {field}.", shorten(value))


def _entry_point(entry_point: str, limits: SpecLimits) -> Iterator[Problem]:
    shown = shorten(entry_point)
    if entry_point.startswith("-m"):
        if module_of(entry_point) is None or len(entry_point) > limits.path:
            message = "A module is written as -m and its dotted name, and nothing else."
            remedy = "Write for instance -m package.train, and put its arguments into arguments."
            yield Problem("entry_point", "bad_value", message, remedy, shown)
    elif entry_point.startswith(("python ", "python3 ")):
        message = "The entry point is what Python runs, without python before it."
        yield Problem("entry_point", "bad_value", message, f"{_HOW} A whole command line is the field command.", shown)
    elif not path_is_inside(entry_point, limits.path):
        message = "The entry point is a relative path inside the code, with / between folders and without .. in it."
        yield Problem("entry_point", "bad_path", message, _HOW, shown)
    elif not entry_point.endswith(".py") and not is_notebook(entry_point):
        message = "The entry point is a Python file, a notebook or a module."
        yield Problem("entry_point", "bad_value", message, f"{_HOW} For anything else use the field command.", shown)


def _command(spec: TrainingSpec, limits: SpecLimits) -> Iterator[Problem]:
    command = spec.command
    for field, value in (("entry_point", spec.entry_point), ("arguments", " ".join(spec.arguments))):
        if value:
            message = f"A command is in the place of {field}: a job has one of the two."
            remedy = f"Remove command, or remove {field} and write it into the command."
            yield Problem("command", "conflict", message, remedy, shorten(command))
    if not command.strip() or not is_text(command):
        message = "A command is a line for the shell, in Unicode text without NUL."
        remedy = "Write for instance: python train.py --epochs 3"
        yield Problem("command", "bad_value", message, remedy, shorten(command))
    elif len(command) > limits.command:
        message = f"A command has at most {limits.command} characters."
        remedy = "Put it into a script of the code, and run that."
        yield Problem("command", "too_long", message, remedy, str(len(command)))


def _of_spark(spec: TrainingSpec) -> Iterator[Problem]:
    """What cannot be the driver of an application."""
    if spec.strategy is not Strategy.SPARK:
        return
    field = "command" if spec.command else "entry_point"
    if spec.command or (spec.entry_point and not spec.entry_point.endswith(".py")):
        message = "The driver of spark is a Python file."
        yield Problem(field, "conflict", message, "Write its path, such as train.py.", shorten(entry_words(spec)))
    if spec.tf1:
        yield Problem("tf1", "conflict", "spark has no TensorFlow 1 mode.", "Remove tf1.", "true")


def _parameters(spec: TrainingSpec, limits: SpecLimits) -> Iterator[Problem]:
    if spec.parameters and (spec.command or not is_notebook(spec.entry_point)):
        message = "Only a notebook has parameters."
        remedy = "Remove parameters, or pass them as arguments."
        yield Problem("parameters", "conflict", message, remedy, shorten(", ".join(spec.parameters)))
        return
    for name, value in spec.parameters.items():
        field = f"parameters.{shorten(name)}"
        if not name.isidentifier() or keyword.iskeyword(name) or len(name) > limits.name:
            message = "A parameter is the name of a Python variable."
            yield Problem(field, "bad_value", message, "Write letters, digits and _.", shorten(name))
        if isinstance(value, str) and len(value) > limits.text:
            message = f"A parameter has at most {limits.text} characters."
            yield Problem(field, "too_long", message, "Put it into a file in the code version.", str(len(value)))
        elif isinstance(value, str) and not is_text(value):
            message = "A parameter is Unicode text without NUL."
            yield Problem(field, "bad_value", message, "Remove the invalid character.")
