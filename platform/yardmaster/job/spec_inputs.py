"""Rules for the inputs that a specification names: their folders, how they are read, the `s3://` paths that they stand
for. Not here: whether the versions exist and have shards (`apps.jobs.checking`)."""

from __future__ import annotations

import re
from collections.abc import Iterator

from yardmaster.errors import Problem
from yardmaster.job.spec import DatasetInput, InputMode, InputShare, Strategy, TrainingSpec
from yardmaster.job.spec_limits import SpecLimits, is_text, shorten
from yardmaster.job.strategy import only_serves

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}", re.ASCII)
_S3_PATH = re.compile(r"s3://(?P<bucket>[A-Za-z0-9][A-Za-z0-9._-]{2,254})(?:/(?P<prefix>.*))?", re.ASCII | re.DOTALL)
_LONGEST_KEY = 1024
"""Bytes of an object's key in S3."""
_PATTERN = frozenset("*?[]{}\\")


def inputs_problems(spec: TrainingSpec, limits: SpecLimits) -> Iterator[Problem]:
    """Every problem of the spec's `inputs`."""
    if len(spec.inputs) > limits.inputs:
        message = f"There are at most {limits.inputs} inputs."
        yield Problem("inputs", "too_long", message, "Combine small datasets.", str(len(spec.inputs)))
        return
    yield from _names(spec)
    yield from _reading(spec)
    yield from _stand_ins(spec)


def s3_path_problem(path: str) -> str:
    """Why this is no path that an input can stand for; empty where it is one."""
    found = _S3_PATH.fullmatch(path)
    if found is None:
        return "An s3:// path begins with s3:// and the name of a bucket, of 3 characters at least."
    prefix = (found["prefix"] or "").removesuffix("/")
    if not is_text(prefix) or not prefix.isprintable() or len(prefix.encode()) > _LONGEST_KEY:
        return f"A prefix has at most {_LONGEST_KEY} bytes, all of them printable."
    if _PATTERN & set(prefix):
        return "A prefix is one folder, not a pattern: without * ? [ ] { } and \\."
    if prefix and any(part in ("", ".", "..") for part in prefix.split("/")):
        return "A prefix has / between its folders, and none that is empty, . or .."
    return ""


def _names(spec: TrainingSpec) -> Iterator[Problem]:
    seen: set[str] = set()
    for index, one in enumerate(spec.inputs):
        field = f"inputs.{index}.name"
        if not one.name and len(spec.inputs) > 1:
            message = "With several inputs, each needs a name. It becomes a subdirectory of the data directory."
            yield Problem(field, "missing", message, "Name it, for instance train.")
        elif one.name and not _NAME.fullmatch(one.name):
            message = (
                "An input's name is a folder's: letters, digits, dot, dash and _, beginning with a letter or digit."
            )
            yield Problem(field, "bad_value", message, "Rename it.", shorten(one.name))
        # Case folded: some file systems do not tell Train from train.
        elif one.name.casefold() in seen:
            yield Problem(field, "duplicate", "Two inputs have the same name.", "Rename one.", shorten(one.name))
        seen.add(one.name.casefold())


def _reading(spec: TrainingSpec) -> Iterator[Problem]:
    """What would silently do nothing is refused: where no script reads an input, and for models."""
    for index, one in enumerate(spec.inputs):
        why = _plain_only(spec, one)
        for name, value, default in (("mode", one.mode, InputMode.FOLDER), ("share", one.share, InputShare.ALL)):
            if why and value is not default:
                remedy = f"Write {default.value}, or remove {name}."
                yield Problem(f"inputs.{index}.{name}", "conflict", why, remedy, value.value)


def _plain_only(spec: TrainingSpec, one: DatasetInput) -> str:
    """Why shards of this input can neither be streamed nor divided; empty where they can."""
    if why := _no_script(spec):
        return why
    if spec.strategy is Strategy.PARAMETER_SERVER:
        return "With parameter_server, workers read in graphs that the chief makes, which can read plain files only."
    if spec.strategy is Strategy.SPARK and spec.spark is None:
        return "With spark, executors read what the driver gives them, and every task has all files."
    return "A model is copied before the start, to each task." if one.model_version is not None else ""


def _no_script(spec: TrainingSpec) -> str:
    if only_serves(spec.strategy):
        return f"{spec.strategy.value} runs no script that could read that way."
    return f"The program {shorten(spec.program)} reads plain files, all of them." if spec.program else ""


def _stand_ins(spec: TrainingSpec) -> Iterator[Problem]:
    seen: dict[str, int] = {}
    for index, one in enumerate(spec.inputs):
        field = f"inputs.{index}.stands_for"
        if not one.stands_for:
            continue
        path = one.stands_for.removesuffix("/")
        if why := _no_script(spec):
            yield Problem(field, "conflict", why, "Remove stands_for.", shorten(one.stands_for))
        elif why := s3_path_problem(one.stands_for):
            remedy = "Write for instance s3://bucket/folder, as the script has it."
            yield Problem(field, "bad_value", why, remedy, shorten(one.stands_for))
        elif path in seen:
            message = f"inputs.{seen[path]} stands for the same path."
            yield Problem(field, "duplicate", message, "Remove one of them.", shorten(one.stands_for))
        seen.setdefault(path, index)
