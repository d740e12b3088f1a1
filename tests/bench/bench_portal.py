"""The portal that measurements run against: a fresh home, every process, and an administrator's client."""

from __future__ import annotations

import json
import os
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import psutil

from portal.demo.portal import RunningPortal
from yardmaster_client import Yardmaster


@dataclass(frozen=True)
class BenchPortal:
    """A running portal, its home, and a signed-in client."""

    home: Path
    url: str
    token: str
    client: Yardmaster

    def process(self, name: str) -> psutil.Process:
        """One of the portal's processes, by the name that `up` gives it."""
        rows = json.loads((self.home / "run" / "processes.json").read_text())
        return psutil.Process(next(row["pid"] for row in rows if row["name"] == name))

    def processes(self) -> list[psutil.Process]:
        rows = json.loads((self.home / "run" / "processes.json").read_text())
        return [psutil.Process(row["pid"]) for row in rows]

    def put_script(self, name: str, text: str) -> str:
        """Upload one script as `main.py`; returns the code version's id."""
        with tempfile.TemporaryDirectory() as folder:
            (Path(folder) / "main.py").write_text(text)
            item = self.client.code.put(name, [Path(folder)])
        assert item.latest is not None
        return item.latest.id


@contextmanager
def bench_portal(host: str = "127.0.0.1", settings: Mapping[str, str] | None = None) -> Iterator[BenchPortal]:
    """A portal in a new home on a free port of `host`; gone, with all that it made, at the end. `settings` are
    environment variables."""
    with tempfile.TemporaryDirectory(prefix="yardmaster-bench-") as folder:
        told = {**(settings or {}), "YARDMASTER_HOME": folder}
        before = {name: os.environ.get(name) for name in told}
        os.environ.update(told)
        try:
            with RunningPortal(0, host) as running:
                token = running.access().token
                with Yardmaster(running.url, token) as client:
                    yield BenchPortal(Path(folder), running.url, token, client)
        finally:
            for name, value in before.items():
                if value is None:
                    del os.environ[name]
                else:
                    os.environ[name] = value
