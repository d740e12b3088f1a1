"""Python inside a portal's settings, without the two seconds that Django takes to start: one process has started, and
each piece of code runs in a fork of it.

`python -m tests.real.forks` is that process. It reads one request per line and answers with the exit status.
"""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import sys
import tempfile
import traceback
from collections.abc import Mapping
from pathlib import Path
from typing import Any

MANAGE = "import sys\nfrom django.core.management import execute_from_command_line\nexecute_from_command_line(sys.argv)"


class Forks:
    """The process, started when it is first asked, in `folder` and with `environment`."""

    def __init__(self, folder: Path, environment: Mapping[str, str]) -> None:
        self.environment = dict(environment)
        self._process = subprocess.Popen(
            [sys.executable, "-m", "tests.real.forks"],
            cwd=folder, env=self.environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
        )  # fmt: skip

    def run(self, code: str, arguments: list[str]) -> str:
        """What the code printed. `sys.argv` are the arguments. Raises AssertionError where it fails."""
        with tempfile.TemporaryDirectory() as place:
            out, errors = Path(place) / "out", Path(place) / "errors"
            pipe_in, pipe_out = self._process.stdin, self._process.stdout
            assert pipe_in is not None
            assert pipe_out is not None
            pipe_in.write(json.dumps([code, arguments, str(out), str(errors)]) + "\n")
            pipe_in.flush()
            status = pipe_out.readline().strip()
            assert status == "0", f"{status}: {errors.read_text()[-4000:] if errors.exists() else ''}"
            return out.read_text()

    def close(self) -> None:
        for pipe in (self._process.stdin, self._process.stdout):
            if pipe is not None:
                with contextlib.suppress(BrokenPipeError):
                    pipe.close()
        self._process.wait(20)


def _serve() -> None:
    import django

    django.setup()
    for line in sys.stdin:
        child = os.fork()
        if not child:
            os._exit(_run(*json.loads(line)))
        print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), flush=True)


def _run(code: str, arguments: list[str], out: str, errors: str) -> int:
    for number, name in ((1, out), (2, errors)):
        file = os.open(name, os.O_WRONLY | os.O_CREAT, 0o600)
        os.dup2(file, number)
    sys.argv = arguments
    names: dict[str, Any] = {"__name__": "__main__"}
    try:
        exec(compile(code, "<script>", "exec"), names)
    except SystemExit as ended:
        return ended.code if isinstance(ended.code, int) else int(bool(ended.code))
    except BaseException:  # noqa: BLE001  # what `python -c` would print
        traceback.print_exc()
        return 1
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
    return 0


if __name__ == "__main__":
    _serve()
