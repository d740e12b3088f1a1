"""Uploads that no version was made of: interrupted ones hold quota until they are continued, discarded or a day old."""

from __future__ import annotations

from typing import Annotated

import typer
from rich.text import Text

from yardmaster_client.cli.output import Json, Namespace, notes, print_json, print_table, size
from yardmaster_client.portal import Yardmaster

app = typer.Typer(help="Unfinished uploads: list and discard them.", no_args_is_help=True)


def register(parent: typer.Typer) -> None:
    parent.add_typer(app, name="uploads")


@app.command("list")
def list_uploads(namespace: Namespace = None, as_json: Json = False) -> None:
    """Those that no version was made of, with the storage quota that each holds."""
    with Yardmaster.from_environment() as portal:
        found = list(portal.uploads(**({"namespace": namespace} if namespace else {})))
    if as_json:
        print_json(found)
        return
    names = ("id", "kind", "state", "file_count", "size", "created_at", "expires_at")
    rows = ([size(one[name]) if name == "size" else one[name] for name in names] for one in found)
    print_table(["ID", "KIND", "STATE", "FILES", "SIZE", "BEGUN", "EXPIRES"], rows)


@app.command()
def discard(ids: Annotated[list[str], typer.Argument(help="Ids, as `yardmaster uploads list` shows them.")]) -> None:
    """Delete what was sent of uploads, and return their quota."""
    with Yardmaster.from_environment() as portal:
        for one in ids:
            portal.upload_discard(one)
            notes().print(Text(f"Discarded {one}."))
