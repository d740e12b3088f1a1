"""`yardmaster schedules`: templates that are launched at certain times."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated, Any

import typer
from rich.text import Text

from yardmaster_client.cli.attempts import print_state
from yardmaster_client.cli.output import Json, Namespace, notes, print_facts, print_json, print_table, seconds_of
from yardmaster_client.cli.templates import Params, values_of
from yardmaster_client.names import find_in
from yardmaster_client.portal import Yardmaster
from yardmaster_client.schedules import Schedule

app = typer.Typer(help="Schedules: templates that are launched at certain times.", no_args_is_help=True)
Which = Annotated[str, typer.Argument(metavar="SCHEDULE", help="Its name or ID.")]


class Overlap(StrEnum):
    """If the previous job has not ended."""

    SKIP = "skip"
    QUEUE = "queue"
    STOP = "stop"


def register(parent: typer.Typer) -> None:
    parent.add_typer(app, name="schedules")


@app.command("list")
def list_schedules(namespace: Namespace = None, as_json: Json = False) -> None:
    """Schedules, the newest first."""
    with Yardmaster.from_environment() as portal:
        found = list(portal.schedules.list(namespace=namespace))
    if as_json:
        print_json(found)
        return
    rows = (
        [one.name, one.namespace, one.template_name, one.cron, one.time_zone,
         "paused" if one.paused_at else one.next_at, one.owner]
        for one in found
    )  # fmt: skip
    print_table(["NAME", "NAMESPACE", "TEMPLATE", "CRON", "ZONE", "NEXT", "OWNER"], rows)


@app.command()
def show(schedule: Which, namespace: Namespace = None, as_json: Json = False) -> None:
    """One schedule, its next times and its last runs."""
    with Yardmaster.from_environment() as portal:
        found = portal.schedules.get(find_in(portal.schedules.list, schedule, "schedule", namespace))
        runs = [one for _, one in zip(range(10), portal.schedules.runs(found.id), strict=False)]
    if as_json:
        print_json({"schedule": found, "runs": runs})
        return
    values = " ".join(f"{name}={value}" for name, value in found.parameters.items())
    facts = {
        "Name": found.name, "Namespace": found.namespace, "Template": found.template_name, "Parameters": values,
        "Cron": f"{found.cron} ({found.time_zone})", "Owner": found.owner, "Overlap": found.overlap,
        "Paused": found.pause_reason if found.paused_at else "",
        "Next": ", ".join(f"{one:%Y-%m-%d %H:%M %Z}" for one in found.next_times),
    }  # fmt: skip
    print_facts(facts.items())
    if runs:
        rows = ([one.planned_at, one.state, one.job, one.phase, one.message] for one in runs)
        print_table(["TIME", "STATE", "JOB", "PHASE", "WHY"], rows)


@app.command()
def create(
    name: Annotated[str, typer.Argument(metavar="NAME", help="What the schedule is called.")],
    template: Annotated[str, typer.Option(help="The template: its name or ID.")],
    cron: Annotated[str, typer.Option(help="Minute, hour, day, month, day of the week: '0 2 * * *'.")],
    zone: Annotated[str, typer.Option("--zone", help="Time zone, such as Europe/Berlin.")] = "UTC",
    param: Params = None,
    overlap: Annotated[Overlap, typer.Option(help="If the previous job has not ended.")] = Overlap.SKIP,
    grace: Annotated[str, typer.Option(help="A missed run is made up for within this time: 1h, 1d.")] = "1h",
    keeps: Annotated[int, typer.Option(help="Ended jobs to keep; older ones are deleted. 0: all.")] = 0,
    namespace: Namespace = None,
    as_json: Json = False,
) -> None:
    """Launch a template at certain times, as yourself."""
    more: dict[str, Any] = {"time_zone": zone, "parameters": values_of(param), "overlap": overlap.value}
    more |= {"grace": seconds_of(grace), "keeps": keeps}
    with Yardmaster.from_environment() as portal:
        found = find_in(portal.templates.list, template, "template", namespace)
        _print(portal.schedules.create(name, template=found, cron=cron, **more), as_json)


@app.command()
def pause(schedule: Which, namespace: Namespace = None, as_json: Json = False) -> None:
    """Launch nothing until it is resumed."""
    with Yardmaster.from_environment() as portal:
        found = find_in(portal.schedules.list, schedule, "schedule", namespace)
        _print(portal.schedules.pause(found), as_json)


@app.command()
def resume(schedule: Which, namespace: Namespace = None, as_json: Json = False) -> None:
    """Launch again, from the next time on."""
    with Yardmaster.from_environment() as portal:
        found = find_in(portal.schedules.list, schedule, "schedule", namespace)
        _print(portal.schedules.resume(found), as_json)


@app.command()
def run(schedule: Which, namespace: Namespace = None, as_json: Json = False) -> None:
    """Launch its template now, as yourself."""
    with Yardmaster.from_environment() as portal:
        job = portal.schedules.run(find_in(portal.schedules.list, schedule, "schedule", namespace))
    print_state(job, as_json)


@app.command()
def remove(schedule: Which, namespace: Namespace = None) -> None:
    """Remove a schedule with its history. Its jobs stay."""
    with Yardmaster.from_environment() as portal:
        portal.schedules.delete(find_in(portal.schedules.list, schedule, "schedule", namespace))
    notes().print(Text(f"Removed {schedule}."))


def _print(found: Schedule, as_json: bool) -> None:
    if as_json:
        print_json(found)
        return
    if found.paused_at:
        notes().print(Text(f"{found.name} is paused."))
    elif found.next_at:
        notes().print(Text(f"{found.name} runs next at {found.next_at:%Y-%m-%d %H:%M %Z}."))
    else:
        notes().print(Text(f"{found.name} has no further time."))
