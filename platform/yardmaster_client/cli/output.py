"""How results, progress and errors look.

What the portal says was written by others: it is never read as markup, and no control character of it reaches a
terminal, where it could retitle the window, hide lines or type commands.
"""

from __future__ import annotations

import dataclasses
import json
import re
import sys
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn, TransferSpeedColumn
from rich.text import Text

from yardmaster_client import uploads
from yardmaster_client.cli import tables
from yardmaster_client.errors import FieldError, PortalError

Json = Annotated[bool, typer.Option("--json", help="Print JSON, for programs.")]
Namespace = Annotated[
    str | None, typer.Option("--namespace", "-n", help="Slug or ID. Default: your personal namespace.")
]

PHASE_COLOURS = {
    "QUEUED": "yellow",
    "STARTING": "cyan",
    "RUNNING": "blue",
    "STOPPING": "magenta",
    "SUCCEEDED": "green",
    "FAILED": "red",
    "STOPPED": "magenta",
}


_CONTROL = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u2028\u2029\u202a-\u202e\u2066-\u2069]")


def visible(text: str) -> str:
    """The text with a sign in the place of each control character, but for tabs and line ends."""
    return _CONTROL.sub("\ufffd", text)


class _Plain(Console):
    """Prints no control characters but its own."""

    def print(self, *objects: Any, **options: Any) -> None:
        super().print(*(_harmless(one) for one in objects), **options)


def _harmless(one: Any) -> Any:
    if isinstance(one, Text):
        one.plain = visible(one.plain)  # as long as before, so that styles stay in place
    return visible(one) if isinstance(one, str) else one


def out() -> Console:
    """For results. Made for each call, because tests and pipes replace stdout."""
    return _Plain(highlight=False, soft_wrap=True, markup=False)


def notes() -> Console:
    """For all that is no result."""
    return _Plain(stderr=True, highlight=False, soft_wrap=True, markup=False)


def plain(value: Any) -> Any:
    """A result as JSON has it."""
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {one.name: plain(getattr(value, one.name)) for one in dataclasses.fields(value)}
    if isinstance(value, datetime):
        return value.astimezone(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
    if isinstance(value, dict):
        return {key: plain(one) for key, one in value.items()}
    if isinstance(value, list | tuple):
        return [plain(one) for one in value]
    return value


def print_json(value: Any) -> None:
    sys.stdout.write(_as_json(value, indent=2) + "\n")


def print_json_line(value: Any) -> None:
    """One result of many, one per line."""
    sys.stdout.write(_as_json(value) + "\n")


def _as_json(value: Any, indent: int | None = None) -> str:
    text = json.dumps(plain(value), ensure_ascii=False, indent=indent)
    return _CONTROL.sub(lambda found: "\n" if found[0] == "\n" else f"\\u{ord(found[0]):04x}", text)


def print_table(columns: Sequence[str], rows: Iterable[Sequence[Any]], *, as_note: bool = False) -> None:
    """A row per line; see `tables` for how it fits a terminal."""
    cells = [[_cell(value) for value in row] for row in rows]
    if cells:
        tables.print_rows(notes() if as_note else out(), [Text(visible(column)) for column in columns], cells)
    else:
        notes().print("No results.", style="dim")


def print_facts(facts: Iterable[tuple[str, Any]]) -> None:
    """Names and values, one per line; those without a value are left out."""
    said = [(_cell(name), _cell(value)) for name, value in facts if value not in (None, "", (), [], {})]
    tables.print_pairs(out(), said)


def _cell(value: Any) -> Text:
    cell: Text = _harmless(value if isinstance(value, Text) else Text(shown(value)))
    return cell


def shown(value: Any) -> str:
    if isinstance(value, datetime):
        return value.astimezone().strftime("%Y-%m-%d %H:%M:%S")
    return "" if value is None else str(value)


def phase(name: str) -> Text:
    return Text(name, style=PHASE_COLOURS.get(name, ""))


def size(count: float | None) -> str:
    """Bytes as people read them."""
    if count is None:
        return ""
    amount, unit = float(count), "B"
    for following in ("KiB", "MiB", "GiB", "TiB"):
        if amount < 1024:
            break
        amount, unit = amount / 1024, following
    return f"{amount:.0f} {unit}" if unit == "B" else f"{amount:.1f} {unit}"


def fail(error: Exception) -> None:
    """Say on stderr what went wrong, with every field, its value, and what to do. Each problem is said once: the
    portal's sentence is left out where it only joins those of the fields."""
    console, said = notes(), str(error)
    errors = error.errors if isinstance(error, PortalError) else ()
    joined = "; ".join(f"{one.field}: {one.message}" if one.field else one.message for one in errors)
    head, depth = Text.assemble(("error: ", "bold red"), said), 1
    if errors and said.endswith(joined):
        head.right_crop(len(joined))
        depth = 0 if len(errors) == 1 else 1
        head.append_text(_of_field(errors[0]) if depth == 0 else Text(f"{len(errors)} problems:"))
    console.print(head)
    for one in errors:
        if depth:
            console.print(Text("  ").append_text(_of_field(one)))
        if one.remedy:
            console.print(Text(f"{'  ' * depth}  {one.remedy}", style="dim"))
    if remedy := getattr(error, "remedy", ""):
        console.print(Text(f"  {remedy}", style="dim"))


def _of_field(one: FieldError) -> Text:
    value = f" (here: {one.value})" if one.value else ""
    return Text.assemble((one.field, "bold"), ": " if one.field else "", one.message, value)


@contextmanager
def progress_bar(what: str) -> Iterator[uploads.Progress]:
    """A bar on stderr, where that is a terminal."""
    console = notes()
    columns = (TextColumn("{task.description}", markup=False), BarColumn(), DownloadColumn(), TransferSpeedColumn())
    with Progress(*columns, console=console, transient=True, disable=not console.is_terminal) as bar:
        task = bar.add_task(visible(what), total=None)
        yield lambda done, total: bar.update(task, completed=done, total=total)


_UNITS = {"": 1, "s": 1, "m": 60, "h": 3600, "d": 86_400}


def seconds_of(duration: str) -> int:
    """Of `90s`, `30m`, `2h` or `1d`."""
    found = re.fullmatch(r"([0-9]{1,7})([smhd]?)", duration.strip())
    if found is None:
        raise typer.BadParameter("Write a duration such as 30m or 2h.")
    return int(found[1]) * _UNITS[found[2]]


_POWERS = {"": 0, "Ki": 1, "Mi": 2, "Gi": 3, "Ti": 4, "Pi": 5}


def bytes_of(amount: str) -> int:
    """Of `512Mi`, `4Gi`, or a plain number of bytes."""
    found = re.fullmatch(r"([0-9]{1,15})((?:[KMGTP]i)?)B?", amount.strip())
    if found is None:
        raise typer.BadParameter("Write an amount of memory such as 512Mi or 4Gi.")
    return int(found[1]) << 10 * _POWERS[found[2]]


def duration(seconds: int) -> str:
    """`1h 30m`, as the pages write it."""
    pieces = []
    for unit in ("d", "h", "m", "s"):
        count, seconds = divmod(seconds, _UNITS[unit])
        if count:
            pieces.append(f"{count}{unit}")
    return " ".join(pieces) or "0s"
