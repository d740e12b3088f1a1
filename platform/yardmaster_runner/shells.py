"""Terminals in this task: a process (`shell_host`) for each that the portal asks for, and their end.

Not here: what a terminal is (`shell_host`), and who may have one (the portal).
"""

from __future__ import annotations

import contextlib
import json
import os
import queue
import subprocess
import sys
import threading
import time
from typing import Any, Callable, Collection, Dict, Iterable, List, Mapping, Optional, Set, Tuple

from yardmaster_runner.answers import PortalRefused
from yardmaster_runner.exits import note
from yardmaster_runner.narrower import Listening
from yardmaster_runner.own_programs import runner_root
from yardmaster_runner.script import start_guarded
from yardmaster_runner.settings import Settings

MOST_AT_ONCE = 2
REMEMBERED = 1000
LOOK_EVERY = 1.0
END_PATIENCE = 6.0
PROGRAM = "import sys; sys.path.insert(0, sys.argv[1]); from yardmaster_runner.%s import main; sys.exit(main())"
SHELL, COMMAND = "shell_host", "command_host"


class Shells(threading.Thread):
    """`open` and `close` may be called from any thread. What the terminals get is known once the script has started:
    until then nothing is opened. Its processes live no longer than this thread."""

    def __init__(self, settings: Settings, token: Callable[[], str], inherited: Mapping[str, str]) -> None:
        super().__init__(name="shells", daemon=True)
        self._settings = settings
        self._token = token
        self._inherited = dict(inherited)
        self._wanted: "queue.Queue[Optional[Tuple[str, str]]]" = queue.Queue()
        self._seen: Dict[str, None] = {}
        self._open: List["subprocess.Popen[bytes]"] = []
        self._why = ""
        self._script: Optional[Dict[str, Any]] = None
        self._narrowed: Optional[Listening] = None

    def begin(self, environment: Mapping[str, str], directory: str, narrowed: Optional[Listening]) -> None:
        """Terminals may be opened from now on, with the script's environment and folder, and listen where it may."""
        self._script = {"environment": dict(environment), "directory": directory}
        self._narrowed = narrowed
        self.start()

    def open(self, ids: Iterable[str], commands: Collection[str] = ()) -> None:
        """Open those of these that were not opened before; those among `commands` are to run one command each, without
        a terminal. Returns at once."""
        if self._script is None or self._why:
            return
        for one in ids:
            if one not in self._seen:
                self._seen[one] = None
                self._wanted.put((one, COMMAND if one in commands else SHELL))
        while len(self._seen) > REMEMBERED:
            del self._seen[next(iter(self._seen))]

    def close(self, why: str) -> None:
        """End all of them, who use them learn why, and open no more. Returns when they have ended."""
        self._why = why
        self._wanted.put(None)
        if self.is_alive():
            self.join(END_PATIENCE)

    def processes(self) -> Set[int]:
        """Those that host a terminal."""
        return {one.pid for one in self._open}

    def run(self) -> None:
        while True:
            try:
                wanted = self._wanted.get(timeout=LOOK_EVERY if self._open else None)
                if wanted is None:
                    break
                self._open_one(*wanted)
            except queue.Empty:
                pass
            except (OSError, PortalRefused) as error:
                note("a terminal cannot be opened: %s" % error)
            self._forget_ended()
        self._end_all()

    def _open_one(self, name: str, kind: str) -> None:
        self._forget_ended()
        if len(self._open) >= MOST_AT_ONCE:
            note("a terminal is refused: %d are open" % MOST_AT_ONCE)
            return
        task = self._settings
        url = "%s/ws/task/shells/%s/?role=%s&index=%d" % (task.url, name, task.role, task.index)
        url += "&command=1" if kind == COMMAND else ""
        orders = json.dumps({"url": url, "token": self._token(), **(self._script or {})}).encode()
        command = [sys.executable, "-I", "-S", "-c", PROGRAM % kind, runner_root()]
        streams: Dict[str, Any] = {"stdin": subprocess.PIPE, "stdout": subprocess.DEVNULL, "bufsize": 0}
        host = start_guarded(command, self._narrowed, env=self._inherited, start_new_session=True, **streams)
        self._open.append(host)
        assert host.stdin is not None
        with open(os.dup(host.stdin.fileno()), "wb") as orders_of_host:
            orders_of_host.write(len(orders).to_bytes(8, "big") + orders)

    def _forget_ended(self) -> None:
        for one in [one for one in self._open if one.poll() is not None]:
            self._open.remove(one)
            if one.stdin is not None:
                one.stdin.close()

    def _end_all(self) -> None:
        for one in self._open:
            assert one.stdin is not None
            with contextlib.suppress(OSError):  # it has ended
                one.stdin.write(self._why.encode("utf-8", "replace"))
            one.stdin.close()
        until = time.monotonic() + END_PATIENCE / 2
        while any(one.poll() is None for one in self._open) and time.monotonic() < until:
            time.sleep(0.02)
        for one in self._open:
            one.kill()
            one.wait()
