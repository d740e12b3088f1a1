"""A real Apache Ignite for tests: nodes on loopback, plain or with TLS and passwords, and caches in them."""

from __future__ import annotations

import os
import shutil
import subprocess
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

FOLDER = Path(__file__).resolve().parents[2] / "deploy" / "ignite"
PASSWORD = "password"
"""Of the key in `client-sealed.pem`."""
SHORT_LIVED = ["-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC"]
"""Options of Java for what runs for seconds: half of the processor time."""


@dataclass(frozen=True)
class Ignite:
    """Nodes that run."""

    folder: Path
    is_secure: bool
    address: str = "127.0.0.1"
    """Of the first node."""

    @property
    def ports(self) -> list[int]:
        """Where each node listens for thin clients."""
        return [int(one) for one in (self.folder / "ports").read_text().split()]

    @property
    def keys(self) -> Path:
        return self.folder / "keys"

    def variables(self) -> dict[str, str]:
        """What a script is told."""
        found = {"IGNITE_DATASET_HOST": self.address, "IGNITE_DATASET_PORT": str(self.ports[0])}
        if self.is_secure:
            found |= {
                "IGNITE_DATASET_CERTFILE": str(self.keys / "client.pem"),
                "IGNITE_DATASET_USERNAME": "ignite",
                "IGNITE_DATASET_PASSWORD": "ignite",
            }
        return found

    def fill(self, *commands: str) -> None:
        """Run commands of `IgniteFill.java`, such as `numbers one-numbers 0 100`; those of SQL begin with `sql `."""
        words: list[str] = []
        for one in commands:
            words += [",", *(["sql", one[4:]] if one.startswith("sql ") else one.split())]
        path = subprocess.run([FOLDER / "build"], check=True, stdout=subprocess.PIPE, text=True).stdout.strip()
        source = Path(__file__).with_name("IgniteFill.java")
        command = ["java", f"@{FOLDER / 'java-options'}", "-Xmx256m", *SHORT_LIVED, "-cp", path, source]
        command.append(f"{self.address}:{self.ports[0]}")
        keys = str(self.keys) if self.is_secure else "-"
        done = subprocess.run([*command, keys, *words[1:]], capture_output=True, text=True, timeout=120, check=False)
        if done.returncode:
            raise RuntimeError(done.stderr[-3000:])

    def store_options(self, name: str = "YARDMASTER", backups: int = 0) -> dict[str, object]:
        """Of `yardmaster.storage.ignite.IgniteStorage`, with its tables and its cache under this name."""
        hosts = ",".join(f"127.0.0.1:{port}" for port in self.ports)
        found: dict[str, object] = {"hosts": hosts, "name": name, "backups": backups}
        if self.is_secure:
            password = self.folder / "password"
            password.write_text("ignite\n")
            certificate = str(self.keys / "client.pem")
            found |= {"username": "ignite", "password_file": str(password), "certificate_file": certificate}
        return found

    def add(self) -> None:
        """One more node; returns when it is one of the cluster."""
        _run("up", self.folder, "1")

    def kill(self, number: int) -> None:
        """End a node as if its machine failed."""
        process = Path("/proc", (self.folder / f"node-{number}" / "pid").read_text().strip())
        _run("down", self.folder, str(number))
        deadline = time.monotonic() + 10
        while process.exists() and "\nState:\tZ" not in (process / "status").read_text():
            if time.monotonic() > deadline:
                raise RuntimeError(f"node {number} was not killed")
            time.sleep(0.02)


def lacks_ignite() -> str:
    """Why no Ignite can be had here; empty where it can. Fetches it where that was not done."""
    done = subprocess.run([FOLDER / "build"], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, check=False)
    if not done.returncode and not shutil.which("openssl"):
        return "no openssl (Debian: apt install openssl)"
    return done.stderr.strip().splitlines()[-1].removeprefix("ignite: ") if done.returncode else ""


@contextmanager
def ignite(folder: Path, nodes: int = 1, *, secure: bool = False, machines: str = "") -> Iterator[Ignite]:
    """Until it answers; ended afterwards. `machines`: addresses of the first nodes, as if each was a machine."""
    try:
        _run("up", folder, str(nodes), *(["secure"] if secure else []), machines=machines)
        yield Ignite(folder, secure)
    finally:
        _run("down", folder)


@contextmanager
def ignite_within(folder: Path, places: Mapping[str, str]) -> Iterator[Ignite]:
    """A node in each of these network namespaces, at an address that it has there, as one cluster."""
    machines = " ".join(places.values())
    try:
        for space in places:
            _run("up", folder, "1", machines=machines, space=space)
        yield Ignite(folder, is_secure=False, address=next(iter(places.values())))
    finally:
        _run("down", folder)


def _run(word: str, folder: Path, *more: str, machines: str = "", space: str = "") -> None:
    environment = {"IGNITE_JAVA": " ".join(SHORT_LIVED), "IGNITE_MACHINES": machines} | os.environ
    within = ["ip", "netns", "exec", space] if space else []
    done = subprocess.run(
        [*within, FOLDER / "ignite", word, folder, *more],
        capture_output=True, text=True, timeout=180, check=False, env=environment,
    )  # fmt: skip
    if done.returncode:
        raise RuntimeError(done.stderr[-3000:])
