"""What a script asks of its data while it runs: a socket in the work folder, served by the runner's threads.

The runner has the token, so it fetches; the script (`yardmaster_runner.data`) says what it reads next and gets paths.
Requests and answers are JSON objects, one a line. One connection is one pass over some shards:

    {"op": "list", "input": ""}                        → {"files": [[path, size], …]}
    {"op": "read", "input": "", "paths": [path, …]}    → {"shards": 12}
    {"op": "get", "shard": 0}                          → {"path": "/…"}; it stays there until
    {"op": "release", "shard": 0}                      → {}, or the end of the connection
    {"op": "agree", "name": "ab12", "value": "0,1"}    → {"value": "0,1"}: the first one that a task of the attempt gave
    a shard that is not here yet, a portal that is away → {"wait": true}: ask again
    anything that cannot be                            → {"error": "why", "may_pass": whether a later start may work}

After a `get` the shards that follow in `paths` are fetched ahead. Not here: how (`shard_fetching`).
"""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import socket
import tempfile
import threading
import time
from typing import Any, Callable, Dict, List, Mapping, Optional

from yardmaster_runner.answers import PortalAway, PortalRefused, PortalRejected
from yardmaster_runner.data.description import is_shard
from yardmaster_runner.exits import PORTAL_UNREACHABLE, CannotRun, note
from yardmaster_runner.order import Bundle, RemoteFile
from yardmaster_runner.shard_fetching import THREADS, Coming, ShardFetching
from yardmaster_runner.shard_folder import ShardFolder

AHEAD = THREADS
LONGEST_REQUEST = 64 << 20
"""Bytes: the paths of a million shards."""
MOST_CONNECTIONS = 256
LONGEST_WAIT = 0.5
Agree = Callable[[str, str], str]
LONGEST_ADDRESS = 100
"""Of a socket in the file system (Linux: 108, macOS: 104)."""


class NotAsked(Exception):
    """The request cannot be done. The message is for the script's author."""


class DataService:
    """Serves the inputs that are streamed, and what tasks agree on. Raises `OSError` where no socket can be made."""

    def __init__(
        self,
        work_dir: str,
        bundles: List[Bundle],
        folder: ShardFolder,
        fetching: ShardFetching,
        agree: Optional[Agree] = None,
    ) -> None:
        self._bundles = {bundle.name: bundle for bundle in bundles}
        self._folder = folder
        self._fetching = fetching
        self._agree = agree
        self._slots = threading.BoundedSemaphore(MOST_CONNECTIONS)
        self._temporary = ""
        self.address = os.path.join(work_dir, "data.sock")
        if len(os.fsencode(self.address)) > LONGEST_ADDRESS:
            self._temporary = tempfile.mkdtemp(prefix="yardmaster-")
            self.address = os.path.join(self._temporary, "data.sock")
        with contextlib.suppress(FileNotFoundError):
            os.unlink(self.address)
        self._server = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self._server.bind(self.address)
        os.chmod(self.address, 0o600)
        self._server.listen(64)
        threading.Thread(target=self._accept, daemon=True).start()

    def close(self) -> None:
        """No more connections; those that there are end with the script."""
        self._server.close()
        with contextlib.suppress(OSError):
            os.unlink(self.address)
        if self._temporary:
            shutil.rmtree(self._temporary, ignore_errors=True)

    def _accept(self) -> None:
        while True:
            self._slots.acquire()
            try:
                connection, _ = self._server.accept()
            except OSError:
                return  # closed
            threading.Thread(target=self._serve, args=(connection,), daemon=True).start()

    def _serve(self, connection: socket.socket) -> None:
        reading = Reading(self._bundles, self._folder, self._fetching, self._agree)
        try:
            with connection, connection.makefile("rwb") as stream:
                while True:
                    line = stream.readline(LONGEST_REQUEST)
                    if not line.endswith(b"\n"):
                        return
                    stream.write(json.dumps(reading.answer(line)).encode() + b"\n")
                    stream.flush()
        except OSError as error:
            if not isinstance(error, (BrokenPipeError, ConnectionResetError)):
                note("a reader of data was cut off: %s" % error)
        finally:
            reading.end()
            self._slots.release()


class Reading:
    """One connection's pass over some shards."""

    def __init__(
        self, bundles: Mapping[str, Bundle], folder: ShardFolder, fetching: ShardFetching, agree: Optional[Agree] = None
    ) -> None:
        self._bundles = bundles
        self._folder = folder
        self._fetching = fetching
        self._agree = agree
        self._bundle: Optional[Bundle] = None
        self._files: List[RemoteFile] = []
        self._pinned: Dict[int, int] = {}
        self._coming: Dict[int, Coming] = {}

    def answer(self, line: bytes) -> Dict[str, Any]:
        """To one request. Never raises for what the script may send."""
        try:
            request = json.loads(line)
            if not isinstance(request, dict):
                raise NotAsked("a request is an object")
            return self._answer(request)
        except CannotRun as error:
            return {"error": error.ending.message, "may_pass": error.ending.exit_code == PORTAL_UNREACHABLE}
        except (NotAsked, ValueError, OSError, RecursionError) as error:
            return {"error": str(error), "may_pass": False}

    def end(self) -> None:
        """Nothing of it is open any more."""
        for pinned in self._pinned.values():
            self._folder.release(pinned)
        self._pinned.clear()

    def _answer(self, request: Mapping[str, Any]) -> Dict[str, Any]:
        operation = request.get("op")
        if operation == "list":
            return {"files": [[file.path, file.size] for file in self._input(request).files if is_shard(file.path)]}
        if operation == "read":
            return self._read(self._input(request), request.get("paths"))
        if operation == "agree":
            return self._agreed(request.get("name"), request.get("value"))
        number = request.get("shard")
        if not isinstance(number, int) or not 0 <= number < len(self._files):
            raise NotAsked("shard is %r: %d were asked for" % (number, len(self._files)))
        if operation == "get":
            return self._get(number)
        if operation == "release":
            if number in self._pinned:
                self._folder.release(self._pinned.pop(number))
            return {}
        raise NotAsked("op is %r" % (operation,))

    def _agreed(self, name: Any, value: Any) -> Dict[str, Any]:
        if self._agree is None or not isinstance(name, str) or not isinstance(value, str):
            raise NotAsked("name and value are no texts, or this task has no way to agree")
        try:
            return {"value": self._agree(name, value)}
        except (PortalRefused, PortalRejected) as error:
            raise NotAsked("the portal refuses: %s" % error) from error
        except PortalAway:
            return {"wait": True}

    def _input(self, request: Mapping[str, Any]) -> Bundle:
        bundle = self._bundles.get(str(request.get("input")))
        if bundle is None:
            raise NotAsked("no input is called %r and streamed" % (request.get("input"),))
        return bundle

    def _read(self, bundle: Bundle, paths: Any) -> Dict[str, Any]:
        known = {file.path: file for file in bundle.files}
        if not isinstance(paths, list) or not all(isinstance(path, str) for path in paths):
            raise NotAsked("paths is no list of texts")
        missing = [path for path in paths if path not in known]
        if missing:
            raise NotAsked("%s is not in the dataset version, which has %d files" % (missing[0], len(known)))
        self.end()
        self._coming.clear()
        self._bundle, self._files = bundle, [known[path] for path in paths]
        self._fetching.ahead(bundle, self._files[:AHEAD])
        return {"shards": len(self._files)}

    def _get(self, number: int) -> Dict[str, Any]:
        assert self._bundle is not None
        file = self._files[number]
        self._fetching.ahead(self._bundle, self._files[number : number + 1 + AHEAD])
        if number not in self._pinned:
            pinned = self._pin(self._bundle, file, number)
            if pinned is None:
                return {"wait": True}
            self._pinned[number] = pinned
        return {"path": self._folder.path_of(self._bundle.version, file)}

    def _pin(self, bundle: Bundle, file: RemoteFile, number: int) -> Optional[int]:
        """None: it takes longer than one answer may. Other requests of the same reader come in between."""
        until = time.monotonic() + LONGEST_WAIT
        while True:
            pinned = self._folder.pin(bundle.version, file)
            if pinned is not None:
                return pinned
            one = self._coming.pop(number, None) or self._fetching.now(bundle, file)
            if not one.over.wait(max(0.0, until - time.monotonic())):
                self._coming[number] = one
                return None
            if one.error is not None:
                raise one.error
