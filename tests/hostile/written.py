"""Everything that a portal, its jobs and its clients have written, searched for signed addresses."""

from __future__ import annotations

import contextlib
import re
import stat
import threading
import time
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

import redis

from portal.env import socket_folder
from tests.real.files import all_below

LONGEST_LIFE = 15 * 60
SIGNS = re.compile(rb"(?i)X-Amz-(?:Signature|Credential)(?:=|%3D)|[?&\"' ]signature(?:=|%3D|\": *\")[0-9a-f]{64}")
END = "the end of what is watched"
LIVE = ("local/runs",)
"""Folders that go when a job ends: they are looked at all the time."""
CONTENT = ("objects", "local/cache")
"""What users have uploaded."""


def lives(address: str) -> float | None:
    """For how many seconds from its making an address is good; None of one that nothing signs."""
    query = parse_qs(urlsplit(address).query)
    if "X-Amz-Signature" in query:
        return float(query["X-Amz-Expires"][0])
    if "signature" in query and "expires" in query:
        return float(query["expires"][0]) - time.time()
    return None


class Written:
    """Of the portal in `home`; `add` what went elsewhere."""

    def __init__(self, home: Path) -> None:
        self._home = home
        self._socket = str(socket_folder(home) / "valkey.sock")
        self._texts: dict[str, bytes] = {}
        self._live: dict[str, bytes] = {}
        self._messages: list[str] = []

    def add(self, name: str, text: str) -> None:
        self._texts[f"{len(self._texts)} {name}"] = text.encode()

    @contextlib.contextmanager
    def watched(self) -> Iterator[None]:
        """Keeps the files of runs, which are removed with them, and every message to Valkey."""
        ended = threading.Event()
        threads = [
            threading.Thread(target=self._keep_files, args=[ended]),
            threading.Thread(target=self._keep_messages),
        ]
        for one in threads:
            one.start()
        try:
            yield
        finally:
            ended.set()
            with redis.Redis(unix_socket_path=self._socket) as client:
                client.echo(END)
            for one in threads:
                one.join()

    def everything(self) -> dict[str, bytes]:
        """By name: all files of the portal's home but users' own content, its database and the store of logs among
        them; what was seen of runs; messages; what clients printed."""
        found = {name: content for name, content in self._files(self._home) if not name.startswith(CONTENT)}
        return {**found, **self._live, **self._texts, "messages": "\n".join(self._messages).encode()}

    @staticmethod
    def leaks(found: Mapping[str, bytes], addresses: Iterable[str]) -> list[str]:
        """Where something that signs stands: in the form of an address, or a signature that was handed out."""
        queries = [parse_qs(urlsplit(one).query) for one in addresses]
        known = {query[name][0].encode() for query in queries for name in ("X-Amz-Signature", "signature")
                 if name in query}  # fmt: skip
        leaks = []
        for name, content in found.items():
            match = SIGNS.search(content)
            at = match.start() if match else max((content.find(one) for one in known), default=-1)
            if at >= 0:
                leaks.append(f"{name}: {content[max(0, at - 200) : at + 100]!r}")
        return leaks

    def _files(self, folder: Path, seen: dict[str, tuple[int, int]] | None = None) -> Iterator[tuple[str, bytes]]:
        """Files below the folder, some of which go meanwhile; with `seen` those that are new or were written since."""
        seen = {} if seen is None else seen
        for file in all_below(folder):
            with contextlib.suppress(OSError):
                found = file.lstat()
                is_read = seen.get(str(file)) == (found.st_size, found.st_mtime_ns)
                if stat.S_ISREG(found.st_mode) and not is_read and file.suffix not in (".bin", ".pb"):
                    yield str(file.relative_to(self._home)), file.read_bytes()
                    seen[str(file)] = found.st_size, found.st_mtime_ns

    def _keep_files(self, ended: threading.Event) -> None:
        seen: dict[str, tuple[int, int]] = {}
        while not ended.wait(0.2):
            for folder in LIVE:
                files = self._files(self._home / folder, seen)
                self._live.update((f"(then) {name}", content) for name, content in files)

    def _keep_messages(self) -> None:
        with redis.Redis(unix_socket_path=self._socket) as client, client.monitor() as monitor:
            while END not in (said := monitor.next_command()["command"]):
                self._messages.append(said)
