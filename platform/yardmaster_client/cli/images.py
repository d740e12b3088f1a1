"""Images that tasks may run in: which there are; and, for administrators, the catalogue."""

from __future__ import annotations

from typing import Annotated, Any

import typer
from rich.text import Text

from yardmaster_client.cli.output import Json, notes, print_facts, print_json, print_table
from yardmaster_client.cli.shared_things import Enabled, ForEveryone, OnlyFor, UsableBy, Yes, changed_or_created, given
from yardmaster_client.images import Image
from yardmaster_client.portal import Yardmaster

app = typer.Typer(help="Images that tasks may run in, by the names that jobs use.", no_args_is_help=True)
Name = Annotated[str, typer.Argument(metavar="IMAGE", help="Its name in the catalogue, such as tensorflow-2.19.")]


def register(parent: typer.Typer) -> None:
    parent.add_typer(app, name="images")


@app.command("list")
def list_images(
    namespace: UsableBy = None,
    as_json: Json = False,
) -> None:
    """The images that you may use."""
    with Yardmaster.from_environment() as portal:
        found = list(portal.images.list(namespace=namespace))
    if as_json:
        print_json(found)
        return
    rows = (
        [one.name, one.python, one.tensorflow, "yes" if one.gpus else "no", _strategies(one), one.description]
        for one in found
    )
    print_table(["NAME", "PYTHON", "TENSORFLOW", "GPUS", "STRATEGIES", "DESCRIPTION"], rows)


@app.command()
def show(image: Name, as_json: Json = False) -> None:
    """One image, with its reference and digest."""
    with Yardmaster.from_environment() as portal:
        found = portal.images.get(image)
    if as_json:
        print_json(found)
        return
    packages = "not known" if found.packages is None else ", ".join(found.packages)
    facts = {
        "Name": found.name, "Reference": found.reference, "Python": found.python, "TensorFlow": found.tensorflow,
        "Strategies": _strategies(found), "GPUs": "yes" if found.gpus else "no", "Description": found.description,
        "Pull secret": found.pull_secret, "For": "everyone" if found.everyone else ", ".join(found.namespaces),
        "Packages": packages, "New jobs": "" if found.enabled else "may not use it",
    }  # fmt: skip
    print_facts(facts.items())


@app.command("set")
def set_image(
    image: Name,
    reference: Annotated[str | None, typer.Option(help="registry/repository@sha256:…, needed for a new one.")] = None,
    python: Annotated[str | None, typer.Option(help="Its Python, such as 3.11.")] = None,
    tensorflow: Annotated[str | None, typer.Option(help="Its TensorFlow, such as 2.19.0.")] = None,
    strategies: Annotated[list[str] | None, typer.Option("--strategy", help="May be repeated. Default: all.")] = None,
    gpus: Annotated[bool | None, typer.Option("--gpus/--no-gpus", help="Whether scripts can use GPUs in it.")] = None,
    description: Annotated[str | None, typer.Option(help="What it is for.")] = None,
    pull_secret: Annotated[str | None, typer.Option(help="The name of the secret with which it is pulled.")] = None,
    namespaces: OnlyFor = None,
    everyone: ForEveryone = False,
    enabled: Enabled = None,
    packages: Annotated[list[str] | None, typer.Option("--package", help="One that it has. May be repeated.")] = None,
    as_json: Json = False,
) -> None:
    """Add an image to the catalogue, or change one (administrators). What is not given stays."""
    said: dict[str, Any] = {
        "reference": reference, "python": python, "tensorflow": tensorflow, "strategies": strategies, "gpus": gpus,
        "description": description, "pull_secret": pull_secret, "namespaces": namespaces, "enabled": enabled,
        "packages": packages, "everyone": True if everyone else None,
    }  # fmt: skip
    facts = given(said)
    with Yardmaster.from_environment() as portal:
        made = _set(portal, image, facts)
    if as_json:
        print_json(made)
    else:
        notes().print(Text(f"{made.name} is {made.reference}."))


@app.command()
def delete(image: Name, yes: Yes = False) -> None:
    """Remove an image from the catalogue (administrators). Jobs that are queued or running keep it."""
    if not yes:
        typer.confirm(f"Remove the image {image} from the catalogue?", abort=True, err=True)
    with Yardmaster.from_environment() as portal:
        portal.images.delete(image)
    notes().print(Text(f"Removed {image}."))


def _set(portal: Yardmaster, name: str, facts: dict[str, Any]) -> Image:
    missing = f"There is no image {name} yet. Give its --reference, with the digest, to add it."
    return changed_or_created(
        lambda: portal.images.change(name, **facts),
        lambda: portal.images.create(name, **facts),
        "" if "reference" in facts else missing,
    )


def _strategies(one: Image) -> str:
    return ", ".join(one.strategies) or "all"
