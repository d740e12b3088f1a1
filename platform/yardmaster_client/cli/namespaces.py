"""Namespaces: where one may work, and how much capacity there is."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from yardmaster_client.cli.output import Json, print_facts, print_json, print_table, size
from yardmaster_client.names import find_namespace
from yardmaster_client.portal import Yardmaster

app = typer.Typer(help="Your namespaces and their quotas.", no_args_is_help=True)


def register(parent: typer.Typer) -> None:
    parent.add_typer(app, name="namespaces")


@app.command("list")
def list_namespaces(as_json: Json = False) -> None:
    """Your namespaces, with your role in each."""
    with Yardmaster.from_environment() as portal:
        found = list(portal.namespaces())
    if as_json:
        print_json(found)
        return
    rows = ([one.slug, "personal" if one.personal else "team", one.role, one.title, one.id] for one in found)
    print_table(["NAME", "KIND", "ROLE", "TITLE", "ID"], rows)


@app.command()
def show(namespace: Annotated[str, typer.Argument(help="Slug or id.")], as_json: Json = False) -> None:
    """One namespace: its quota, and what of it is used and set aside."""
    with Yardmaster.from_environment() as portal:
        found = find_namespace(portal, namespace)
        quota = portal.quota(found.id)
    if as_json:
        print_json({"namespace": found, "quota": quota})
        return
    print_facts([("name", found.slug), ("title", found.title), ("role", found.role), ("id", found.id)])
    rows = [[name, *(_amount(name, quota[part][name]) for part in _PARTS)] for name in quota["hard"]]
    for name, one in quota.get("extended", {}).items():
        rows.append([name, *(_amount(name, {"reserved": 0, **one}[part]) for part in _PARTS)])
    print_table(["RESOURCE", "USED", "SET ASIDE", "LIMIT"], rows)
    print_facts([("priority ceiling", str(quota.get("priority_ceiling", 0)))])


@app.command()
def usage(
    namespace: Annotated[str, typer.Argument(help="Slug or ID. Default: all that you manage.")] = "",
    begin: Annotated[str, typer.Option("--from", help="Date or time (ISO 8601); by default the month's first.")] = "",
    end: Annotated[str, typer.Option("--to", help="Date or time (ISO 8601); by default now.")] = "",
    as_json: Json = False,
) -> None:
    """Hours of processors, memory and GPUs that jobs held, by namespace, user and engine."""
    asked = {"namespace": namespace, "from": _time(begin), "to": _time(end)}
    with Yardmaster.from_environment() as portal:
        found = portal.usage(**{name: value for name, value in asked.items() if value})
    if as_json:
        print_json(found)
        return
    rows = [[one["namespace_slug"], one["username"], one["engine"], *_hours(one)] for one in found["results"]]
    print_table(["NAMESPACE", "USER", "ENGINE", *_HOURS], [*rows, ["total", "", "", *_hours(found["total"])]])


_PARTS = ("used", "reserved", "hard")
_HOURS = ("CPU HOURS", "GIB HOURS", "GPU HOURS", "JOBS")


def _hours(one: dict[str, Any]) -> list[str]:
    hours = [f"{one[name]:.2f}" for name in ("cpu_hours", "memory_gib_hours", "gpu_hours")]
    return [*hours, str(one["jobs"])]


def _time(text: str) -> str:
    """A date alone is its first moment, in UTC."""
    return f"{text}T00:00:00Z" if len(text) == len("2026-11-01") else text


def _amount(name: str, value: Any) -> str:
    if value is None:
        return "unlimited"
    return size(value) if name in ("memory", "storage") else f"{value:g}"
