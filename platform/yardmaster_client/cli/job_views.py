"""How jobs, their reasons and their checks look in a terminal."""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any

from rich.text import Text

from yardmaster_client.cli.job_columns import title_of, words_of
from yardmaster_client.cli.output import PHASE_COLOURS, notes, out, phase, print_facts, print_table, size
from yardmaster_client.errors import PortalError
from yardmaster_client.models import Job

_VERDICTS = {
    "fits_now": ("Fits now.", "green"),
    "waits": ("Waits.", "yellow"),
    "never_fits": ("Can never start.", "red"),
}


def print_jobs(jobs: Iterable[Job], columns: Sequence[str] = ()) -> None:
    """A row each. `columns`: further ones, as the portal was asked for them."""
    rows = (
        [job.id, job.name, _state(job.phase, job.queue_state), _step(job),
         *(words_of(job.columns.get(key)) for key in columns), job.owner, job.created_at, job.message]
        for job in jobs
    )  # fmt: skip
    print_table(
        ["ID", "NAME", "PHASE", "PROGRESS", *(title_of(key) for key in columns), "OWNER", "CREATED", "REASON"], rows
    )


def print_job(job: Job, tasks: Sequence[Mapping[str, Any]]) -> None:
    """Everything about one job."""
    shape = ", ".join(f"{count} {role}" for role, count in job.replicas.items())
    print_facts(
        [
            ("name", job.name),
            ("id", job.id),
            ("phase", _state(job.phase, job.queue_state)),
            ("why", Text(_why(job.phase, job.reason, job.message, job.remedy))),
            ("progress", _step(job)),
            ("attempt", job.attempt),
            ("strategy", f"{job.strategy}: {shape}"),
            ("engine", job.engine),
            ("namespace", job.namespace_slug or job.namespace),
            ("owner", job.owner),
            ("created", job.created_at),
            ("admitted", job.admitted_at),
            ("started", job.started_at),
            ("decided", job.decided_at),
            ("model", job.model),
            *((("connect to", job.serving["target"]), ("reached", job.serving["reach"])) if job.serving else ()),
        ]
    )
    if tasks:
        out().print()
        rows = (
            [f"{one['role']}-{one['index']}", one["phase"], one.get("state", ""), one["restarts"], one["exit_code"],
             size(one.get("peak_memory")), one["node"], one["message"]]
            for one in tasks
        )  # fmt: skip
        print_table(["TASK", "PHASE", "DOES", "RESTARTS", "EXIT", "PEAK", "NODE", "MESSAGE"], rows)
    for one in tasks:
        if until := one.get("held_until"):
            name = f"{one['role']}-{one['index']}"
            out().print(Text(f"{name} failed (exit code {one['exit_code']}) and is held open until {until}."))
            out().print(Text(f"  yardmaster jobs shell {job.id} {name}, or jobs release to end it."), style="dim")


def print_check(found: Mapping[str, Any]) -> None:
    """What `jobs check` says."""
    words, colour = _VERDICTS[found["verdict"]]
    out().print(Text.assemble((words, f"bold {colour}"), " ", _sentence("", found["message"], found.get("remedy", ""))))
    _print_numbers(found.get("numbers", ()))
    if fit := found.get("largest_fit"):
        shape = ", ".join(f"{count} {role}" for role, count in fit.items())
        out().print(Text(f"The largest shape that fits now: {shape}."))
    for one in found.get("problems", ()):
        out().print(Text(f"  {one['field']}: {one['message']} {one['remedy']}", style="red"))
    for one in found.get("warnings", ()):
        place = f"{one['file']}:{one['line']}: " if one.get("file") else ""
        out().print(Text(f"  {place}{one['message']} {one['remedy']}", style="yellow"))
        for words in fixes_of(one):
            out().print(Text(f"    {words}", style="dim"))


def fixes_of(warning: Mapping[str, Any]) -> list[str]:
    """The changes that take the cause of a warning away, as options of `launch` and `check`."""
    fixes = [f"{one['label']}: --set {shlex.quote(_assignment(one))}" for one in warning.get("fixes", ())]
    made = [f"Make the dataset: yardmaster datasets make {shlex.quote(one)}" for one in [warning.get("makes")] if one]
    return fixes + made


def _assignment(fix: Mapping[str, Any]) -> str:
    if fix.get("adds"):
        return f"{fix['field']}+={fix['value']}"
    return f"{fix['field']}={fix['value']}" if fix["value"] else f'{fix["field"]}=""'


def print_never_fits(error: PortalError, *, with_message: bool) -> None:
    """Why a job can never start, before it is queued all the same: the numbers, and what could start."""
    if with_message:
        notes().print(Text.assemble(("Can never start. ", "bold red"), error.detail))
    _print_numbers(error.facts.get("numbers", ()), as_note=True)
    if fit := error.facts.get("largest_fit"):
        shape = ", ".join(f"{count} {role}" for role, count in fit.items())
        notes().print(Text(f"The largest shape that could start when nothing else runs: {shape}."))


def print_why(found: Mapping[str, Any]) -> None:
    """What `jobs why` says."""
    out().print(
        _state(found["phase"], found.get("queue_state")),
        Text(_why(found["phase"], found["reason"], found["message"], found["remedy"])),
    )
    _print_numbers(found.get("numbers", ()))
    if found.get("position") is not None:
        ahead = ", ".join(one["name"] for one in found.get("ahead", ()))
        hidden = f" and {found['ahead_hidden']} that you may not see" if found.get("ahead_hidden") else ""
        out().print(Text(f"Jobs ahead: {found['position']}. {ahead}{hidden}"))
    if estimate := found.get("estimate"):
        out().print(Text(f"Estimated start: {estimate['words']}."))
    for one in found.get("holders", ()):
        holds = ", ".join(f"{name} {_amount(name, amount)}" for name, amount in one["resources"].items() if amount)
        out().print(Text(f"  {one['name']} holds {holds}"))
    if task := found.get("task"):
        out().print(
            Text(f"First to fail: {task['role']}-{task['index']}, exit code {task['exit_code']}. Its last lines:")
        )
    for line in found.get("last_lines", ()):
        out().print(Text(f"  {line}", style="dim"))
    if explained := found.get("explanation"):
        out().print(Text(_sentence("", explained["message"], explained["remedy"]), style="bold"))


def verdict_of(job: Job) -> Text:
    """One line: the phase, and why."""
    sentence = _why(job.phase, job.reason, job.message, job.remedy)
    return Text.assemble(
        (job.phase, PHASE_COLOURS.get(job.phase, "")), f" {job.name}", f": {sentence}" if sentence else ""
    )


def stopping_line(job: Job) -> Text:
    """Of a job that was told to stop and is not over yet."""
    return Text.assemble(f"Stopping {job.name}. Phase: ", phase(job.phase), ".")


def phase_line(job: Job) -> Text:
    """One line for a job that has changed: when, its phase, its name, and why it waits."""
    when = datetime.now().astimezone().strftime("%H:%M:%S")
    waits = _sentence(job.message) if job.phase in ("QUEUED", "FAILED", "STOPPED") else ""
    attempt = f" (attempt {job.attempt})" if job.attempt > 1 else ""
    return Text.assemble((f"{when} ", "dim"), (f"{job.phase:<9}", PHASE_COLOURS.get(job.phase, "")),
                         f" {job.name}{attempt}", f": {waits}" if waits else "")  # fmt: skip


def _state(name: str, queue_state: str | None) -> Text:
    """The phase; of a queued job that can never start that, so that it does not look like one that waits."""
    return Text("QUEUED, CAN NEVER FIT", style="red") if queue_state == "never_fits" else phase(name)


def _print_numbers(numbers: Iterable[Mapping[str, Any]], *, as_note: bool = False) -> None:
    rows = [
        [one["pool"], one["resource"], *(_amount(one["resource"], one[part]) for part in _PARTS)] for one in numbers
    ]
    if rows:
        print_table(["OF", "RESOURCE", "NEEDS", "FREE", "LIMIT", "SHORT BY"], rows, as_note=as_note)


_PARTS = ("needs", "unused", "limit", "short_by")


def _amount(resource: str, value: float | None) -> str:
    if value is None:
        return ""
    return size(value) if resource in ("memory", "storage") else f"{value:g}"


def _why(phase: str, reason: str, message: str, remedy: str) -> str:
    """The reason's code stands first, unless it only repeats the phase."""
    code = "" if reason.upper() == phase else f"{reason}:" if reason and message else reason
    return _sentence(code, message, remedy)


def _sentence(*parts: str) -> str:
    return " ".join(part for part in parts if part)


def _step(job: Job) -> str:
    progress = job.progress or {}
    if "step" not in progress:
        return ""
    total = progress.get("total")
    unit = f" {progress['unit']}" if progress.get("unit") else ""
    return f"{progress['step']:.0f}/{total:.0f}{unit}" if total else f"{progress['step']:.0f}{unit}"
