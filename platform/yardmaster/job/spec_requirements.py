"""Which packages a specification may ask for: names and versions, as pip writes them, and a few of its options. Not
here: the files of the code that name packages, which are read in the task (`yardmaster_runner.requirement_files`).
"""

from __future__ import annotations

from collections.abc import Iterator

from yardmaster.errors import Problem
from yardmaster.job.programs import JUPYTER
from yardmaster.job.spec import TrainingSpec
from yardmaster.job.spec_limits import SpecLimits, shorten
from yardmaster.job.strategy import runs_script
from yardmaster_runner.requirement_files import KEPT_OPTIONS, is_address, is_path, name_of


def requirements_problems(spec: TrainingSpec, limits: SpecLimits) -> Iterator[Problem]:
    """What is wrong with the requirements."""
    lines = spec.requirements or ()
    if lines and not runs_script(spec) and spec.program != JUPYTER:
        message = "Only a task that runs a script of yours, and a Jupyter, installs packages."
        yield Problem("requirements", "conflict", message, "Remove requirements.", str(len(lines)))
        return
    if len(lines) > limits.requirements:
        message = f"There are at most {limits.requirements} requirements."
        yield Problem("requirements", "too_long", message, "Remove some.", str(len(lines)))
        return
    for index, line in enumerate(lines):
        yield from _line_problems(f"requirements.{index}", line, limits)


def _line_problems(field: str, line: str, limits: SpecLimits) -> Iterator[Problem]:
    if len(line) > limits.requirement or not line.isprintable():
        message = f"A requirement is one line of at most {limits.requirement} characters."
        yield Problem(field, "bad_value", message, "Write one package in each.", shorten(line))
    elif line.startswith("-") and not line.startswith(KEPT_OPTIONS):
        message = "Of pip's options only --pre, --prefer-binary, --only-binary and --no-binary have a meaning here."
        yield Problem(
            field, "bad_value", message, "Remove it: where packages come from is set by the portal.", shorten(line)
        )
    elif is_address(line) or is_path(line):
        message = "Packages come from the portal's package index alone."
        yield Problem(field, "bad_value", message, "Write a name and a version, such as pandas>=2.", shorten(line))
    elif not line.startswith("-") and not name_of(line):
        message = "This is no requirement as pip reads them."
        yield Problem(field, "bad_value", message, "Write a name and a version, such as pandas>=2.", shorten(line))
