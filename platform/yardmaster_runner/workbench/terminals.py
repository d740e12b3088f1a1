"""The terminals of a session's JupyterLab, which say whether a command runs in them: one that prints nothing for hours
is not idle. Jupyter itself knows the time of the last output alone.

Imported by Jupyter's server, which `jupyter` starts with it.
"""

from __future__ import annotations

import importlib
import os
from typing import Any, Dict

_TerminalManager: Any = importlib.import_module("jupyter_server_terminals.terminalmanager").TerminalManager


class Terminals(_TerminalManager):  # type: ignore[misc]  # of a library that is not installed here
    """Jupyter's own, whose answers have `execution_state`, as those about kernels do."""

    def get_terminal_model(self, name: str) -> Dict[str, Any]:
        model: Dict[str, Any] = super().get_terminal_model(name)
        model["execution_state"] = "busy" if runs_command(self.terminals[name].ptyproc) else "idle"
        return model


def runs_command(shell: Any) -> bool:
    """Whether another process than the shell has this terminal. One in the background has not."""
    try:
        group = os.tcgetpgrp(shell.fd)
    except OSError:
        return False  # closed
    return group not in (0, shell.pid)
