"""`yardmaster templates`: jobs with parameters, to be launched again and again."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.text import Text

from yardmaster_client.cli.attempts import ConfirmForeign, print_state
from yardmaster_client.cli.output import Json, Namespace, notes, print_facts, print_json, print_table
from yardmaster_client.names import find_in, find_job
from yardmaster_client.portal import Yardmaster
from yardmaster_client.schedules import Parameter

app = typer.Typer(help="Job templates: jobs with parameters, kept under a name.", no_args_is_help=True)
Which = Annotated[str, typer.Argument(metavar="TEMPLATE", help="Its name or ID.")]
Params = Annotated[
    list[str] | None,
    typer.Option("--param", "-p", metavar="NAME=VALUE", help="A value of a parameter. May be given several times."),
]


def register(parent: typer.Typer) -> None:
    parent.add_typer(app, name="templates")


def values_of(params: list[str] | None) -> dict[str, str]:
    """`lr=0.1` as a value by name. Raises `BadParameter`."""
    values: dict[str, str] = {}
    for one in params or ():
        name, equals, text = one.partition("=")
        if not equals or not name:
            raise typer.BadParameter(f"{one!r} is no value of a parameter: write NAME=VALUE.")
        values[name] = text
    return values


@app.command("list")
def list_templates(namespace: Namespace = None, as_json: Json = False) -> None:
    """Templates, the newest first."""
    with Yardmaster.from_environment() as portal:
        found = list(portal.templates.list(namespace=namespace))
    if as_json:
        print_json(found)
        return
    rows = ([one.name, one.namespace, one.revision, one.changed_at, one.description] for one in found)
    print_table(["NAME", "NAMESPACE", "REVISION", "CHANGED", "DESCRIPTION"], rows)


@app.command()
def show(template: Which, namespace: Namespace = None, as_json: Json = False) -> None:
    """One template with its parameters."""
    with Yardmaster.from_environment() as portal:
        found = portal.templates.get(find_in(portal.templates.list, template, "template", namespace))
    if as_json:
        print_json(found)
        return
    facts = {
        "Name": found.name, "Namespace": found.namespace, "Revision": found.revision,
        "Description": found.description, "Strategy": found.spec.get("strategy"),
        "Runs": found.spec.get("command") or found.spec.get("entry_point"),
        "Arguments": " ".join(found.spec.get("arguments", ())), "Latest": ", ".join(found.latest),
        "Engine": found.engine,
    }  # fmt: skip
    print_facts(facts.items())
    if found.parameters:
        rows = ([one.name, one.kind, "" if one.default is None else one.default, _bounds(one), one.help]
                for one in found.parameters)  # fmt: skip
        print_table(["PARAMETER", "KIND", "DEFAULT", "ALLOWED", "HELP"], rows)


@app.command()
def create(
    name: Annotated[str, typer.Argument(metavar="NAME", help="What the template is called.")],
    job: Annotated[str, typer.Option(help="The job that it is made of: its name or ID.")],
    parameters: Annotated[
        Path | None, typer.Option(help='A JSON file: [{"name": "lr", "kind": "number", "default": 0.1}].')
    ] = None,
    argument: Annotated[
        list[str] | None, typer.Option("--argument", help="The arguments, with {{name}}. Default: those of the job.")
    ] = None,
    latest: Annotated[
        list[str] | None, typer.Option(help="Taken in its latest version at each launch: code, inputs.0.")
    ] = None,
    description: Annotated[str, typer.Option(help="For people.")] = "",
    as_json: Json = False,
) -> None:
    """Save a job as a template in its namespace."""
    with Yardmaster.from_environment() as portal:
        source = find_job(portal, job)
        more: dict[str, Any] = {"job": source.id}
        if argument is not None:
            full = portal.jobs.get(source.id)
            more = {"spec": {**full.spec, "arguments": argument}, "namespace": full.namespace, "engine": full.engine}
        declared = [] if parameters is None else json.loads(parameters.read_text(encoding="utf-8"))
        made = portal.templates.create(name, parameters=declared, latest=latest or (), description=description, **more)
    if as_json:
        print_json(made)
    else:
        notes().print(Text(f"Saved the template {made.name} in {made.namespace}."))


@app.command()
def launch(
    template: Which,
    param: Params = None,
    name: Annotated[str, typer.Option(help="The name of the job. Default: that of the template's job.")] = "",
    accept_never_fits: Annotated[
        bool, typer.Option("--accept-never-fits", help="Queue it even if it can never start as things are.")
    ] = False,
    confirm_foreign_model: ConfirmForeign = False,
    revision: Annotated[int | None, typer.Option(min=1, help="Launch this revision. Default: the newest.")] = None,
    namespace: Namespace = None,
    as_json: Json = False,
) -> None:
    """Launch a job from a template: yardmaster templates launch nightly --param lr=0.1"""
    values = values_of(param)
    with Yardmaster.from_environment() as portal:
        found = find_in(portal.templates.list, template, "template", namespace)
        asked = {"accept_never_fits": accept_never_fits, "confirm_foreign_model": confirm_foreign_model}
        job = portal.templates.launch(found, values, name=name, revision=revision, **asked)
    print_state(job, as_json)


@app.command()
def remove(template: Which, namespace: Namespace = None) -> None:
    """Remove a template. Its jobs stay."""
    with Yardmaster.from_environment() as portal:
        portal.templates.delete(find_in(portal.templates.list, template, "template", namespace))
    notes().print(Text(f"Removed {template}."))


def _bounds(one: Parameter) -> str:
    if one.choices:
        return ", ".join(one.choices)
    least = "" if one.minimum is None else f"from {one.minimum:g}"
    most = "" if one.maximum is None else f"to {one.maximum:g}"
    return f"{least} {most}".strip()
