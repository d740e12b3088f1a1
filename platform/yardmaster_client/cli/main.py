"""The command as a whole: its parts, and what becomes of errors."""

from __future__ import annotations

import os
import sys

import click
import typer

from yardmaster_client.cli import accounts, datasets, jobs, models, namespaces
from yardmaster_client.cli.output import fail
from yardmaster_client.errors import NotReachable, PortalError
from yardmaster_client.jobfile import JobFileError
from yardmaster_client.names import NotFound

REFUSED, USAGE, NOT_REACHABLE, INTERRUPTED = 1, 2, 3, 130

app = typer.Typer(
    name="yardmaster",
    help="Train on Yardmaster: upload data and code, launch jobs, follow their logs.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    add_completion=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
for register in (accounts.register, jobs.register, datasets.register, models.register, namespaces.register):
    register(app)


def main() -> None:
    """Run the command and exit."""
    sys.exit(run(sys.argv[1:]))


def run(arguments: list[str]) -> int:
    """Run the command with these arguments; returns its exit code."""
    try:
        result = typer.main.get_command(app).main(arguments, prog_name="yardmaster", standalone_mode=False)
    except click.exceptions.Exit as ended:
        return int(ended.exit_code)
    except click.ClickException as error:
        error.show()
        return USAGE
    except (click.Abort, KeyboardInterrupt):
        return INTERRUPTED
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # `… | head`: nobody reads the rest
        return 0
    except (NotFound, PortalError) as error:
        fail(error)
        return REFUSED
    except (JobFileError, LookupError, FileNotFoundError, ValueError) as error:
        fail(error)
        return USAGE
    except NotReachable as error:
        fail(error)
        return NOT_REACHABLE
    return int(result) if isinstance(result, int) else 0
