"""`yardmaster jobs shell`: a terminal into a running task; `jobs release`, for one that is held open; `jobs stacks`."""

from __future__ import annotations

import contextlib
import os
import select
import signal
import sys
import termios
import threading
import tty
from collections.abc import Iterator, Mapping
from typing import Annotated

import typer
from rich.text import Text

from yardmaster_client.cli import task_command
from yardmaster_client.cli.output import notes
from yardmaster_client.names import find_job
from yardmaster_client.portal import Yardmaster
from yardmaster_client.shell import Shell

Which = Annotated[str, typer.Argument(metavar="JOB", help="A name (the newest of it), an id, or how the id begins.")]
Task = Annotated[
    str | None,
    typer.Argument(metavar="[TASK]", help="Such as worker-1. Default: the chief or the driver, else worker-0."),
]
CHUNK = 4096


def _leading_task(replicas: Mapping[str, int]) -> str:
    return f"{next((role for role in ('chief', 'driver') if replicas.get(role)), 'worker')}-0"


def shell(context: typer.Context, job: Which, task: Task = None) -> None:
    """Open a terminal in a running task. End it with `exit`, or with ~. at the start of a line.

    With a command behind `--`, run that alone, without a terminal: in scripts and pipes. Its exit code is the exit
    code; 255 if the connection was lost."""
    command = task_command.command_behind(context)
    if command is None and not (sys.stdin.isatty() and sys.stdout.isatty()):
        raise typer.BadParameter(
            "A terminal needs a keyboard and a screen: input and output must not be a file or a pipe. "
            "To run one command from a script: yardmaster jobs shell JOB [TASK] -- COMMAND."
        )
    with Yardmaster.from_environment() as portal:
        found = find_job(portal, job)
        chosen = task or _leading_task(found.replicas)
        with portal.jobs.shell(found.id, chosen, command or ()) as opened:
            if command is not None:
                raise typer.Exit(task_command.run(opened, chosen))
            with task_command.connecting(chosen):
                opened.wait_until_open()
            notes().print(Text("Connected. End with exit, or with ~. at the start of a line."), style="dim")
            _show(opened)
            notes().print(Text(f"\n{'It was closed.' if opened.was_closed else opened.why}"), style="dim")
            if opened.exit_code is None and not opened.was_closed:
                raise typer.Exit(1)


def release(job: Which, task: Task = None) -> None:
    """End failed tasks that are held open. Without TASK, all of the job."""
    with Yardmaster.from_environment() as portal:
        found = find_job(portal, job)
        held = [f"{one['role']}-{one['index']}" for one in portal.jobs.tasks(found.id) if one.get("state") == "held"]
        for one in [task] if task else held:
            portal.jobs.release(found.id, one)
            notes().print(Text(f"Released {one}."))
        if not task and not held:
            raise typer.BadParameter(f"No task of {found.name} is held open.")


def stacks(job: Which, task: Task = None) -> None:
    """Have a running task write where its threads stand to its log."""
    with Yardmaster.from_environment() as portal:
        found = find_job(portal, job)
        chosen = task or _leading_task(found.replicas)
        portal.jobs.stacks(found.id, chosen)
        notes().print(Text(f"The stacks of {chosen} are in its log within seconds."))


class Escape:
    """Finds `~.` at the start of a line in what is typed. What it keeps back is typed with what follows."""

    def __init__(self) -> None:
        self._is_at_start, self._is_held = True, False

    def take(self, typed: bytes) -> tuple[bytes, bool]:
        """What of it is to be sent, and whether the terminal is to end."""
        sent = bytearray()
        for one in typed:
            if self._is_held and one == ord("."):
                return bytes(sent), True
            if self._is_held:
                sent += b"~" if one != ord("~") else b""
            self._is_held = self._is_at_start and not self._is_held and one == ord("~")
            if not self._is_held:
                sent.append(one)
            self._is_at_start = one in b"\r\n"
        return bytes(sent), False


def _show(opened: Shell) -> None:
    with _raw():
        ends, wake = os.pipe()
        before = signal.signal(signal.SIGWINCH, lambda number, frame: os.write(wake, b"w"))
        os.write(wake, b"w")
        try:
            threading.Thread(target=_type, args=(opened, ends), daemon=True).start()
            for printed in opened.output():
                _print(printed)
        finally:
            signal.signal(signal.SIGWINCH, before)


def _print(printed: bytes) -> None:
    """As it is: it is a terminal that was asked for, with all that programs in it do."""
    left = memoryview(printed)
    while left:
        left = left[os.write(1, left) :]


def _type(opened: Shell, resized: int) -> None:
    escape = Escape()
    while True:
        ready, _, _ = select.select([0, resized], [], [])
        if resized in ready:
            os.read(resized, CHUNK)
            size = os.get_terminal_size(0)
            opened.resize(size.lines, size.columns)
        if 0 in ready:
            typed = os.read(0, CHUNK)
            sent, is_over = escape.take(typed)
            if sent:
                opened.send(sent)
            if is_over or not typed:
                opened.close()
                return


@contextlib.contextmanager
def _raw() -> Iterator[None]:
    """The terminal passes on each key as it is pressed, and is as before in the end."""
    before = termios.tcgetattr(0)
    tty.setraw(0)
    try:
        yield
    finally:
        termios.tcsetattr(0, termios.TCSADRAIN, before)
