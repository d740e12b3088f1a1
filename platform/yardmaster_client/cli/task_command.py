"""`yardmaster jobs shell JOB -- COMMAND`: one command in a running task, for scripts and pipes. Its input is ours, its
output and its errors too, and its exit code."""

from __future__ import annotations

import os
import threading
from collections.abc import Sequence
from typing import Any

import typer
from rich.status import Status
from rich.text import Text
from typer.core import TyperCommand

from yardmaster_client.cli.output import notes, visible
from yardmaster_client.shell import Shell

CHUNK = 16 << 10
LOST, INTERRUPTED, NO_READER = 255, 130, 141
"""What we exit with where the command has no exit code: the connection was lost (as `ssh` does), Ctrl+C, and a pipe
that takes no more."""
_KEY = "yardmaster.command"


class WithCommand(TyperCommand):
    """A command of ours with another one behind `--`, whose options are no options of ours."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        if "--" in args:
            at = args.index("--")
            args, ctx.meta[_KEY] = args[:at], args[at + 1 :]
        return super().parse_args(ctx, args)

    def collect_usage_pieces(self, ctx: Any) -> list[str]:
        return [*super().collect_usage_pieces(ctx), "[-- COMMAND ...]"]


def command_behind(context: typer.Context) -> Sequence[str] | None:
    """The command behind `--`; None where there is no `--`."""
    found: Any = context.meta.get(_KEY)
    if found == []:
        raise typer.BadParameter("Name the command that is to run, behind --.")
    return found if found is None else list(found)


def run(opened: Shell, task: str) -> int:
    """Run it to its end; what we are to exit with."""
    try:
        with connecting(task):
            opened.wait_until_open()
        threading.Thread(target=_feed, args=(opened,), daemon=True).start()
        for stream, printed in opened.printed():
            _write(stream, printed)
    except KeyboardInterrupt:
        return INTERRUPTED
    except BrokenPipeError:
        return NO_READER
    if opened.exit_code is None:
        notes().print(Text(f"The command was ended. {opened.why}"))
        return LOST
    return opened.exit_code


def _feed(opened: Shell) -> None:
    while True:
        try:
            given = os.read(0, CHUNK)
        except OSError:  # there is no input
            given = b""
        if not given:
            opened.end_input()
            return
        opened.send(given)


def _write(stream: int, printed: bytes) -> None:
    left = memoryview(printed)
    while left:
        left = left[os.write(stream, left) :]


def connecting(task: str) -> Status:
    """Shown while the task is waited for, to a person: in a script, what is on the error output is the command's."""
    words = visible(f"Connecting to {task} … This usually takes up to 5 seconds.")
    return notes().status(Text(words, style="dim"))
