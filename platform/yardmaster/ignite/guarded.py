"""A cluster as a process with limits reaches it: the nodes of the connection alone, at addresses that are allowed,
with so many bytes; and what went wrong as a problem of the connection. Certificates stay in memory.

Who runs the cluster may be hostile. Not here: what is asked of it (`program`, `copy_program`).
"""

from __future__ import annotations

import os
import socket
import struct
from collections.abc import Callable, Mapping
from dataclasses import asdict, replace
from typing import Any

from yardmaster.errors import Problem
from yardmaster.ignite.nodes import address_problem, may_dial, policy_from_json
from yardmaster.ignite.refusals import NotLooked, problem_of, too_costly
from yardmaster.storage import pinned
from yardmaster_runner.data.ignite_reader.access import Access, Address, tls_context
from yardmaster_runner.data.ignite_reader.cluster import Cluster
from yardmaster_runner.data.ignite_reader.errors import IgniteDataError, IgniteUnavailable, ServerRefusal

TIMEOUT = 15.0
SHORTEST_MASKED = 4
MASK = "[secret]"
_BROKEN = (struct.error, IndexError, ValueError, OverflowError, RecursionError)


class Guarded:
    """The cluster of one task: `nodes`, `secrets`, `policy` and `most_bytes` of it. `largest`: bytes of an answer."""

    def __init__(self, task: Mapping[str, Any], *, largest: int, patience: float = 0.0) -> None:
        self._task = task
        self._nodes: tuple[Address, ...] = tuple((host, port) for host, port in task["nodes"])
        self._policy = policy_from_json(task["policy"])
        self._left = int(task["most_bytes"])
        secrets = task["secrets"]
        access = Access(
            self._nodes, secrets.get("username"), secrets.get("password"), self._tls(), TIMEOUT, self._dial, largest
        )  # fmt: skip
        self.cluster = Cluster(access, patience=patience)

    def note(self, received: int) -> None:
        """So many bytes have come. Raises `NotLooked` where they are too many."""
        self._left -= received
        if self._left < 0:
            raise NotLooked(too_costly())

    def _tls(self) -> Any:
        secrets = self._task["secrets"]
        paths = {name: _in_memory(name, secrets[name]) for name in ("certificate", "ca") if secrets.get(name)}
        return tls_context(paths.get("certificate"), None, secrets.get("certificate_password"), paths.get("ca"))

    def _dial(self, address: Address, timeout: float) -> socket.socket:
        """Addresses that the cluster itself names are no nodes of the connection."""
        host, port = address
        if address not in self._nodes or not may_dial(self._policy, host, port):
            raise OSError("it is not a host of this connection")
        found = pinned.addresses_of(host, port)
        try:
            pinned.refuse_addresses(found, lambda one: self._policy.may_connect(host, port, one))
        except pinned.AddressRefused as error:
            raise NotLooked(address_problem(host, error.message)) from error
        return pinned.connected(found, port, lambda: timeout)


def answered(task: Mapping[str, Any], work: Callable[[], dict[str, Any]]) -> dict[str, Any]:
    """`found`: what the work has found; or `refused`: why not, without the values of secrets."""
    try:
        return {"found": work()}
    except NotLooked as error:
        return {"refused": asdict(error.problem)}
    except (IgniteDataError, IgniteUnavailable, ServerRefusal) as error:
        found = problem_of(error, task)
        return {"refused": asdict(replace(found, message=masked(found.message, task)))}
    except MemoryError:
        return {"refused": asdict(too_costly())}
    except _BROKEN as error:
        message = f"The server's answer is not one of Ignite ({type(error).__name__})."
        remedy = "Check that the port is the one for thin clients, 10800 if nothing else was configured."
        return {"refused": asdict(Problem("hosts", "ignite_broken", message, remedy, task["hosts"]))}


def _in_memory(name: str, text: str) -> str:
    """The path of a file that is on no disk."""
    place = os.memfd_create(name)
    os.write(place, text.encode())
    return f"/proc/self/fd/{place}"


def masked(value: Any, task: Mapping[str, Any]) -> Any:
    """Without the values of secrets, which a server may send back to have them shown."""
    hidden = [text for name, text in task["secrets"].items() if name != "username" and len(text) >= SHORTEST_MASKED]
    return _without(value, hidden)


def _without(value: Any, hidden: list[str]) -> Any:
    if isinstance(value, dict):
        return {key: _without(one, hidden) for key, one in value.items()}
    if isinstance(value, list):
        return [_without(one, hidden) for one in value]
    if isinstance(value, str):
        for one in sorted(hidden, key=len, reverse=True):
            value = value.replace(one, MASK)
    return value
