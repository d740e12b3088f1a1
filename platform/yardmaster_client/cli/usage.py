"""What all have used, for administrators. Not here: one's own namespaces (`namespaces`)."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from yardmaster_client.cli.output import Json, print_json, print_table
from yardmaster_client.portal import Yardmaster

app = typer.Typer(help="What was used: the reports of months, for administrators.", no_args_is_help=True)


def register(parent: typer.Typer) -> None:
    parent.add_typer(app, name="usage")


@app.command()
def month(
    month: Annotated[str, typer.Argument(help="A month that has begun, such as 2026-11.")],
    as_csv: Annotated[bool, typer.Option("--csv", help="Print the table for spreadsheets, with all rows.")] = False,
    by_user: Annotated[bool, typer.Option("--by-user", help="By namespace and user.")] = False,
    as_json: Json = False,
) -> None:
    """The report of a month: hours by namespace, and how much of each budget is used."""
    with Yardmaster.from_environment() as portal:
        if as_csv:
            table = bytearray()
            portal.month_report_csv(month, table.extend, by="user" if by_user else "namespace")
            typer.echo(table.decode(), nl=False)
            return
        found = portal.month_report(month)
    if as_json:
        print_json(found)
        return
    rows = found["namespace_users"] if by_user else found["namespaces"]
    last = "USER" if by_user else "BUDGET"
    lines = [[one["namespace"], *_hours(one), one["username"] if by_user else _percent(one)] for one in rows]
    print_table(["NAMESPACE", *_HOURS, last], [*lines, ["total", *_hours(found["total"]), ""]])


_HOURS = ("CPU HOURS", "GIB HOURS", "GPU HOURS", "COST")


def _hours(one: dict[str, Any]) -> list[str]:
    hours = [f"{one[name]:.2f}" for name in ("cpu_hours", "memory_gib_hours", "gpu_hours")]
    return [*hours, one["cost"] or ""]


def _percent(one: dict[str, Any]) -> str:
    return "" if one["budget_percent"] is None else f"{one['budget_percent']} %"
