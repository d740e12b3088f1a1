"""One command in a task, without a terminal: its input, its output and its errors are pipes, and its exit code is what
the user's program ends with. All else is as with a terminal (`shell_host`).
"""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
from typing import Any, Dict, List, Optional

from yardmaster_runner.processes import descendants
from yardmaster_runner.shell_host import CANNOT_START, ShellHost, as_of_any_program, live_as
from yardmaster_runner.shell_protocol import STDERR, STDOUT, command_in, ends_input

CANNOT_EXECUTE = 126


def main() -> int:
    return live_as(CommandHost)


class CommandHost(ShellHost):
    """One command, from its begin to its end. It begins when the user has said what it is."""

    ended = "The command has ended."
    _ends_input = False
    _process: "Optional[subprocess.Popen[bytes]]" = None
    """Kept, so that its end is not taken from `_reap`."""

    def begin(self) -> None:
        """Nothing: the command comes as the first message."""

    def hear(self, value: Dict[str, Any]) -> None:
        command = command_in(value)
        if command and self._shell < 0 and self._exit_code is None:
            self._run(command)
        elif ends_input(value):
            self._ends_input = True
            self._close_input_at_its_end()

    def _run(self, command: List[str]) -> None:
        try:
            self._process = process = subprocess.Popen(
                command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, bufsize=0,
                cwd=self._orders["directory"], env=self._orders["environment"], start_new_session=True,
                preexec_fn=as_of_any_program,
            )  # fmt: skip
        except (OSError, subprocess.SubprocessError) as error:
            missing = isinstance(error, FileNotFoundError)
            self._exit_code = CANNOT_START if missing else CANNOT_EXECUTE
            self.print(STDERR + ("yardmaster: the command cannot be started: %s\n" % error).encode("utf-8", "replace"))
            return
        assert process.stdin is not None
        assert process.stdout is not None
        assert process.stderr is not None
        self._shell = process.pid
        self._input = os.dup(process.stdin.fileno())
        self._outputs = {os.dup(process.stdout.fileno()): STDOUT, os.dup(process.stderr.fileno()): STDERR}
        for pipe in (process.stdin, process.stdout, process.stderr):
            pipe.close()
        for one in (self._input, *self._outputs):
            os.set_blocking(one, False)

    def take(self, typed: bytes) -> int:
        """What a command does not read any more counts as taken, so that its user's program ends as in a pipe."""
        if self._input < 0 and (self._shell >= 0 or self._exit_code is not None):
            return len(typed)
        try:
            return os.write(self._input, typed)
        except BrokenPipeError:
            self._close_input()
            return len(typed)

    def type(self) -> None:
        super().type()
        self._close_input_at_its_end()

    def _close_input_at_its_end(self) -> None:
        if self._ends_input and not self._typed:
            self._close_input()

    def _close_input(self) -> None:
        if self._input >= 0:
            os.close(self._input)
            self._input = -1

    def end_output(self, output: int) -> None:
        super().end_output(output)
        os.close(output)

    def hang_up(self) -> None:
        self._close_input()
        for one in descendants(os.getpid()):
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.kill(one.pid, signal.SIGTERM)
