"""A session of JupyterLab: makes what it needs around the user's home, and becomes JupyterLab.

It asks for no token and no password. It listens on a unix socket that only this task's own processes can open: what
comes there has passed the runner's gate, and so the portal, which decides who may. Jupyter's own checks against pages
of other origins stand: its XSRF cookie, and the comparison of `Origin` with `Host`, which the portal passes on.

Not here: the gate (the runner), who may open the session and when it is stopped (the portal).
"""

from __future__ import annotations

import importlib.util
import json
import os
import shutil
import sys
import tempfile
from typing import Dict, List, Mapping

from yardmaster_runner.exits import say
from yardmaster_runner.own_programs import VARIABLE, Orders, orders, runner_root
from yardmaster_runner.reasons import NO_JUPYTERLAB, NO_SPARK
from yardmaster_runner.spark.installed import NotInstalled
from yardmaster_runner.workbench import kernel_output, opening, session_spark, spark_elsewhere, spark_turns, starters

SOCKET = "YARDMASTER_SERVICE_SOCKET"
_LONGEST_SOCKET = 107
_NAME_OF_SOCKET = len("/kernel-01234567-89ab-cdef-0123-456789abcdef-ipc-1")
_LARGEST_BODY = 256 << 20
"""Of one request. JupyterLab sends larger files in pieces."""
_OUTPUT_RATE = 10_000_000
"""Bytes per second that a cell may print: pictures have megabytes."""

_CALL_OUT = ("@jupyterlab/apputils-extension:announcements", "@jupyterlab/extensionmanager-extension:plugin")
"""Parts of JupyterLab that ask servers of others for news and packages."""

_DEFAULTS = {"@jupyterlab/apputils-extension:themes": {"adaptive-theme": True}}
"""Light or dark as the browser prefers, like the portal's pages. What users choose in JupyterLab comes first."""

START = """
import sys
del sys.path[0]  # the home: a file there could have the name of a module, and keep the session from starting
sys.modules["rfc3987_syntax"] = None  # makes a parser of IRIs in a second, which JupyterLab asks for nothing
from jupyterlab.labapp import main
sys.exit(main())
"""
COMMAND = """#!/bin/sh
exec "%s" -m yardmaster_client "$@"
"""
KERNEL = "c = get_config()\nc.InteractiveShellApp.extensions = %r\n"
"""For `ipython_kernel_config.py`."""
PROMPT = r"""PS1='\w \$ '
if [ -r ~/.bashrc ]; then . ~/.bashrc; fi
"""


def main() -> None:
    if importlib.util.find_spec("jupyterlab") is None:
        sys.stderr.write("There is no JupyterLab in %s.\n" % sys.executable)
        raise SystemExit(NO_JUPYTERLAB)
    given = orders()
    socket = os.environ[SOCKET]
    private = os.path.join(tempfile.gettempdir(), "jp")  # short, for the sockets in it
    make(private)
    os.makedirs(given.home_dir, mode=0o700, exist_ok=True)
    starters.put(given.home_dir)
    os.chdir(given.home_dir)
    say("JupyterLab starts without a password of its own, since only the portal reaches it")
    command = [sys.executable, "-c", START, *arguments(given, socket, private)]
    found = environment(os.environ, given, private)
    try:
        if spark_elsewhere.wants_spark(found):
            found = spark_elsewhere.begin(found)
        elif session_spark.wants_spark(given):
            found = session_spark.begin(given, found, private)
    except (NotInstalled, OSError) as error:
        sys.stderr.write("yardmaster: %s\n" % error)
        raise SystemExit(NO_SPARK if isinstance(error, NotInstalled) else 1) from error
    os.execve(sys.executable, command, found)


def make(private: str) -> None:
    """The folder of all that is not to be kept: what kernels and terminals import and start, how Jupyter is set, and
    its sockets. Raises `OSError`."""
    os.makedirs(private, mode=0o700, exist_ok=True)
    for name in ("lib", "run"):
        os.makedirs(os.path.join(private, name), exist_ok=True)
    for package in ("yardmaster_client", "yardmaster_runner"):
        link = os.path.join(private, "lib", package)
        if not os.path.lexists(link):
            os.symlink(os.path.join(runner_root(), package), link)
    _write(os.path.join(private, "bin", "yardmaster"), COMMAND % sys.executable)
    os.chmod(os.path.join(private, "bin", "yardmaster"), 0o755)
    _write(os.path.join(private, "bashrc"), PROMPT)
    # Into the session's own Python: beside the user's settings in the home, which stand.
    _write(
        os.path.join(sys.prefix, "etc", "ipython", "ipython_kernel_config.py"),
        KERNEL % [kernel_output.__name__, spark_turns.__name__],
    )
    page = {name: dict.fromkeys(_CALL_OUT, True) for name in ("disabledExtensions", "lockedExtensions")}
    for name, value in (("page_config", page), ("default_setting_overrides", _DEFAULTS)):
        _write(os.path.join(private, "config", "labconfig", name + ".json"), json.dumps(value))


def environment(inherited: Mapping[str, str], given: Orders, private: str) -> Dict[str, str]:
    """Of JupyterLab, and so of kernels and terminals. What is the runner's alone is left out; YARDMASTER_URL stays, and
    YARDMASTER_TOKEN where the job has a secret for it: with both the SDK is signed in, and by YARDMASTER_SESSION it
    finds the session that it runs in. Its links lead to YARDMASTER_PUBLIC_URL, where browsers reach the portal."""
    home = given.home_dir
    found = {name: value for name, value in inherited.items() if name not in (VARIABLE, SOCKET)}
    found.setdefault(kernel_output.LEVEL, kernel_output.WITHOUT_NOTES)
    own, installed = os.path.join(home, ".jupyter", "lab"), _prefix_of_jupyterlab()
    found.update(
        HOME=home,
        # What can be fetched again goes with the task: a home counts against the namespace's storage.
        XDG_CACHE_HOME=os.path.join(private, "cache"),
        YARDMASTER_SESSION=str(given.options["session"]),
        YARDMASTER_PUBLIC_URL=str(given.options.get("portal", "")),
        PATH=os.pathsep.join([os.path.join(private, "bin"), found.get("PATH", os.defpath)]),
        PYTHONPATH=os.path.join(private, "lib"),
        JUPYTER_RUNTIME_DIR=os.path.join(private, "run"),
        # Not the home's: a file there could keep the session from starting.
        JUPYTER_CONFIG_DIR=os.path.join(private, "config"),
        JUPYTER_CONFIG_PATH=os.path.join(installed, "etc", "jupyter"),
        JUPYTER_PATH=os.path.join(installed, "share", "jupyter"),
        JUPYTERLAB_DIR=os.path.join(installed, "share", "jupyter", "lab"),
        JUPYTERLAB_SETTINGS_DIR=os.path.join(own, "user-settings"),
        JUPYTERLAB_WORKSPACES_DIR=os.path.join(own, "workspaces"),
    )
    return found


def _prefix_of_jupyterlab() -> str:
    """Where its pages are: in the environment beneath the session's own."""
    spec = importlib.util.find_spec("jupyterlab")
    assert spec is not None
    assert spec.origin is not None
    return os.path.abspath(os.path.join(os.path.dirname(spec.origin), *[os.pardir] * 4))


def arguments(given: Orders, socket: str, private: str) -> List[str]:
    """JupyterLab's command line, which wins over files that users may have."""
    shell = [shutil.which("bash") or "/bin/sh"]
    if shell[0].endswith("bash"):
        shell += ["--rcfile", os.path.join(private, "bashrc"), "-i"]
    settings: Dict[str, object] = {
        "ServerApp.sock": socket,
        "ServerApp.sock_mode": "0600",
        "ServerApp.base_url": "/w/%s/" % given.options["session"],
        "ServerApp.root_dir": given.home_dir,
        "ServerApp.allow_remote_access": True,  # `Host` is the portal's, and checked there
        "ServerApp.allow_root": True,
        "ServerApp.jpserver_extensions": opening.__name__ + "=True",
        "ServerApp.open_browser": False,
        "ServerApp.quit_button": False,  # the portal stops sessions
        "ServerApp.max_body_size": _LARGEST_BODY,
        "ServerApp.max_buffer_size": _LARGEST_BODY,
        "ServerApp.terminado_settings": {"shell_command": shell},
        "TerminalsExtensionApp.terminal_manager_class": "yardmaster_runner.workbench.terminals.Terminals",
        "IdentityProvider.token": "",
        "PasswordIdentityProvider.hashed_password": "",
        "LabApp.news_url": None,
        "LabApp.check_for_updates_class": "jupyterlab.NeverCheckForUpdate",
        "LabApp.extension_manager": "readonly",
        "LanguageServerManager.autodetect": False,
        "FileContentsManager.delete_to_trash": False,
        "MappingKernelManager.kernel_manager_class": "yardmaster_runner.workbench.kernels.Kernel",
        "KernelManager.transport": _transport(os.path.join(private, "run")),
        "ZMQChannelsWebsocketConnection.iopub_data_rate_limit": _OUTPUT_RATE,
        "Application.log_level": "WARN",
        "Application.log_format": "%(levelname)s: %(message)s",
    }
    return ["--%s=%s" % item for item in settings.items()]


def _transport(folder: str) -> str:
    """How kernels are reached. All who can connect to a port of theirs read what they print, so sockets in our own
    folder are better, where their paths are not too long."""
    return "ipc" if len(os.fsencode(folder)) + _NAME_OF_SOCKET <= _LONGEST_SOCKET else "tcp"


def _write(path: str, text: str) -> None:
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, "w", encoding="utf-8") as file:
        file.write(text)


if __name__ == "__main__":
    main()
