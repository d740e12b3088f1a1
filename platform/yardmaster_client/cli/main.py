"""The command as a whole: its parts, and what becomes of errors."""

from __future__ import annotations

import sys
from typing import Annotated

import typer

from yardmaster_client.cli import (
    accounts,
    audit,
    completion,
    connections,
    datasets,
    images,
    jobs,
    models,
    namespaces,
    schedules,
    secrets,
    serving,
    sessions,
    spark_clusters,
    sweeps,
    templates,
    unfinished,
    usage,
    volumes,
)
from yardmaster_client.cli.output import fail, out
from yardmaster_client.cli.warned import notice_shown, warned_once
from yardmaster_client.errors import NotReachable, NotSignedIn, PortalError
from yardmaster_client.jobfile import JobFileError
from yardmaster_client.names import NotFound
from yardmaster_client.version import VERSION

REFUSED, USAGE, NOT_REACHABLE = 1, 2, 3

app = typer.Typer(
    name="yardmaster",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    add_completion=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
for part in (
    accounts,
    jobs,
    templates,
    schedules,
    datasets,
    unfinished,
    models,
    serving,
    sessions,
    sweeps,
    namespaces,
    usage,
    volumes,
    secrets,
    connections,
    images,
    spark_clusters,
    audit,
    completion,
):
    part.register(app)


def _print_version(is_asked: bool) -> None:
    if is_asked:
        out().print(f"yardmaster {VERSION}")
        raise typer.Exit


@app.callback()
def _options(
    version: Annotated[
        bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Print the version.")
    ] = False,
) -> None:
    """Train on Yardmaster: upload data and code, launch jobs, follow their logs."""


def main() -> None:
    """Run the command and exit."""
    sys.exit(run(sys.argv[1:]))


def run(arguments: list[str]) -> int:
    """Run the command with these arguments; returns its exit code."""
    try:
        with warned_once(), notice_shown():
            app(args=arguments, prog_name="yardmaster")
    except SystemExit as ended:
        return ended.code if isinstance(ended.code, int) else 0
    except (NotFound, PortalError, TimeoutError) as error:
        fail(error)
        return REFUSED
    except (JobFileError, NotSignedIn, FileNotFoundError, ValueError) as error:
        fail(error)
        return USAGE
    except NotReachable as error:
        fail(error)
        return NOT_REACHABLE
    return 0
