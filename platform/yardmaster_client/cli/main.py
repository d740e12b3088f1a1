"""The command as a whole: its parts, and what becomes of errors."""

from __future__ import annotations

import sys

import typer

from yardmaster_client.cli import (
    accounts,
    audit,
    datasets,
    jobs,
    models,
    namespaces,
    secrets,
    serving,
    sessions,
    unfinished,
    volumes,
)
from yardmaster_client.cli.output import fail
from yardmaster_client.errors import NotReachable, NotSignedIn, PortalError
from yardmaster_client.jobfile import JobFileError
from yardmaster_client.names import NotFound

REFUSED, USAGE, NOT_REACHABLE = 1, 2, 3

app = typer.Typer(
    name="yardmaster",
    help="Train on Yardmaster: upload data and code, launch jobs, follow their logs.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    add_completion=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
for part in (accounts, jobs, datasets, unfinished, models, serving, sessions, namespaces, volumes, secrets, audit):
    part.register(app)


def main() -> None:
    """Run the command and exit."""
    sys.exit(run(sys.argv[1:]))


def run(arguments: list[str]) -> int:
    """Run the command with these arguments; returns its exit code."""
    try:
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
