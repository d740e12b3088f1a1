"""What stands for IPython in a notebook that runs in a task: `get_ipython()`, the magics that make sense there, and
`IPython.display` where IPython is not installed. What makes no sense there is passed over, or refused with what to do.
"""

from __future__ import annotations

import base64
import os
import re
import shlex
import subprocess
import sys
import types
from importlib.util import find_spec
from typing import Any, Callable, Dict, List

from yardmaster_runner.in_script.notebook_cells import FILES, PASSED_OVER, as_python
from yardmaster_runner.in_script.notebook_output import Outputs, data_of

_BRACES = re.compile(r"\{([A-Za-z_][\w.]*)\}")
_DOLLAR = re.compile(r"\$([A-Za-z_]\w*)")


class MagicNotAvailable(Exception):
    """A magic that does not exist in a task."""


class Shell:
    """What `get_ipython()` gives. `names` are the notebook's variables."""

    def __init__(self, names: Dict[str, Any], outputs: Outputs) -> None:
        self.user_ns = names
        self._outputs = outputs

    def system(self, line: str) -> None:
        """`!line`: its output is the cell's. How it ended is in `_exit_code`, as in IPython."""
        self.user_ns["_exit_code"] = self._run(["/bin/sh", "-c", self._expanded(line)])

    def getoutput(self, line: str) -> List[str]:
        """`found = !line`."""
        done = subprocess.run(
            ["/bin/sh", "-c", self._expanded(line)], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False
        )
        return done.stdout.decode("utf-8", "replace").splitlines()

    def run_line_magic(self, name: str, line: str) -> Any:
        """`%name line`."""
        if name in PASSED_OVER:
            return None
        if name == "pip":
            return self._must([sys.executable, "-m", "pip", *shlex.split(self._expanded(line))])
        if name in ("time", "timeit", "prun"):
            return exec(compile(as_python(line), "<%s>" % name, "exec"), self.user_ns)
        if name == "cd":
            return os.chdir(os.path.expanduser(self._expanded(line) or "~"))
        if name == "pwd":
            return os.getcwd()
        if name in ("env", "set_env"):
            return self._variable(line)
        if name in FILES:
            return self.system("%s %s" % (name, line))
        raise MagicNotAvailable("%%%s is not available in a task. Remove it, or write in Python what it does." % name)

    def run_cell_magic(self, name: str, line: str, cell: str) -> None:
        """`%%name line` with the rest of its cell."""
        if name in ("bash", "sh"):
            self._must(["/bin/bash" if name == "bash" and os.access("/bin/bash", os.X_OK) else "/bin/sh", "-ec", cell])
        elif name in ("writefile", "file"):
            words = shlex.split(line)
            with open(self._expanded(words[-1]), "a" if "-a" in words[:-1] else "w", encoding="utf-8") as file:
                file.write(cell)
        else:
            raise MagicNotAvailable(
                "%%%%%s is not available in a task. Remove the cell, or write in Python what it does." % name
            )

    magic = run_line_magic

    def __getattr__(self, name: str) -> Any:
        message = "get_ipython().%s is not available in a task: there is no IPython around the notebook." % name
        raise AttributeError(message)

    def _variable(self, line: str) -> None:
        name, _, value = line.replace("=", " ", 1).partition(" ")
        os.environ[name] = self._expanded(value.strip())

    def _expanded(self, line: str) -> str:
        """With `{name}` and `$name` of the notebook's variables put in; the shell does the rest."""

        def value(found: "re.Match[str]") -> str:
            try:
                return str(eval(found.group(1), self.user_ns))
            except Exception:  # noqa: BLE001 (code of the user's)
                return found.group(0)

        line = _BRACES.sub(value, line)
        return _DOLLAR.sub(lambda found: value(found) if found.group(1) in self.user_ns else found.group(0), line)

    def _must(self, command: List[str]) -> None:
        code = self._run(command)
        if code:
            raise subprocess.CalledProcessError(code, command[:4])

    def _run(self, command: List[str]) -> int:
        with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT) as process:
            for line in process.stdout or ():
                sys.stdout.write(line.decode("utf-8", "replace"))
            return process.wait()


class Shown:
    """One thing of `IPython.display`: a value that says what it is."""

    kind = "text/plain"

    def __init__(self, data: Any = None, filename: str = "", **_: Any) -> None:
        if data is None and filename:
            with open(filename, "rb") as file:
                data = file.read()
        self.data = data
        text = data if isinstance(data, str) else "<%s>" % type(self).__name__
        self._notebook_data = {"text/plain": text if self.kind != "image/png" else "<Image>"}
        if self.kind == "image/png" and isinstance(data, bytes) and data.startswith(b"\x89PNG"):
            self._notebook_data["image/png"] = base64.b64encode(data).decode()
        elif self.kind != "image/png" and isinstance(data, str):
            self._notebook_data[self.kind] = data


def stand_in(display: Callable[..., None], outputs: Outputs, shell: Shell) -> None:
    """Make `IPython` and `IPython.display` importable where it is not installed, with what notebooks use most."""
    if find_spec("IPython") is not None:
        return
    package, module = types.ModuleType("IPython"), types.ModuleType("IPython.display")
    kinds = {"Image": "image/png", "HTML": "text/html", "Markdown": "text/markdown", "Latex": "text/latex"}
    for name, kind in kinds.items():
        setattr(module, name, type(name, (Shown,), {"kind": kind}))
    module.display = display  # type: ignore[attr-defined]
    module.clear_output = lambda wait=False: outputs.clear()  # type: ignore[attr-defined]
    package.display = module  # type: ignore[attr-defined]
    package.get_ipython = lambda: shell  # type: ignore[attr-defined]
    package.__path__ = []
    sys.modules.update({"IPython": package, "IPython.display": module})


def shown_words(value: Any) -> str:
    """What the log shows of a value."""
    data = data_of(value)
    return data["text/plain"] if "image/png" not in data else "[picture: see the executed notebook]"
