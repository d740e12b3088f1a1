"""Bringing the portal up, in the order that its parts need each other, until every one of them says it is ready."""

from __future__ import annotations

import json
import os
import socket
import stat
import sys
import threading
import time
import urllib.error
import urllib.request
from dataclasses import dataclass
from pathlib import Path

from portal.minio import Minio
from portal.up.keeper import Keeper
from portal.up.processes import Address, Process, broker, portal

_PATIENCE = 60.0


class CouldNotStart(Exception):
    """A part did not come up. The message says which, and what it printed last."""


@dataclass(frozen=True)
class Started:
    """What `prepare` told: a one-time link where there was no administrator yet."""

    sign_in_link: str = ""


def bring_up(
    keeper: Keeper, home: Path, address: Address, stop: threading.Event, store: Minio | None = None
) -> Started | None:
    """Start everything, and `store` where there is one, and wait until it is ready; None when `stop` was set before.

    Raises:
        CouldNotStart: the port is taken, the database cannot be prepared, or a process keeps dying.
    """
    _require_free(address, "make up PORT=9000")
    _require_free(address.workbench, "make up WORKBENCH_PORT=9001")
    for ready in (home / "run").glob("*.ready"):
        ready.unlink()
    if not os.environ.get("YARDMASTER_REDIS_URL"):
        _start_broker(keeper, home)
    if store is not None:
        _start_store(keeper, store)
    started = _prepare(keeper)
    processes = portal(address, home)
    keeper.start(processes)
    waiting = {process.name for process in processes}
    deadline = time.monotonic() + _PATIENCE
    while waiting and not stop.is_set():
        keeper.mend()
        waiting = {name for name in waiting if not _is_ready(name, home, address)}
        if time.monotonic() > deadline:
            name = min(waiting)
            raise CouldNotStart(f"{name} is not ready after {_PATIENCE:g} s.\n{_last_lines(keeper, name)}")
        stop.wait(0.1)
    return None if stop.is_set() else started


def _require_free(address: Address, remedy: str) -> None:
    family = socket.AF_INET6 if ":" in address.host else socket.AF_INET
    with socket.socket(family, socket.SOCK_STREAM) as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((address.host, address.port))
        except OSError as error:
            raise CouldNotStart(
                f"{address.host}:{address.port} cannot be used ({error.strerror}). Choose another: {remedy}"
            ) from error


def _start_broker(keeper: Keeper, home: Path) -> None:
    from portal.env import socket_folder

    folder = socket_folder(home)
    folder.mkdir(mode=0o700, exist_ok=True)
    found = folder.lstat()  # below /tmp another user may have been faster, also with a link
    if not stat.S_ISDIR(found.st_mode) or found.st_uid != os.getuid():
        raise CouldNotStart(f"{folder} belongs to another user. Set YARDMASTER_HOME to a folder with a shorter path.")
    folder.chmod(0o700)
    path = folder / "valkey.sock"
    path.unlink(missing_ok=True)
    keeper.start([broker(path, home / "run")])
    deadline = time.monotonic() + 10
    while not _accepts(path):
        if time.monotonic() > deadline or not keeper.is_alive("valkey"):
            raise CouldNotStart(f"The message server does not answer.\n{_last_lines(keeper, 'valkey')}")
        time.sleep(0.02)


def _start_store(keeper: Keeper, store: Minio) -> None:
    keeper.start([Process("minio", store.command(), probed_at=store.probed_at)])
    deadline = time.monotonic() + 30
    while not _answers(store.probed_at):
        if time.monotonic() > deadline or not keeper.is_alive("minio"):
            raise CouldNotStart(f"MinIO does not answer.\n{_last_lines(keeper, 'minio')}")
        time.sleep(0.05)


def _accepts(path: Path) -> bool:
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as client:
        try:
            client.connect(str(path))
        except OSError:
            return False
    return True


def _prepare(keeper: Keeper) -> Started:
    """Bring the database to this version; make the first administrator where there is none."""
    done = keeper.run([sys.executable, "manage.py", "prepare"])
    output = done.stdout.decode(errors="replace")
    if done.returncode:
        raise CouldNotStart(f"The portal could not be prepared.\n{_tail(output)}")
    return Started(**json.loads(output.strip().splitlines()[-1]))


def _is_ready(name: str, home: Path, address: Address) -> bool:
    if name != "web":
        return (home / "run" / f"{name}.ready").exists()
    return _answers(f"{address.url}/healthz")


def _answers(url: str) -> bool:
    try:
        with urllib.request.urlopen(url, timeout=2) as answer:
            return bool(answer.status == 200)
    except (urllib.error.URLError, OSError):
        return False


def _last_lines(keeper: Keeper, name: str) -> str:
    log = keeper.log_of(name, settled=True)
    return _tail(log.read_text(errors="replace")) if log.exists() else ""


def _tail(text: str, lines: int = 15) -> str:
    return "\n".join(text.rstrip().splitlines()[-lines:])
