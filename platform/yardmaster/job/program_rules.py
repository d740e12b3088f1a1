"""Which specifications with a program of the portal's own, or with something to publish, are valid (`spec_rules`)."""

from __future__ import annotations

from collections.abc import Iterator

from yardmaster.errors import Problem
from yardmaster.job.programs import MODEL_SERVER, PROGRAMS, option_problems
from yardmaster.job.spec import USUAL_PATHS, Paths, Role, TrainingSpec
from yardmaster.job.spec_limits import SpecLimits, is_text, shorten
from yardmaster.job.strategy import PUBLISHING, is_service


def program_problems(spec: TrainingSpec, _: SpecLimits) -> Iterator[Problem]:
    """What is wrong with the program, its options, and what stands beside it."""
    program = PROGRAMS.get(spec.program)
    if not spec.program:
        if spec.options:
            message = "Options belong to a program; a script has arguments."
            yield Problem("options", "conflict", message, "Use arguments, or name a program.")
        if is_service(spec.strategy):
            message = "A service runs one of the portal's programs, and the job names none."
            yield Problem("program", "missing", message, f"Add program, such as {MODEL_SERVER}.")
        return
    if program is None:
        remedy = f"Known: {', '.join(PROGRAMS)}."
        yield Problem("program", "bad_value", "There is no such program.", remedy, shorten(spec.program))
        return
    if spec.strategy not in program.strategies:
        allowed = " or ".join(sorted(one.value for one in program.strategies))
        message = f"The program {spec.program} does not run under {spec.strategy.value}."
        yield Problem("program", "conflict", message, f"Use the strategy {allowed}.", spec.program)
    yield from _beside_program(spec)
    yield from option_problems(spec.program, spec.options)


def _beside_program(spec: TrainingSpec) -> Iterator[Problem]:
    name, program = spec.program, PROGRAMS[spec.program]
    for field, value in (("entry_point", spec.entry_point), ("arguments", " ".join(spec.arguments))):
        if value:
            message = f"The program {name} runs in the place of a script; it has options."
            yield Problem(field, "conflict", message, f"Remove {field}.", shorten(value))
    if program.needs_code and spec.options.get(program.needs_code) and spec.code_version is None:
        message = f"The option {program.needs_code} names a file of the code, and the job has no code."
        yield Problem("code", "missing", message, "Add the code version that has the file.")
    if program.needs_input and not spec.inputs:
        yield Problem("inputs", "missing", f"The program {name} reads an input.", "Add an input.")
    if program.inputs and (wrong := _wrong_inputs(spec)):
        known = " and ".join(f"a {kind} named {one}" for one, kind in program.inputs.items())
        message = f"The program {name} has {known} as its inputs, no other."
        yield Problem("inputs", "bad_value", message, "Correct the inputs.", wrong)
    if program.is_alone:
        yield from _beside_what_runs_alone(spec)
    if program.publishes and spec.publishes is None:
        message = f"What the program {name} writes is a dataset, and the job does not say which."
        yield Problem("publishes", "missing", message, 'Add publishes: {"dataset": name}.')


def _wrong_inputs(spec: TrainingSpec) -> str:
    """The inputs in words where they are not those of the program."""
    found = [(one.name, "dataset" if one.model_version is None else "model") for one in spec.inputs]
    if sorted(found) == sorted(PROGRAMS[spec.program].inputs.items()):
        return ""
    return shorten(", ".join(f"a {kind} named {name or 'nothing'}" for name, kind in found)) or "none"


def _beside_what_runs_alone(spec: TrainingSpec) -> Iterator[Problem]:
    """It writes where other jobs read, so that nothing of a user may run in its task."""
    why = f"The program {spec.program} runs alone"
    for field, value in (
        ("code", "" if spec.code_version is None else str(spec.code_version)),
        ("environment", ", ".join(spec.environment)),
        ("secrets", ", ".join(one.name for one in spec.secrets)),
        ("publishes", spec.publishes.dataset if spec.publishes else ""),
    ):
        if value:
            yield Problem(field, "conflict", f"{why}: it takes no {field}.", f"Remove {field}.", shorten(value))
    if spec.paths not in (Paths(), USUAL_PATHS):
        yield Problem("paths", "conflict", f"{why}: it takes no paths.", "Remove paths.")
    if spec.replicas(Role.WORKER) != 1:
        message = f"{why}: it has one worker."
        yield Problem("roles.worker.replicas", "conflict", message, "Request 1.", str(spec.replicas(Role.WORKER)))
    most = 1 if PROGRAMS[spec.program].needs_input else 0
    if len(spec.inputs) > most or any(one.model_version or one.name for one in spec.inputs):
        message = f"The program {spec.program} takes {'one unnamed version of a dataset' if most else 'no input'}."
        yield Problem("inputs", "conflict", message, "Correct inputs.", str(len(spec.inputs)))


def publishing_problems(spec: TrainingSpec, limits: SpecLimits) -> Iterator[Problem]:
    """What is wrong with what the job publishes."""
    found = spec.publishes
    if found is None:
        return
    if spec.strategy not in PUBLISHING:
        message = f"The tasks of {spec.strategy.value} do not publish a dataset."
        yield Problem("publishes", "conflict", message, "Use the strategy single, batch or spark.")
    name = found.dataset
    if not 1 <= len(name) <= limits.name or not name.isprintable() or name != name.strip():
        message = f"The name of a dataset has 1 to {limits.name} printable characters and no space at its ends."
        yield Problem("publishes.dataset", "bad_value", message, "Choose another name.", shorten(name))
    if len(found.note) > limits.note or not is_text(found.note):
        message = f"A note is a text of at most {limits.note} characters."
        yield Problem("publishes.note", "bad_value", message, "Shorten it.", shorten(found.note))
