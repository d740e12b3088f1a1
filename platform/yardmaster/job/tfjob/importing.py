"""The whole of a TFJob as a job file's data, with a note for each thing that is not the same."""

from __future__ import annotations

import posixpath
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from yardmaster.errors import SpecRejected
from yardmaster.job.spec import Paths, Role, Strategy
from yardmaster.job.spec_json import spec_from_json
from yardmaster.job.spec_limits import DEFAULT_LIMITS, shorten
from yardmaster.job.spec_reading import NO_ID
from yardmaster.job.spec_rules import CLASSIC_FLAGS
from yardmaster.job.tfjob.commands import Entry, as_argument, entry_of
from yardmaster.job.tfjob.parts import Findings, Kind, Note, Part
from yardmaster.job.tfjob.policies import limits_of, restarts_of, success_of
from yardmaster.job.tfjob.replicas import Replica, replicas_of
from yardmaster.job.tfjob.shapes import Shape, shape_of
from yardmaster.job.tfjob.volumes import Places

_SET_HERE = tuple(getattr(Paths(), key) for key in ("data_env", "log_env", "model_env"))
_ORDER = (
    "name", "strategy", "roles", "code", "entry_point", "command", "arguments", "environment", "inputs", "secrets",
    "requirements", "success", "retries", "max_runtime", "grace_period",
)  # fmt: skip


@dataclass(frozen=True)
class Imported:
    """The job file's data, with code and datasets by names that need not exist yet, and the notes."""

    spec: dict[str, Any]
    notes: tuple[Note, ...]
    image: str
    """Of the tasks that lead, as the TFJob names it; the note about it has the field `image`."""


def import_tfjob(document: Mapping[str, Any]) -> Imported:
    """The job that a TFJob of version v1 stands for. Raises `SpecRejected` with what cannot be read of it."""
    findings = Findings()
    top = Part("", document, findings)
    top.skip("apiVersion", "kind", "status")
    name = _name(top.part("metadata"))
    spec = top.part("spec")
    replicas = replicas_of(spec.part("tfReplicaSpecs"))
    if findings.problems:
        raise SpecRejected(findings.problems)
    made = _job(name, spec, replicas, findings)
    top.list_unread("The TFJob")
    spec.list_unread("The TFJob's spec")
    if findings.problems:
        raise SpecRejected(findings.problems)
    _list_invalid(made, findings)
    leading = [one.image for role in (Role.CHIEF, Role.WORKER) for one in replicas if one.role is role and one.image]
    return Imported(made, findings.notes, next(iter(leading), ""))


def _name(metadata: Part) -> str:
    name = metadata.text("name") or metadata.text("generateName").rstrip("-")
    plain = "".join(letter for letter in name if letter.isprintable()).strip()[: DEFAULT_LIMITS.name].strip()
    return plain or "tfjob"


def _job(name: str, spec: Part, replicas: Sequence[Replica], findings: Findings) -> dict[str, Any]:
    by_role = _one_each(replicas, findings)
    has_host_flags = any(_flag(text) in CLASSIC_FLAGS for one in replicas for text in one.argv)
    shape = shape_of(
        {role: one.count for role, one in by_role.items()},
        is_dynamic=spec.truth("enableDynamicWorker"), has_host_flags=has_host_flags, findings=findings,
    )  # fmt: skip
    lead = by_role[Role.CHIEF] if Role.CHIEF in by_role else by_role[Role.WORKER]
    policy = spec.part("runPolicy")
    made = {
        "name": name,
        "strategy": shape.strategy.value,
        "roles": _roles(shape, by_role, findings),
        "code": name,
        **_what_runs(name, lead, replicas, shape, findings),
        **success_of(spec, shape.strategy),
        **restarts_of(replicas, policy),
        **limits_of(policy, replicas),
    }
    _say_image(replicas, findings)
    return {key: made[key] for key in _ORDER if key in made and made[key] not in ("", [], {})}


def _one_each(replicas: Sequence[Replica], findings: Findings) -> dict[Role, Replica]:
    """Chief and Master are two names of one role."""
    found: dict[Role, Replica] = {}
    for one in replicas:
        if one.role in found:
            message = f"The TFJob has two entries for the role {one.role.value}: {shorten(one.place)} is left out."
            findings.note(Kind.CHANGED, one.place, message)
        found.setdefault(one.role, one)
    return found


def _roles(shape: Shape, by_role: Mapping[Role, Replica], findings: Findings) -> dict[str, Any]:
    roles = {}
    for role, source in shape.sources.items():
        one = by_role[source]
        roles[role.value] = {"replicas": shape.counts[role], **one.shape}
        missing = [key for key in ("cpu", "memory") if key not in one.shape]
        if missing:
            message = f"{role.value}: the TFJob asks for no {' and no '.join(missing)}: a job has defaults for it."
            findings.note(Kind.CHANGED, f"{one.place}.template", message, "Write how much each task needs.")
    return {role.value: roles[role.value] for role in Role if role.value in roles}


def _what_runs(
    name: str, lead: Replica, replicas: Sequence[Replica], shape: Shape, findings: Findings
) -> dict[str, Any]:
    """Entry point, arguments, variables, inputs and secrets: those of the role that leads, which all tasks have."""
    folders = [one.path for one in lead.mounts if one.kind == "configMap"]
    folders = [lead.working_dir, *folders] if lead.working_dir else folders
    entry = entry_of(lead.argv, folders, {*lead.environment, *(one["env"] for one in lead.secrets)})
    at = posixpath.join(lead.working_dir or "/", entry.moved_from) if entry.moved_from else ""
    places = Places(lead.mounts, at, [*_named(entry.arguments), *lead.environment.items()])
    found: dict[str, Any] = {
        "arguments": _arguments(entry, places, shape.strategy, findings),
        "environment": _environment(lead, places, findings),
        "inputs": places.inputs,
        "secrets": [dict(one) for one in lead.secrets],
        "requirements": list(entry.requirements),
    }
    found |= {"command": entry.command} if entry.command else {"entry_point": entry.entry_point or "train.py"}
    _say_entry(name, lead, entry, findings)
    places.list_mounts(Part(lead.place, {}, findings))
    for one in replicas:
        _list_differences(lead, one, findings)
    return found


def _named(arguments: Sequence[str]) -> list[tuple[str, str]]:
    """Each argument that may be a path, with the flag before it or in it."""
    found, before = [], ""
    for text in arguments:
        name, equals, value = text.partition("=")
        is_flag = text.startswith("-")
        found.append((name, value) if equals and is_flag else (before, text))
        before = text if is_flag and not equals else ""
    return found


def _arguments(entry: Entry, places: Places, strategy: Strategy, findings: Findings) -> list[str]:
    """With paths of volumes as a task knows them, and without what tells a task its place in the cluster."""
    found: list[str] = []
    skips_next = False
    for text, (name, value) in zip(entry.arguments, _named(entry.arguments), strict=True):
        flag, equals, _ = text.partition("=")
        if strategy is Strategy.BETWEEN_GRAPH and flag in CLASSIC_FLAGS:
            findings.note(Kind.CHANGED, "args", f"{flag} is left out: each task gets its own value.")
            skips_next = not equals
        elif not skips_next or text.startswith("-"):
            skips_next = False
            moved = places.in_task(name, value)
            if moved is not None:
                _say_moved(name, value, moved, findings)
                text = f"{name}={moved}" if text.startswith("-") else moved
            found.append(text)
        else:
            skips_next = False
    return found


def _environment(lead: Replica, places: Places, findings: Findings) -> dict[str, str]:
    found = {}
    for name, value in lead.environment.items():
        if name in _SET_HERE:
            message = f"{name} is left out: every task has it, with the path of its own folder."
            findings.note(Kind.CHANGED, "env", message)
            continue
        moved = places.in_task(name, value)
        if moved is not None:
            _say_moved(name, value, moved, findings)
        found[name] = as_argument(value) if moved is None else moved
    return found


def _say_moved(name: str, value: str, moved: str, findings: Findings) -> None:
    message = f"{shorten(name) or 'An argument'} was {shorten(value)} and is {moved}, which is the folder of the task."
    findings.note(Kind.CHANGED, "args", message)


def _say_entry(name: str, lead: Replica, entry: Entry, findings: Findings) -> None:
    where = f"{lead.place}.template.spec.containers"
    if not lead.argv:
        message = "The TFJob does not say what runs: the image does. The entry point train.py stands for it."
        findings.note(Kind.TO_DO, where, message, "Write entry_point, and arguments where it has any.")
    elif entry.command:
        message = "The command is kept as a command for the shell: its paths are those of the image."
        findings.note(Kind.TO_DO, where, message, "Write paths from the top of the code, or an entry_point.")
    remedy = f"Upload the folder with the script: yardmaster code upload FOLDER --name {shlex.quote(name)}"
    message = "The code was in the image. A job has it as code of its own, here by the name of the TFJob."
    if entry.moved_from:
        message = f"{shorten(entry.moved_from)} was in the image. In the code it is {entry.entry_point}."
    findings.note(Kind.TO_DO, where, message, remedy, f"code:{name}")
    if entry.to_add:
        message = f"The command installed {shorten(', '.join(entry.to_add), 200)} beside requirements.txt."
        findings.note(Kind.TO_DO, where, message, "Add these lines to requirements.txt.")
    if entry.installs:
        message = "pip install is no part of the command: tasks install what requirements or requirements.txt name."
        findings.note(Kind.CHANGED, where, message)


def _list_differences(lead: Replica, other: Replica, findings: Findings) -> None:
    """A job has one command, one set of variables and secrets for all tasks."""
    if other.role is lead.role:
        return
    own = {**{name: "" for name in other.environment if lead.environment.get(name) != other.environment[name]},
           **{one["env"]: "" for one in other.secrets if one not in lead.secrets}}  # fmt: skip
    if other.argv != lead.argv and other.argv:
        message = f"What {other.role.value} runs differs: all tasks of a job run what {lead.role.value} runs."
        remedy = "Let the script ask which task it is: YARDMASTER_ROLE, or TF_CONFIG."
        findings.note(Kind.CHANGED, f"{other.place}.template", message, remedy)
    if own:
        message = f"Variables of {other.role.value} alone are left out: {shorten(', '.join(own), 200)}."
        findings.note(Kind.LEFT_OUT, f"{other.place}.template", message, "Add them to environment, for all tasks.")


def _say_image(replicas: Sequence[Replica], findings: Findings) -> None:
    images = dict.fromkeys(one.image for one in replicas if one.image)
    for image in list(images)[:10]:
        message = (
            f"The image {shorten(image, 200)} is not taken: tasks run in the engine's, or in one of the catalogue."
        )
        remedy = "Put the packages that it adds into requirements.txt, or write image: NAME where the catalogue has it."
        findings.note(Kind.TO_DO, "image", message, remedy)


def _list_invalid(made: Mapping[str, Any], findings: Findings) -> None:
    """What a launch would refuse, with stand-ins for the code and the datasets."""
    inputs = [
        {key: one[key] for key in one if key != "dataset"} | {"dataset_version": str(NO_ID)}
        for one in made.get("inputs", [])
    ]
    data = {**made, "code": str(NO_ID), **({"inputs": inputs} if inputs else {})}
    try:
        spec_from_json(data)
    except SpecRejected as error:
        for one in error.problems:
            findings.note(Kind.TO_DO, one.field, one.message, one.remedy)


def _flag(text: str) -> str:
    return text.partition("=")[0]
