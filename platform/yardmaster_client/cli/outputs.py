"""The files that a job's tasks wrote below their log directories."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer
from rich.text import Text

from yardmaster_client.cli.output import Json, notes, print_json, print_table, progress_bar, size, visible
from yardmaster_client.jobs import is_wanted
from yardmaster_client.names import find_job
from yardmaster_client.portal import Yardmaster


def outputs(
    job: Annotated[str, typer.Argument(metavar="JOB", help="A name (the newest of it), an id, or how the id begins.")],
    attempt: Annotated[int | None, typer.Option(min=1, help="Of this attempt. Default: the newest.")] = None,
    to: Annotated[Path | None, typer.Option("--download", "-d", help="Fetch them into this folder.")] = None,
    only: Annotated[
        list[str] | None, typer.Option("--only", metavar="PATTERN", help="Only such files: '*.csv', 'worker-0/*'.")
    ] = None,
    as_json: Json = False,
) -> None:
    """The files that a job wrote to its log directory: event files, tables, images. Also while it runs."""
    with Yardmaster.from_environment() as portal:
        found = find_job(portal, job)
        if to is not None:
            with progress_bar(f"Downloading the outputs of {visible(found.name)}") as progress:
                files = portal.jobs.outputs_download(found.id, to, attempt, progress, only=only or ())
            if as_json:
                print_json({"job": found.id, "files": [str(file) for file in files]})
            else:
                notes().print(Text(f"{len(files)} files are in {to}."))
            return
        rows = [one for one in portal.jobs.outputs(found.id, attempt) if is_wanted(one.path, only or ())]
    if as_json:
        print_json(rows)
    else:
        print_table(["PATH", "SIZE", "UPLOADED"], ([one.path, size(one.size), one.updated_at] for one in rows))
