"""Rules for the secrets that a specification names. Not here: whether they exist (`apps.jobs.checking`)."""

from __future__ import annotations

import re
from collections.abc import Iterator

from yardmaster.errors import Problem
from yardmaster.job.spec import SecretInput, TrainingSpec
from yardmaster.job.spec_limits import SpecLimits, shorten
from yardmaster.job.spec_texts import path_is_inside, variable_problems
from yardmaster.job.strategy import only_serves

SECRETS_DIR = "SECRETS_DIR"
"""The variable that tells a script where the files of its secrets are."""
SECRET_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,127}", re.ASCII)
_STEERS = re.compile(
    r"LD_.*|DYLD_.*|PYTHON.*|PATH|HOME|TMPDIR|SHELL|IFS|ENV|BASH_ENV|GCONV_PATH|PERL5LIB|PERL5OPT|NODE_OPTIONS",
    re.ASCII,
)
"""Variables that choose which code a process runs, or where: a value that no member can read must not."""


def secrets_problems(spec: TrainingSpec, limits: SpecLimits) -> Iterator[Problem]:
    """Every problem of the spec's `secrets`."""
    if only_serves(spec.strategy) and spec.secrets:
        message = f"{spec.strategy.value} runs no script that could use a secret."
        yield Problem("secrets", "conflict", message, "Remove secrets.")
    elif len(spec.secrets) > limits.secrets:
        message = f"There are at most {limits.secrets} secrets."
        yield Problem("secrets", "too_long", message, "Put several values into one secret.", str(len(spec.secrets)))
    else:
        yield from _each(spec, limits.path)


def _each(spec: TrainingSpec, longest_path: int) -> Iterator[Problem]:
    taken = {name: f"environment.{name}" for name in spec.environment}
    taken |= {getattr(spec.paths, key): f"paths.{key}" for key in ("data_env", "log_env", "model_env", "output_env")}
    if any(one.file for one in spec.secrets):
        taken[SECRETS_DIR] = "the folder of secrets"
    taken.pop("", None)
    paths: dict[str, str] = {}
    for index, one in enumerate(spec.secrets):
        field = f"secrets.{index}"
        if not SECRET_NAME.fullmatch(one.name):
            message = "A secret's name has letters, digits and _, at most 128, and no digit first."
            remedy = "Write its name as the page of the namespace's secrets shows it."
            yield Problem(f"{field}.name", "bad_value", message, remedy, shorten(one.name))
        if not one.env and not one.file:
            message = "A secret needs a variable or a file."
            yield Problem(f"{field}.env", "missing", message, f"Add env, for instance {shorten(one.name) or 'TOKEN'}.")
        if one.env:
            yield from _env(f"{field}.env", one, taken)
            taken.setdefault(one.env, field)
        if one.file:
            yield from _file(f"{field}.file", one.file, paths, longest_path)
            paths.setdefault(one.file.casefold(), field)


def _env(field: str, one: SecretInput, taken: dict[str, str]) -> Iterator[Problem]:
    found = list(variable_problems(field, one.env))
    yield from found
    if found:
        return
    if one.env in taken:
        message = f"{one.env} is also set by {taken[one.env]}."
        yield Problem(field, "duplicate", message, "Use another variable, or remove one of them.", one.env)
    elif _STEERS.fullmatch(one.env):
        message = f"{one.env} steers which code a process runs. A secret cannot be its value."
        yield Problem(field, "reserved", message, "Use another variable, or set it in environment.", one.env)


def _file(field: str, path: str, paths: dict[str, str], longest: int) -> Iterator[Problem]:
    if not path_is_inside(path, longest):
        message = "The file is a relative path in the folder of secrets, with / between folders and without .. in it."
        yield Problem(field, "bad_path", message, "Write for instance .netrc or keys/service.json.", shorten(path))
        return
    # Case folded: some file systems do not tell Key from key.
    folded = path.casefold()
    for other, where in paths.items():
        if folded == other or folded.startswith(f"{other}/") or other.startswith(f"{folded}/"):
            message = f"This file and that of {where} are the same, or one is a folder of the other."
            yield Problem(field, "duplicate", message, "Use another path.", shorten(path))
            return
