"""Installs a lock into the virtual environment of the Python that runs this, and into no other.

Usage: python packages.py LOCK TOOLS_LOCK

uv does it, at the version of TOOLS_LOCK and with pip's settings of this machine, in a third of pip's time. Where uv
cannot be had or fails, pip does it. Both compare every hash. May be repeated: what is installed stays.
"""

from __future__ import annotations

import ast
import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path

PIP = [sys.executable, "-m", "pip", "--quiet", "--disable-pip-version-check"]
LOCKED = ["--require-hashes", "--no-deps"]
"""A lock names all that is needed, or all but what lies beneath its environment."""
_FLAGS = {
    "index-url": "--default-index",
    "extra-index-url": "--index",
    "find-links": "--find-links",
    "trusted-host": "--allow-insecure-host",
}
_HARMLESS = {
    *("cert", "proxy", "timeout", "default-timeout", "retries", "cache-dir", "no-cache-dir", "progress-bar", "quiet"),
    *(
        "verbose",
        "no-color",
        "no-input",
        "root-user-action",
        "break-system-packages",
        "disable-pip-version-check",
        "config-file",
    ),
}
"""What pip may be set to without changing what is installed, beside what uv is told."""


def main(lock: str, tools_lock: str) -> int:
    if not _installed_by_uv(lock, tools_lock):
        return subprocess.run([*PIP, "install", *LOCKED, "-r", lock], check=False).returncode
    return 0


def _installed_by_uv(lock: str, tools_lock: str) -> bool:
    told = uv_arguments(pip_settings(_run([sys.executable, "-m", "pip", "config", "list"])))
    if told is None:
        return _says_no("pip is set to what uv has no word for: pip installs, which takes longer.")
    flags, environment = told
    # Beside the environment, so that files are linked into it instead of copied, and no full /tmp stops it.
    with tempfile.TemporaryDirectory(dir=Path(sys.prefix).resolve(), prefix=".installing-") as folder:
        needed = Path(folder, "uv.txt")
        needed.write_text(pinned("uv", Path(tools_lock).read_text()))
        tools = Path(folder, "tools")
        install = [*PIP, "install", *LOCKED, "--target", str(tools), "-r", str(needed)]
        if subprocess.run(install, check=False, capture_output=True).returncode:
            return _says_no("uv cannot be had here: pip installs, which takes longer.")
        command = [str(tools / "bin" / "uv"), "pip", "install", "--quiet", "--no-config", "--python", sys.executable,
                   *LOCKED, "--compile-bytecode", "--cache-dir", str(Path(folder, "cache")),
                   *flags, "-r", lock]  # fmt: skip
        if subprocess.run(command, env={**os.environ, **environment}, check=False).returncode == 0:
            return True
    return _says_no("uv could not install it: pip tries now.")


def _says_no(why: str) -> bool:
    sys.stderr.write(f"{why}\n")
    return False


def pip_settings(listed: str) -> dict[str, str]:
    """Name to value, of what `pip config list` prints; the environment's win over those of files."""
    found: dict[str, str] = {}
    for line in sorted(listed.splitlines(), key=lambda one: one.startswith(":env:")):
        key, _, value = line.partition("=")
        section, _, name = key.partition(".")
        if section in ("global", "install", ":env:") and value:
            found[name] = str(ast.literal_eval(value))
    return found


def uv_arguments(settings: Mapping[str, str]) -> tuple[list[str], dict[str, str]] | None:
    """What uv is told instead: arguments, and variables. None: pip is set to something that uv has no word for."""
    if not settings.keys() <= {*_FLAGS, *_HARMLESS, "no-index"}:
        return None
    flags = [
        part for name, flag in _FLAGS.items() for value in settings.get(name, "").split() for part in (flag, value)
    ]
    if "extra-index-url" in settings:
        flags += ["--index-strategy", "unsafe-best-match"]  # as pip does; the hashes say which file it must be
    if settings.get("no-index", "").lower() in ("1", "true", "yes", "on"):
        flags.append("--no-index")
    environment = {"UV_SYSTEM_CERTS": "1"}
    if "cert" in settings:
        environment["SSL_CERT_FILE"] = settings["cert"]
    if "proxy" in settings:
        environment["ALL_PROXY"] = settings["proxy"]
    return flags, environment


def pinned(package: str, lock: str) -> str:
    """The lines of a lock that pin this package, with its hashes. Raises `LookupError`."""
    found = re.search(rf"^{re.escape(package)}==(?:.*\\\n)*.*\n", lock, re.MULTILINE)
    if found is None:
        raise LookupError(f"{package} is not in the lock")
    return found[0]


def _run(command: Sequence[str]) -> str:
    return subprocess.run(command, check=False, stdout=subprocess.PIPE, text=True).stdout


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
