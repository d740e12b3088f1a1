"""What tasks import, on a machine: wheels that the portal has sent, installed by `uv`, which comes with them. No code
of a package runs meanwhile, nothing is fetched, and nothing outside the folder is touched.

    environments/<digest>/wheels/   what has arrived; removed when it is installed
    environments/<digest>/python/   the environment
    environments/current            a link to the newest that tasks have
    environments/workbench          the same of JupyterLab, whose environment lies on top of one of tasks
    environments/spark              the same of Spark, whose packages tasks import beside their own
"""

from __future__ import annotations

import contextlib
import os
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

from yardmaster.errors import Unavailable

TASKS, WORKBENCH, SPARK = LINKS = "current", "workbench", "spark"
"""The links."""
UV = "uv"
NO_ENVIRONMENT = "What tasks import is not installed there yet."
INSTALL = "Install it: python manage.py machines --install"
NO_WORKBENCH = "JupyterLab is not installed there."
INSTALL_WORKBENCH = "Install it: python manage.py machines --install --workbench"
NO_SPARK = "Spark is not installed there."
INSTALL_SPARK = "Install it: python manage.py machines --install --spark"
_PATIENCE = 900.0


class Environments:
    """Under `folder`, the machine's. `link`: one of `LINKS`."""

    def __init__(self, folder: Path, link: str = TASKS) -> None:
        if link not in LINKS:
            raise Unavailable(f"There is no kind of environment {link!r}.")
        self._root = folder / "environments"
        self._current = self._root / link

    def current(self) -> str:
        """The digest of the one that is used; empty where there is none."""
        try:
            digest = os.readlink(self._current)
        except OSError:
            return ""
        return digest if self.python(digest).exists() else ""

    def python(self, digest: str) -> Path:
        return self._root / digest / "python" / "bin" / "python"

    def packages(self) -> str:
        """The folder that has the packages of the one that is used; empty where there is none."""
        current = self.current()
        found = sorted((self._root / current / "python").glob("lib/python3.*/site-packages")) if current else []
        return str(found[0]) if found else ""

    def missing(self, digest: str, wheels: dict[str, int]) -> list[str]:
        """Of these files (bytes by name), the ones that have not arrived whole."""
        self.folder(digest).mkdir(mode=0o700, parents=True, exist_ok=True)
        return [name for name, size in wheels.items() if _size(self.folder(digest) / name) != size]

    def folder(self, digest: str) -> Path:
        """Where wheels are sent to."""
        return self._root / digest / "wheels"

    def install(self, digest: str, beneath: str = "") -> None:
        """Make the environment of the wheels that arrived, and the one that is used from now on. `beneath`: the digest
        of another that it imports from, too. Raises `Unavailable` with the program's words."""
        if beneath and not self.python(beneath).exists():
            raise Unavailable(f"The environment {beneath}, on which this one is based, is missing.")
        if not self.python(digest).exists():
            wheels, target, draft = self.folder(digest), self._root / digest / "python", self._root / digest / "draft"
            uv = _unpack_uv(wheels)
            shutil.rmtree(draft, ignore_errors=True)
            shutil.rmtree(target, ignore_errors=True)
            _run([uv, "venv", "--offline", "--no-config", "--relocatable", "--python", sys.executable, str(draft)])
            found = [str(path) for path in sorted(wheels.glob("*.whl")) if not path.name.startswith("uv-")]
            python = str(draft / "bin" / "python")
            how = ["--offline", "--no-config", "--no-index", "--no-deps", "--no-cache", "--link-mode", "copy"]
            _run([uv, "pip", "install", "--python", python, *how, *found])
            if beneath:
                _put_on_top(draft, beneath)
            os.rename(draft, target)
        self._make_current(digest)
        shutil.rmtree(self.folder(digest), ignore_errors=True)

    def _make_current(self, digest: str) -> None:
        draft = self._root / f".current.{os.getpid()}"
        with contextlib.suppress(FileNotFoundError):
            draft.unlink()
        draft.symlink_to(digest)
        os.replace(draft, self._current)


def _put_on_top(environment: Path, beneath: str) -> None:
    """Have it import what it lacks from another environment, by a path from one to the other: the folder may move."""
    for packages in environment.glob("lib/python3.*/site-packages"):
        there = Path(*[".."] * 5, beneath, "python", "lib", packages.parent.name, "site-packages")
        (packages / "beneath.pth").write_text(f"{there}\n")


def _unpack_uv(wheels: Path) -> str:
    """The program that is in its wheel."""
    path = next(iter(sorted(wheels.glob("uv-*.whl"))), None)
    if path is None:
        raise Unavailable("The wheel of uv is missing among the wheels that were sent.")
    target = wheels / UV
    with zipfile.ZipFile(path) as archive:
        name = next(one for one in archive.namelist() if one.endswith(f"/scripts/{UV}"))
        with archive.open(name) as source, open(target, "wb") as file:
            shutil.copyfileobj(source, file)
    target.chmod(0o700)
    return str(target)


def _run(command: list[str]) -> None:
    environment = {name: os.environ[name] for name in ("PATH", "HOME", "LANG") if name in os.environ}
    try:
        done = subprocess.run(
            command, env=environment, capture_output=True, text=True, timeout=_PATIENCE, check=False, cwd="/"
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise Unavailable(f"{Path(command[0]).name} could not be run: {error}") from error
    if done.returncode != 0:
        raise Unavailable(f"{' '.join(command[1:3])} failed: {done.stderr.strip()[-800:]}")


def _size(path: Path) -> int:
    try:
        return path.stat().st_size
    except FileNotFoundError:
        return -1
