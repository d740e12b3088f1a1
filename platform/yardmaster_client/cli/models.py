"""The models that jobs produced."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer
from rich.text import Text

from yardmaster_client.cli.output import Json, Namespace, notes, print_json, print_table, progress_bar, size
from yardmaster_client.downloads import folder_named
from yardmaster_client.names import find_job, find_model
from yardmaster_client.portal import Yardmaster

app = typer.Typer(help="The models that jobs produced.", no_args_is_help=True)


def register(parent: typer.Typer) -> None:
    parent.add_typer(app, name="models")


@app.command("list")
def list_models(namespace: Namespace = None, as_json: Json = False) -> None:
    """Models, newest first."""
    with Yardmaster.from_environment() as portal:
        found = list(portal.models(namespace=namespace))
    if as_json:
        print_json(found)
        return
    rows = ([one.id, one.name, one.attempt, one.file_count, size(one.size), one.created_at] for one in found)
    print_table(["ID", "JOB", "ATTEMPT", "FILES", "SIZE", "MADE"], rows)


@app.command()
def download(
    model: Annotated[str, typer.Argument(help="A model's id or name, or the job that made it.")],
    to: Annotated[
        Path | None, typer.Option(help="The target folder. Default: the model's name, in the current directory.")
    ] = None,
    as_json: Json = False,
) -> None:
    """Fetch a model's files. Those that are there already are not fetched again."""
    with Yardmaster.from_environment() as portal:
        found = find_model(portal, model)
        folder = to or folder_named(found.name or find_job(portal, found.job).name)
        with progress_bar(f"Downloading {found.name}") as progress:
            files = portal.model_download(found.id, folder, progress)
    if as_json:
        print_json({"model": found.id, "files": [str(file) for file in files]})
    else:
        notes().print(Text(f"{len(files)} files are in {folder}."))
