"""`jobs edit`: what people write on a job. Nothing that runs changes."""

from __future__ import annotations

from typing import Annotated

import typer

from yardmaster_client.cli.attempts import Which, print_state
from yardmaster_client.cli.output import Json
from yardmaster_client.names import find_job
from yardmaster_client.portal import Yardmaster

Tags = Annotated[list[str] | None, typer.Option("--tag", help="Add this tag. May be given several times.")]
Untags = Annotated[list[str] | None, typer.Option("--untag", help="Remove this tag. May be given several times.")]


def edit(
    job: Which,
    name: Annotated[str | None, typer.Option(help="The new name.")] = None,
    note: Annotated[str | None, typer.Option(help="A note, in the place of the one that it has.")] = None,
    tag: Tags = None,
    untag: Untags = None,
    archive: Annotated[
        bool | None, typer.Option("--archive/--unarchive", help="Leave it out of lists, or show it there again.")
    ] = None,
    pin: Annotated[bool | None, typer.Option("--pin/--unpin", help="Keep it on top of your own list, or not.")] = None,
    as_json: Json = False,
) -> None:
    """Rename a job, write a note, add and remove tags, archive or pin it."""
    with Yardmaster.from_environment() as portal:
        found = find_job(portal, job)
        tags = None
        if tag or untag:
            removed = {one.casefold() for one in untag or ()}
            tags = [one for one in (*portal.jobs.get(found.id).tags, *(tag or ())) if one.casefold() not in removed]
        found = portal.jobs.change(found.id, name=name, note=note, tags=tags, archived=archive)
        if pin is not None:
            portal.jobs.pin(found.id, pinned=pin)
    print_state(found, as_json)
