"""A job's log in the terminal: what is there, or as it comes; of one task, or of all with their names."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Annotated

import typer
from rich.console import Console
from rich.text import Text

from yardmaster_client.cli.open_lines import OpenLines
from yardmaster_client.cli.output import notes, out, print_json_line
from yardmaster_client.models import Job, LogGap, LogLine
from yardmaster_client.names import find_job
from yardmaster_client.portal import Yardmaster

_COLOURS = ("cyan", "green", "magenta", "yellow", "blue", "bright_red", "bright_cyan", "bright_green")
_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1a\x1c-\x1f\x7f-\x9f]|\x1b(?!\[[0-9;]*m)")


@dataclass(frozen=True)
class Part:
    """Which lines of a job's log. A negative `start` counts from the end."""

    role: str | None = None
    index: int | None = None
    attempt: int | None = None
    start: int = 0


def logs(
    job: Annotated[str, typer.Argument(metavar="JOB", help="A name (the newest of it), an id, or how the id begins.")],
    follow: Annotated[bool, typer.Option("--follow", "-f", help="Follow new lines until the job ends.")] = False,
    role: Annotated[
        str | None, typer.Option(help="Only this role: chief, worker, ps, evaluator, driver or executor.")
    ] = None,
    index: Annotated[int | None, typer.Option(min=0, help="The index of the task in its role. Default: 0.")] = None,
    attempt: Annotated[int | None, typer.Option(min=1, help="Default: the latest.")] = None,
    start: Annotated[int, typer.Option("--from", help="The first line; -100: only the last hundred.")] = 0,
    grep: Annotated[
        str | None, typer.Option(help="Only lines with this text; the portal searches all of them.")
    ] = None,
    regex: Annotated[bool, typer.Option("--regex", help="--grep is a regular expression.")] = False,
    level: Annotated[str | None, typer.Option(help="Only this level or above: error, warning, info.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="One JSON object per line.")] = False,
) -> None:
    """The log of a job: of all its tasks by time, or of one."""
    if index is not None and role is None:
        raise typer.BadParameter("--index needs --role")
    part = Part(role, index if role is None else index or 0, attempt, start)
    with Yardmaster.from_environment() as portal:
        found = find_job(portal, job)
        if grep is None and level is None:
            show = print_following if follow else _print_stored
            show(portal, found, part, as_json=as_json)
            return
        if follow:
            raise typer.BadParameter("--follow shows every line: leave out --grep and --level, or --follow")
        options = {"role": part.role, "index": part.index, "attempt": attempt, "level": level, "regex": int(regex)}
        _print(portal.jobs.search(found.id, grep or "", options), part, as_json)


def print_following(portal: Yardmaster, job: Job, part: Part, *, as_json: bool = False) -> None:
    """The lines as they come, until the job is over."""
    where = {"role": part.role, "index": part.index, "attempt": part.attempt, "start": part.start}
    unfinished = OpenLines(out(), with_task=part.role is None)
    lines = portal.jobs.follow(job.id, **where, **({} if as_json else {"on_open": unfinished.show}))
    try:
        _print(lines, part, as_json, before=unfinished.clear)
    finally:
        unfinished.clear()


def _print_stored(portal: Yardmaster, job: Job, part: Part, *, as_json: bool = False) -> None:
    lines = portal.jobs.lines(job.id, role=part.role, index=part.index or 0, attempt=part.attempt, start=part.start)
    _print(lines, part, as_json)


def _print(
    lines: Iterable[LogLine | LogGap], part: Part, as_json: bool, before: Callable[[], None] = lambda: None
) -> None:
    write = _writer(out(), with_task=part.role is None)
    for line in lines:
        before()
        if as_json:
            print_json_line(line)
        elif isinstance(line, LogGap):
            why = f": {line.detail}" if line.detail else ""
            notes().print(Text(f"--- {line.role}-{line.index}: {line.count} lines dropped{why} ---", style="red"))
        else:
            write(line)


def _writer(console: Console, *, with_task: bool) -> Callable[[LogLine], None]:
    """Prints a line, with its task where several are shown. A terminal gets colours and no control characters; a file
    or pipe gets the text as it is."""
    colours: dict[str, str] = {}
    for_people = console.is_terminal

    def write(line: LogLine) -> None:
        task = f"{line.role}-{line.index}"
        if not for_people:
            sys.stdout.write(f"{task} | {line.text}\n" if with_task else f"{line.text}\n")
            return
        if with_task:
            colour = colours.setdefault(task, _COLOURS[len(colours) % len(_COLOURS)])
            console.print(Text(f"{task:>11} ", style=colour), end="")
        console.print(Text.from_ansi(_CONTROL.sub("\ufffd", line.text)))

    return write
