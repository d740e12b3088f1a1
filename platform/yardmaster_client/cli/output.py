"""How results, progress and errors look. Everything from the portal is printed as it is, never as markup."""

from __future__ import annotations

import dataclasses
import json
import sys
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn, TransferSpeedColumn
from rich.table import Table
from rich.text import Text

from yardmaster_client import uploads
from yardmaster_client.errors import PortalError

Json = Annotated[bool, typer.Option("--json", help="Print JSON, for programs.")]
Namespace = Annotated[str | None, typer.Option("--namespace", "-n", help="Slug or id; without: your own.")]

PHASE_COLOURS = {
    "QUEUED": "yellow",
    "STARTING": "cyan",
    "RUNNING": "blue",
    "STOPPING": "magenta",
    "SUCCEEDED": "green",
    "FAILED": "red",
    "STOPPED": "magenta",
}


def out() -> Console:
    """For results. Made anew, because tests and pipes replace stdout."""
    return Console(highlight=False, soft_wrap=True)


def notes() -> Console:
    """For all that is no result."""
    return Console(stderr=True, highlight=False, soft_wrap=True)


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
    sys.stdout.write(json.dumps(plain(value), ensure_ascii=False, indent=2) + "\n")


def print_json_line(value: Any) -> None:
    """One result of many, one per line."""
    sys.stdout.write(json.dumps(plain(value), ensure_ascii=False) + "\n")


def print_table(columns: Sequence[str], rows: Iterable[Sequence[Any]]) -> None:
    table = Table(box=None, pad_edge=False, header_style="bold")
    for column in columns:
        table.add_column(column, overflow="fold")
    count = 0
    for row in rows:
        count += 1
        table.add_row(*(cell if isinstance(cell, Text) else Text(shown(cell)) for cell in row))
    if count:
        Console(highlight=False).print(table)
    else:
        notes().print("There are none.", style="dim")


def print_facts(facts: Iterable[tuple[str, Any]]) -> None:
    """Names and values, one per line; those without a value are left out."""
    table = Table(box=None, show_header=False, pad_edge=False)
    table.add_column(style="dim")
    table.add_column(overflow="fold")
    for name, value in facts:
        if value not in (None, "", (), [], {}):
            table.add_row(name, value if isinstance(value, Text) else Text(shown(value)))
    Console(highlight=False).print(table)


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
    """Say on stderr what went wrong, with every field, its value, and what to do."""
    console = notes()
    console.print(Text.assemble(("error: ", "bold red"), str(error)))
    for one in error.errors if isinstance(error, PortalError) else ():
        value = f" (here: {one.value})" if one.value else ""
        console.print(Text.assemble("  ", (one.field, "bold"), ": " if one.field else "", one.message, value))
        if one.remedy:
            console.print(Text(f"    {one.remedy}", style="dim"))
    if remedy := getattr(error, "remedy", ""):
        console.print(Text(f"  {remedy}", style="dim"))


@contextmanager
def progress_bar(what: str) -> Iterator[uploads.Progress]:
    """A bar on stderr, where that is a terminal."""
    console = notes()
    columns = (TextColumn("{task.description}"), BarColumn(), DownloadColumn(), TransferSpeedColumn())
    with Progress(*columns, console=console, transient=True, disable=not console.is_terminal) as bar:
        task = bar.add_task(what, total=None)
        yield lambda done, total: bar.update(task, completed=done, total=total)
