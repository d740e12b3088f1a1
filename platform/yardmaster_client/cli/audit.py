"""The audit: who did what, from where."""

from __future__ import annotations

from itertools import islice
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.text import Text

from yardmaster_client.cli.output import Json, notes, print_json, print_table
from yardmaster_client.portal import Yardmaster

app = typer.Typer(help="Who did what: administrators see all, managers their namespaces.", no_args_is_help=True)

Action = Annotated[str | None, typer.Option(help="Only this, such as session.fail or job.stop.")]
Person = Annotated[str | None, typer.Option(help="Only of this user, by name.")]
Since = Annotated[str | None, typer.Option(help="Not before, as 2026-11-22T08:00:00Z.")]
Until = Annotated[str | None, typer.Option(help="Before.")]


def register(parent: typer.Typer) -> None:
    parent.add_typer(app, name="audit")


@app.command("list")
def list_events(
    action: Action = None,
    person: Person = None,
    since: Since = None,
    until: Until = None,
    limit: Annotated[int, typer.Option(min=1, help="The maximum number, newest first.")] = 50,
    as_json: Json = False,
) -> None:
    """The newest events."""
    with Yardmaster.from_environment() as portal:
        found = list(islice(portal.audit(**_filters(action, person, since, until)), limit))
    if as_json:
        print_json(found)
        return
    columns = ("at", "actor_name", "action", "subject", "address", "count")
    print_table([name.upper() for name in columns], ([one[name] or "" for name in columns] for one in found))


@app.command("export")
def export_events(
    output: Annotated[Path, typer.Option("--output", "-o", help="The file to write.")],
    form: Annotated[str, typer.Option("--as", help="csv or jsonl.")] = "csv",
    action: Action = None,
    person: Person = None,
    since: Since = None,
    until: Until = None,
) -> None:
    """The events as a file."""
    if output.exists():
        raise ValueError(f"{output} already exists: choose another file.")
    with Yardmaster.from_environment() as portal, output.open("xb") as file:
        portal.audit_export(form, file.write, **_filters(action, person, since, until))
    notes().print(Text(f"Wrote {output}."))


def _filters(action: str | None, person: str | None, since: str | None, until: str | None) -> dict[str, Any]:
    return {"action": action, "actor_name": person, "since": since, "until": until}
