"""The programs of the portal's own that a job can run in the place of a user's script, and the options that each takes.

The runner starts them (`yardmaster_runner.own_programs`, which names the module of each). Who adds a program adds a row
here and one there. Not here: the other rules of a specification (`spec_rules`, which asks `option_problems`).
"""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType

from yardmaster.errors import Problem
from yardmaster.job.spec import Option, Strategy, TrainingSpec
from yardmaster.job.strategy import is_spark
from yardmaster_runner.spark.for_notebooks import EXECUTORS

MOST_OPTIONS = 50
PREPARE = "prepare"
PREDICT = "predict"
MODEL_SERVER = "model_server"
TENSORBOARD = "tensorboard"
JUPYTER = "jupyter"
SPARK_HISTORY = "spark_history"
VOLUME_COPY = "volume_copy"
VOLUME_REMOVE = "volume_remove"


@dataclass(frozen=True)
class Text:
    """A text of at most `most` characters; one of `choices`, where there are any; what `accepts` says yes to."""

    most: int = 255
    choices: tuple[str, ...] = ()
    accepts: Callable[[str], bool] | None = None
    expected: str = ""
    """What is expected, for the problem of a text that `accepts` refuses."""

    def problem(self, value: Option) -> str:
        """What is expected instead; empty where the value is one."""
        if not isinstance(value, str):
            return "Expected a text."
        if self.choices and value not in self.choices:
            return f"Expected one of {', '.join(one or 'an empty text' for one in self.choices)}."
        if len(value) > self.most or not all(letter.isprintable() for letter in value):
            return f"Expected at most {self.most} printable characters."
        return "" if self.accepts is None or self.accepts(value) else f"Expected {self.expected}."


@dataclass(frozen=True)
class Whole:
    """A whole number from `least` to `most`."""

    least: int
    most: int

    def problem(self, value: Option) -> str:
        """What is expected instead; empty where the value is one."""
        is_whole = isinstance(value, int) and not isinstance(value, bool)
        if is_whole and self.least <= value <= self.most:  # type: ignore[operator]
            return ""
        return f"Expected a whole number from {self.least} to {self.most}."


@dataclass(frozen=True)
class YesNo:
    """True or false."""

    def problem(self, value: Option) -> str:
        """What is expected instead; empty where the value is one."""
        return "" if isinstance(value, bool) else "Expected true or false."


@dataclass(frozen=True)
class Program:
    """One program. `needs_code` is an option that names a file of the code: with it the job needs `code`."""

    title: str
    strategies: frozenset[Strategy]
    options: Mapping[str, Text | Whole | YesNo] = field(default_factory=dict)
    required: tuple[str, ...] = ()
    needs_input: bool = True
    inputs: Mapping[str, str] = field(default_factory=dict)
    """Where not empty, the job has exactly these inputs: by name what each one is, `model` or `dataset`."""
    needs_code: str = ""
    describes: bool = False
    """Each of its tasks leaves `part-<n>.json`, and all of them together become `dataset.json`."""
    done: str = "Prepared"
    """What was done to the records, for the note of the version."""
    publishes: bool = False
    """What it writes is nothing but a dataset: a job without `publishes` would do nothing."""
    is_personal: bool = False
    """It runs as its owner: what it says and whether it runs is its owner's and the administrators' matter alone."""
    is_alone: bool = False
    """It writes where others read: one task, with nothing of a user beside it. Only the portal launches it."""


def _is_split(text: str) -> bool:
    parts = text.split("/")
    if len(parts) not in (2, 3) or not all(part.isascii() and part.isdecimal() and len(part) <= 3 for part in parts):
        return False
    return sum(int(part) for part in parts) == 100


def _is_mapping(text: str) -> bool:
    names = [one.partition("=") for one in text.split(",") if one]
    known = {name.strip() for name, _, _ in names}
    return len(known) == len(names) and all(
        name.strip() and equals and all(part.strip() for part in columns.split("+")) for name, equals, columns in names
    )


def _is_id(text: str) -> bool:
    try:
        return str(uuid.UUID(text)) == text
    except ValueError:
        return False


def _are_ids(text: str) -> bool:
    return all(map(_is_id, text.split(",")))


def _is_script(text: str) -> bool:
    return not text or text.endswith(".py")


_ID = Text(accepts=_is_id, expected="an ID")

PROGRAMS: Mapping[str, Program] = MappingProxyType(
    {
        PREPARE: Program(
            title="Prepare data",
            strategies=frozenset({Strategy.BATCH}),
            options={
                "format": Text(choices=("auto", "images", "text", "csv", "jsonl", "numpy")),
                "split": Text(accepts=_is_split, expected="percentages that add up to 100, such as 90/10 or 80/10/10"),
                "seed": Whole(0, 2**31 - 1),
                "label": Text(),
                "shard_bytes": Whole(1_000_000, 5_000_000_000),
                "records_per_shard": Whole(0, 10**9),
                "compression": Text(choices=("none", "gzip")),
                "on_bad_record": Text(choices=("fail", "skip")),
                "step": Text(accepts=_is_script, expected="the path of a Python file in the code, such as step.py"),
            },
            needs_code="step",
            describes=True,
            publishes=True,
        ),
        PREDICT: Program(
            title="Batch inference",
            strategies=frozenset({Strategy.BATCH}),
            options={
                "signature": Text(),
                "format": Text(choices=("auto", "tfrecord", "csv", "jsonl", "images", "text", "numpy")),
                "split": Text(),
                "columns": Text(most=2000, accepts=_is_mapping, expected="INPUT=COLUMN for each input, such as x=a+b"),
                "keep": Text(most=2000),
                "pixels": Text(choices=("0-255", "0-1")),
                "batch": Whole(1, 10_000),
                "write": Text(choices=("jsonl", "tfrecord", "tfrecord-gzip")),
                "shard_bytes": Whole(1_000_000, 5_000_000_000),
                "most_bad": Whole(0, 10**9),
            },
            inputs={"model": "model", "data": "dataset"},
            describes=True,
            done="Predicted",
            publishes=True,
        ),
        MODEL_SERVER: Program(
            title="Serve a model",
            strategies=frozenset({Strategy.SERVICE}),
            options={"name": Text(), "version": Text(most=20)},
            required=("name", "version"),
        ),
        TENSORBOARD: Program(
            title="TensorBoard",
            strategies=frozenset({Strategy.SERVICE}),
            options={"session": _ID, "bytes": Whole(1, 10**15)},
            required=("session", "bytes"),
            needs_input=False,
        ),
        SPARK_HISTORY: Program(
            title="Spark history",
            strategies=frozenset({Strategy.SERVICE}),
            options={"session": _ID, "bytes": Whole(1, 10**15)},
            required=("session", "bytes"),
            needs_input=False,
        ),
        JUPYTER: Program(
            title="JupyterLab",
            strategies=frozenset({Strategy.SERVICE}),
            options={
                "session": _ID,
                "owner": _ID,
                "portal": Text(most=2000),
                # Those of a Spark cluster beside it (`yardmaster_runner.spark.for_notebooks`).
                "spark_executors": Whole(1, 1_000),
                "cores": Whole(1, 10_000),
                "memory": Whole(1, 10**15),
            },
            required=("session", "owner"),
            needs_input=False,
            is_personal=True,
        ),
        VOLUME_COPY: Program(
            title="Publish to the data volume",
            strategies=frozenset({Strategy.BATCH}),
            options={"files": Whole(0, 10**9), "bytes": Whole(0, 10**18)},
            required=("files", "bytes"),
            is_alone=True,
        ),
        VOLUME_REMOVE: Program(
            title="Remove from a volume",
            strategies=frozenset({Strategy.BATCH}),
            options={
                "version": Text(accepts=_is_id, expected="the id of a dataset version"),
                "jobs": Text(most=10_000, accepts=_are_ids, expected="ids of jobs, with commas between them"),
            },
            needs_input=False,
            is_alone=True,
        ),
    }
)


def runs_spark(spec: TrainingSpec) -> bool:
    """Whether its tasks need Spark and Java: those of a Spark job, a Spark history, a notebook with executors."""
    has_cluster = spec.program == JUPYTER and (EXECUTORS in spec.options or spec.spark is not None)
    return is_spark(spec.strategy) or spec.program == SPARK_HISTORY or has_cluster


def option_problems(name: str, options: Mapping[str, Option]) -> Iterator[Problem]:
    """What is wrong with these options of a program."""
    program = PROGRAMS[name]
    for key, value in options.items():
        if key not in program.options:
            message = f"{name} has no such option."
            known = ", ".join(program.options) or "none"
            yield Problem(f"options.{key[:60]}", "unknown_key", message, f"Known here: {known}.")
        elif expected := program.options[key].problem(value):
            yield Problem(f"options.{key}", "bad_value", expected, "Correct it, or leave it out.", str(value)[:60])
    for key in program.required:
        if key not in options:
            yield Problem(f"options.{key}", "missing", f"{name} needs the option {key}.", f"Add options.{key}.")
