"""A Python environment of the script's own, in its work folder, on top of the one that the runner was started with.

All that is installed there can be imported; what the script installs (`pip install`) lands in its own and goes with the
run, so that no job changes what the next one, or the portal, finds. Making it takes a few small files.
"""

from __future__ import annotations

import os
import site
import sys
import sysconfig
from typing import Dict, Mapping

PIP = """#!/bin/sh
exec "%s" -m pip "$@"
"""


def folder_in(work_dir: str) -> str:
    return os.path.join(work_dir, "python")


def python_in(work_dir: str) -> str:
    """The interpreter that `make` leaves there."""
    return os.path.join(folder_in(work_dir), "bin", "python")


def make(work_dir: str) -> None:
    """Make it, or what is missing of it; what was installed into it before stays. Raises `OSError`."""
    here = folder_in(work_dir)
    base = os.path.realpath(getattr(sys, "_base_executable", None) or sys.executable)
    scheme = "venv" if "venv" in sysconfig.get_scheme_names() else "posix_prefix"
    packages = sysconfig.get_path("purelib", scheme, {"base": here, "platbase": here})
    for folder in (os.path.join(here, "bin"), packages):
        os.makedirs(folder, exist_ok=True)
    for name in ("python", "python3", "python%d.%d" % sys.version_info[:2]):
        link = os.path.join(here, "bin", name)
        if not os.path.lexists(link):
            os.symlink(base, link)
    for name in ("pip", "pip3", "pip%d.%d" % sys.version_info[:2]):
        path = os.path.join(here, "bin", name)
        _write(path, PIP % python_in(work_dir))
        os.chmod(path, 0o755)
    beneath = [path for path in site.getsitepackages() if os.path.isdir(path)]
    lines = ["import site; site.addsitedir(%r)\n" % one for one in beneath]
    _write(os.path.join(packages, "beneath.pth"), "".join(lines))
    settings = {"home": os.path.dirname(base), "include-system-site-packages": "false"}
    settings["version"] = "%d.%d.%d" % sys.version_info[:3]
    _write(os.path.join(here, "pyvenv.cfg"), "".join("%s = %s\n" % item for item in settings.items()))


def variables(work_dir: str, inherited: Mapping[str, str]) -> Dict[str, str]:
    """What makes the script, and the programs that it starts by name, find it."""
    path = [os.path.dirname(python_in(work_dir)), os.path.dirname(sys.executable), inherited.get("PATH", os.defpath)]
    return {
        "PATH": os.pathsep.join(path),
        "VIRTUAL_ENV": folder_in(work_dir),
        "PYTHONNOUSERSITE": "1",
        "PIP_REQUIRE_VIRTUALENV": "1",  # no other Python of the machine is installed into by mistake
        "PIP_DISABLE_PIP_VERSION_CHECK": "1",
    }


def _write(path: str, text: str) -> None:
    with open(path + ".new", "w", encoding="utf-8") as file:
        file.write(text)
    os.replace(path + ".new", path)
