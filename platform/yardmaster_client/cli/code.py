"""`yardmaster code open` and `save`: a folder to work in, from the portal and back."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer
from rich.text import Text

from yardmaster_client.cli.output import Json, Namespace, notes, print_json
from yardmaster_client.portal import Yardmaster


def add_to(app: typer.Typer) -> None:
    app.command("open")(open_version)
    app.command()(save)


def open_version(
    reference: Annotated[str, typer.Argument(help="Name, name@version or id.")],
    folder: Annotated[Path | None, typer.Argument(help="New or empty. Default: the name, right here.")] = None,
    namespace: Namespace = None,
) -> None:
    """Put a version's files into a folder to work on."""
    with Yardmaster.from_environment() as portal:
        place = portal.code.open(reference, folder, namespace=namespace)
    notes().print(Text(f"{reference} is in {place}. `yardmaster code save {place}` makes a new version of it."))


def save(
    folder: Annotated[Path, typer.Argument(help="The folder with the code.")],
    name: Annotated[str | None, typer.Argument(help="What the code is called. Default: the folder's name.")] = None,
    note: Annotated[str, typer.Option(help="A note for this version.")] = "",
    namespace: Namespace = None,
    as_json: Json = False,
) -> None:
    """Make the folder's files a new version. Without a change there is none."""
    with Yardmaster.from_environment() as portal:
        item = portal.code.save(folder, name, note, namespace=namespace)
    if as_json:
        print_json(item)
    else:
        notes().print(Text(f"{item.name}@{item.latest.number if item.latest else '?'} is there."))
