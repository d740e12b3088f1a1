"""The program that looks at one cluster, in a process of its own with limits: a task from stdin, its result to stdout.

Who runs the cluster may be hostile: memory, processor time, time and bytes are limited before the first byte is asked
for, and nothing but the nodes of the connection is connected to. Certificates stay in memory.
"""

from __future__ import annotations

import json
import os
import resource
import signal
import socket
import struct
import sys
from collections.abc import Mapping
from dataclasses import asdict, replace
from typing import Any

from yardmaster.errors import Problem
from yardmaster.ignite.nodes import address_problem, may_dial, policy_from_json
from yardmaster.ignite.refusals import NotLooked, problem_of, too_costly
from yardmaster.sandbox.program import limit
from yardmaster.storage import pinned
from yardmaster_runner.data.ignite_reader import wire
from yardmaster_runner.data.ignite_reader.access import Access, Address, tls_context
from yardmaster_runner.data.ignite_reader.cluster import Cluster
from yardmaster_runner.data.ignite_reader.errors import IgniteDataError, IgniteUnavailable, ServerRefusal
from yardmaster_runner.data.ignite_reader.survey import Survey

TIMEOUT = 15.0
LARGEST_ANSWER = 16 << 20
MOST_RESULT = 512 << 10
"""Bytes of what is kept. Of more, the last caches are shown without rows."""
SHORTEST_MASKED = 4
MASK = "[secret]"
_BROKEN = (struct.error, IndexError, ValueError, OverflowError, RecursionError)


def main() -> None:
    task = json.load(sys.stdin)
    limit(task)
    signal.alarm(task["wall"])  # where the worker that would end it was killed
    resource.setrlimit(resource.RLIMIT_FSIZE, (1 << 20, 1 << 20))  # files in memory: certificates
    json.dump(_result(task), sys.stdout)


def _result(task: Mapping[str, Any]) -> dict[str, Any]:
    try:
        return {"found": _masked(_fitting(_Look(task).found()), task)}
    except NotLooked as error:
        return {"refused": asdict(error.problem)}
    except (IgniteDataError, IgniteUnavailable, ServerRefusal) as error:
        found = problem_of(error, task)
        return {"refused": asdict(replace(found, message=_masked(found.message, task)))}
    except MemoryError:
        return {"refused": asdict(too_costly())}
    except _BROKEN as error:
        message = f"The server sent what is no answer of Ignite ({type(error).__name__})."
        remedy = "Check that the port is the one for thin clients, 10800 if nothing else was configured."
        return {"refused": asdict(Problem("hosts", "ignite_broken", message, remedy, task["hosts"]))}


class _Look:
    """One task."""

    def __init__(self, task: Mapping[str, Any]) -> None:
        self._task = task
        self._nodes: tuple[Address, ...] = tuple((host, port) for host, port in task["nodes"])
        self._policy = policy_from_json(task["policy"])
        self._left = int(task["most_bytes"])

    def found(self) -> dict[str, Any]:
        secrets = self._task["secrets"]
        access = Access(
            self._nodes, secrets.get("username"), secrets.get("password"), self._tls(), TIMEOUT, self._dial,
            LARGEST_ANSWER,
        )  # fmt: skip
        self._cluster = Cluster(access, patience=0.0)
        return Survey(self._cluster, self._ask).found()

    def _tls(self) -> Any:
        secrets = self._task["secrets"]
        paths = {name: _in_memory(name, secrets[name]) for name in ("certificate", "ca") if secrets.get(name)}
        return tls_context(paths.get("certificate"), None, secrets.get("certificate_password"), paths.get("ca"))

    def _ask(self, operation: int, body: bytes = b"") -> wire.Reader:
        answer = self._cluster.ask(operation, body)
        self._left -= len(answer.data)
        if self._left < 0:
            raise NotLooked(too_costly())
        return answer

    def _dial(self, address: Address, timeout: float) -> socket.socket:
        """Addresses that the cluster itself names are no nodes of the connection."""
        host, port = address
        if address not in self._nodes or not may_dial(self._policy, host, port):
            raise OSError("it is no host of this connection")
        found = pinned.addresses_of(host, port)
        try:
            pinned.refuse_addresses(found, lambda one: self._policy.may_connect(host, port, one))
        except pinned.AddressRefused as error:
            raise NotLooked(address_problem(host, error.message)) from error
        return pinned.connected(found, port, lambda: timeout)


def _in_memory(name: str, text: str) -> str:
    """The path of a file that is on no disk."""
    place = os.memfd_create(name)
    os.write(place, text.encode())
    return f"/proc/self/fd/{place}"


def _fitting(found: dict[str, Any]) -> dict[str, Any]:
    for part in ("preview", "columns"):
        for one in reversed(found["caches"]):
            if len(json.dumps(found)) <= MOST_RESULT:
                return found
            one[part] = []
            one["problem"] = one["problem"] or "This cluster has more than is shown here."
    return found


def _masked(value: Any, task: Mapping[str, Any]) -> Any:
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


if __name__ == "__main__":
    main()
