"""Models and their versions: what jobs exported."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer
from rich.text import Text

from yardmaster_client.cli.output import Json, Namespace, notes, print_json, print_table, progress_bar, size
from yardmaster_client.downloads import folder_named
from yardmaster_client.models import Model
from yardmaster_client.names import find_model_version
from yardmaster_client.portal import Yardmaster

Reference = Annotated[str, typer.Argument(help="Name, name@version, name@stage, id, or the job that exported it.")]

app = typer.Typer(help="Models: what jobs exported.", no_args_is_help=True)


def register(parent: typer.Typer) -> None:
    parent.add_typer(app, name="models")


@app.command("list")
def list_models(namespace: Namespace = None, search: str | None = None, as_json: Json = False) -> None:
    """Models, newest first."""
    with Yardmaster.from_environment() as portal:
        found = list(portal.models.list(namespace=namespace, search=search))
    if as_json:
        print_json(found)
        return
    print_table(["NAME", "LATEST", "STAGE", "SIZE", "UPDATED", "ID"], (_row(one) for one in found))


def _row(model: Model) -> list[Any]:
    latest = model.latest
    facts = ["", "", ""] if latest is None else [f"@{latest.number}", latest.stage, size(latest.size)]
    return [model.name, *facts, model.updated_at, model.id]


@app.command()
def download(
    reference: Reference,
    to: Annotated[
        Path | None, typer.Option(help="The target folder. Default: the model's name, in the current directory.")
    ] = None,
    namespace: Namespace = None,
    as_json: Json = False,
) -> None:
    """Fetch a version's files. Those that are there already are not fetched again."""
    with Yardmaster.from_environment() as portal:
        version = find_model_version(portal, reference, namespace)
        folder = to or folder_named(portal.models.get(version.model).name)
        with progress_bar(f"Downloading {reference}") as progress:
            files = portal.models.download(version.id, folder, progress)
    if as_json:
        print_json({"version": version.id, "files": [str(file) for file in files]})
    else:
        notes().print(Text(f"{len(files)} files are in {folder}."))
