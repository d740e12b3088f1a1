"""The processes that a test's portals are forked from, so that none of them imports Django for two seconds again.

Two kinds, one below the other:

- `python -m tests.real.fork_server CHANNEL`, one for a process of tests, has imported what the portal imports from
  others and can be imported without settings.
- A fork of it, one for the environment of each portal, has set up Django, and has imported what both the web process
  and the worker import.

What is forked from either begins as after exec: with the environment, folder, standard files and arguments it is given,
no other descriptor, no thread and no connection. Each answers one request at a time, a line of JSON with the
descriptors that belong to it (`tests.real.forks` asks).
"""

from __future__ import annotations

import array
import gc
import importlib
import json
import os
import runpy
import signal
import socket
import sys
import threading
import traceback
from collections.abc import Iterable
from pathlib import Path
from typing import Any

Request = dict[str, Any]

OWN = ("portal", "apps", "celery_worker", "tests", "__main__")
"""Read the settings when they are imported, so never without any."""
WEB = """
from portal.web import portal_server, workbench_server
workbench_server("portal.workbench_asgi:application", "127.0.0.1", 0).load()
portal_server("portal.asgi:application", "127.0.0.1", 0).load()
"""
WORKER = """
import celery.apps.beat, celery.apps.worker, celery.concurrency.thread, celery.worker.components
from celery.app.utils import find_app
from celery.bin import celery
find_app("celery_worker.app").loader.import_default_modules()
"""


def main() -> None:
    """Ends when the other end of the channel is closed, and with it whatever was forked and still runs."""
    channel = socket.socket(fileno=int(sys.argv[1]))
    request, _ = received(channel)
    for name in request["modules"]:
        importlib.import_module(name)
    answer(channel, "")
    as_started = signal.signal(signal.SIGINT, signal.SIG_IGN)  # the tests' own; a process that is forked has it again
    wanted = _serve(channel)
    while wanted is not None:
        wanted = _become(*wanted, as_started)


def received(channel: socket.socket) -> tuple[Request, list[int]]:
    """The next request and its descriptors; an empty one at the end."""
    text, files, more = b"", array.array("i"), b""
    while not text.endswith(b"\n"):
        more, ancillary, *_ = channel.recvmsg(1 << 16, socket.CMSG_SPACE(3 * files.itemsize))
        if not more:
            return {}, []
        text += more
        for _, _, data in ancillary:
            files.frombytes(data)
    return json.loads(text), list(files)


def answer(channel: socket.socket, what: Any) -> None:
    channel.sendall(json.dumps(what).encode() + b"\n")


def _serve(channel: socket.socket) -> tuple[Request, list[int]] | None:
    """Answer until the end. Returns something in a fork: what that shall be."""
    gc.collect()
    gc.freeze()  # what a fork does not write, it shares
    forked: set[int] = set()
    while True:
        request, files = received(channel)
        if not request:
            break
        if "ended" in request:
            pid, status = os.waitpid(request["ended"], os.WNOHANG)
            forked.discard(pid)
            answer(channel, os.waitstatus_to_exitcode(status) if pid else None)
            continue
        assert threading.active_count() == 1, threading.enumerate()
        pid = os.fork()
        if not pid:
            channel.detach()
            return request, files
        forked.add(pid)
        for file in files:
            os.close(file)
        answer(channel, pid)
    for pid in forked:
        os.kill(pid, signal.SIGKILL)
    return None


def _become(request: Request, files: list[int], interrupted: Any) -> tuple[Request, list[int]] | None:
    """What the request says, in the process that was forked for it. `interrupted`: what SIGINT does there."""
    os.environ.clear()
    os.environ.update(request["environment"])
    os.chdir(request["folder"])
    if "command" in request:
        _only(files)
        signal.signal(signal.SIGINT, interrupted)
        _run(request["command"])
        sys.exit()
    if "code" in request:
        _only(files)
        os._exit(_execute(request["code"], request["arguments"]))
    (file,) = files
    os.dup2(file, 3)
    os.closerange(4, os.sysconf("SC_OPEN_MAX"))
    channel = socket.socket(fileno=3)
    try:
        importlib.import_module("django").setup()
        for name in request["modules"]:
            importlib.import_module(name)
    except BaseException:  # noqa: BLE001  # the process that asked shall hear why
        answer(channel, traceback.format_exc())
        os._exit(1)
    answer(channel, "")
    return _serve(channel)


def _only(files: list[int]) -> None:
    """Have these as standard input, output and errors, and no other descriptor."""
    for number, file in enumerate(files):
        os.dup2(file, number)
    os.closerange(3, os.sysconf("SC_OPEN_MAX"))


def _run(command: list[str]) -> None:
    """As `python …` does: `-m` and a module, or a file; and the arguments."""
    if command[1] == "-m":
        sys.argv = command[2:]
        sys.path[0] = os.getcwd()
        runpy.run_module(command[2], run_name="__main__", alter_sys=True)
    else:
        sys.argv = command[1:]
        sys.path[0] = str(Path(command[1]).resolve().parent)
        runpy.run_path(command[1], run_name="__main__")


def _execute(code: str, arguments: list[str]) -> int:
    """As `python -c` does; the exit status."""
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


def write_modules(file: Path) -> None:
    """What to import, and where: into the first kind of process, and into the second. Settings are needed to see it."""
    loaded = [_in_fork(lambda code=code: _loaded_by(code)) for code in (WEB, WORKER)]
    others = list(dict.fromkeys(name for names in loaded for name in names if name.partition(".")[0] not in OWN))
    del os.environ["DJANGO_SETTINGS_MODULE"]
    without = _in_fork(lambda: _importable(others))
    both = [name for name in loaded[0] if name in set(loaded[1]) - set(without) and name != "__main__"]
    file.write_text(json.dumps({"without settings": without, "with settings": both}))


def _loaded_by(code: str) -> list[str]:
    exec(code, {})
    return list(sys.modules)


def _importable(names: Iterable[str]) -> list[str]:
    """Those that can be imported without settings."""
    found = []
    for name in names:
        try:
            importlib.import_module(name)
        except Exception:  # noqa: BLE001  # most say that there are no settings, some that there is half a module
            continue
        found.append(name)
    return found


def _in_fork(work: Any) -> list[str]:
    """What the function returns in a process of its own."""
    reader, writer = os.pipe()
    if not os.fork():
        with os.fdopen(writer, "w") as out:
            json.dump(work(), out)
        os._exit(0)
    os.close(writer)
    with os.fdopen(reader) as found:
        result: list[str] = json.load(found)
    os.wait()
    return result


if __name__ == "__main__":
    if sys.argv[1] == "--modules":
        write_modules(Path(sys.argv[2]))
    else:
        main()
