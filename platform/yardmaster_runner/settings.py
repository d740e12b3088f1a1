"""The environment the engine gives, read once into a frozen value. Not here: the order, which the portal gives."""

from __future__ import annotations

import contextlib
import json
import os
import socket
import sys
from dataclasses import dataclass
from typing import Callable, Dict, List, Mapping, Optional

from yardmaster_runner.exits import STAGE_IN_FAILED, CannotRun
from yardmaster_runner.narrower import Listening
from yardmaster_runner.own_python import python_in

ROLES = ("chief", "worker", "ps", "evaluator", "driver", "executor")


@dataclass(frozen=True)
class Settings:
    """Which task this is, where the portal is, and which folders it has."""

    url: str
    token_file: str
    role: str
    index: int
    cluster: Dict[str, List[str]]
    work_dir: str
    log_dir: str
    log_dir_is_shared: bool
    """All tasks of the attempt see the same log directory."""
    cache_dir: str
    data_volume: str
    """The top of the namespace's data volume; empty where the job has nothing of it."""
    log_volume: str
    """The same of the log volume, for a program that removes what others left there."""
    home_dir: str
    """What a notebook's files are kept in, where the engine keeps some; else a folder that goes with the run."""
    nudge_file: str
    """It changes when the portal is to be asked at once what it wants of the task; empty where there is none."""
    restart: int
    python: str
    """The interpreter that runs the script."""
    has_own_python: bool
    """That one is made in the work folder, on top of the runner's (`own_python`)."""
    loopback_only: bool
    """The script, and all that it starts, may listen on this machine's own addresses alone (Linux)."""
    listen_address: str = ""
    """The IPv4 address by which the job's other machines reach it, on which it may listen, too."""

    def listening(self, say: Callable[[str], None]) -> Optional[Listening]:
        """Where the script may listen; None: everywhere. `say` tells its log of what was refused."""
        if not self.loopback_only:
            return None
        address = socket.inet_aton(self.listen_address) if self.listen_address else b""
        own = self.cluster.get(self.role, [])
        place = own[self.index] if self.index < len(own) else ""
        return Listening(say, address, int(place.rpartition(":")[2]) if place else 0)

    @property
    def own_address(self) -> str:
        """The host by which others reach this task; empty where it is in no cluster, and was given none."""
        own = self.cluster.get(self.role, [])
        return self.listen_address or (own[self.index].rpartition(":")[0] if self.index < len(own) else "")

    @property
    def spool_dir(self) -> str:
        return os.path.join(self.work_dir, "spool")


def read_settings(environment: Mapping[str, str]) -> Settings:
    """The settings, or `CannotRun` naming the variable that is missing or wrong."""
    work_dir = os.path.abspath(_required(environment, "YARDMASTER_WORK_DIR"))
    log_dir = environment.get("YARDMASTER_LOG_DIR", "")
    has_own_python = environment.get("YARDMASTER_OWN_PYTHON") == "1"
    role = _required(environment, "YARDMASTER_ROLE")
    if role not in ROLES:
        raise _wrong("YARDMASTER_ROLE", role, "it is one of " + ", ".join(ROLES))
    return Settings(
        url=_required(environment, "YARDMASTER_URL").rstrip("/"),
        token_file=_required(environment, "YARDMASTER_TOKEN_FILE"),
        role=role,
        index=_number(environment, "YARDMASTER_INDEX", _required(environment, "YARDMASTER_INDEX")),
        cluster=_cluster(environment.get("YARDMASTER_CLUSTER") or "{}"),
        work_dir=work_dir,
        log_dir=os.path.abspath(log_dir) if log_dir else os.path.join(work_dir, "log"),
        log_dir_is_shared=bool(log_dir),
        cache_dir=os.path.abspath(environment.get("YARDMASTER_CACHE_DIR") or os.path.join(work_dir, "cache")),
        data_volume=environment.get("YARDMASTER_DATA_VOLUME", ""),
        log_volume=environment.get("YARDMASTER_LOG_VOLUME", ""),
        home_dir=os.path.abspath(environment.get("YARDMASTER_HOME_DIR") or os.path.join(work_dir, "home")),
        nudge_file=environment.get("YARDMASTER_NUDGE_FILE", ""),
        restart=_number(environment, "YARDMASTER_RESTART", environment.get("YARDMASTER_RESTART") or "0"),
        python=python_in(work_dir) if has_own_python else environment.get("YARDMASTER_PYTHON") or sys.executable,
        has_own_python=has_own_python,
        loopback_only=environment.get("YARDMASTER_LOOPBACK_ONLY") == "1",
        listen_address=_ipv4("YARDMASTER_LISTEN_ADDRESS", environment.get("YARDMASTER_LISTEN_ADDRESS", "")),
    )


def _required(environment: Mapping[str, str], name: str) -> str:
    value = environment.get(name, "")
    if not value:
        raise CannotRun(STAGE_IN_FAILED, "StageInFailed", "%s is not set: the engine must give it" % name)
    return value


def _wrong(name: str, value: str, rule: str) -> CannotRun:
    return CannotRun(STAGE_IN_FAILED, "StageInFailed", "%s is %r: %s" % (name, value[:100], rule))


def _number(environment: Mapping[str, str], name: str, text: str) -> int:
    if not text.isdigit():
        raise _wrong(name, text, "it is a whole number from 0")
    return int(text)


def _ipv4(name: str, text: str) -> str:
    with contextlib.suppress(OSError):
        if not text or socket.inet_ntoa(socket.inet_aton(text)) == text:
            return text
    raise _wrong(name, text, "it is an IPv4 address")


def _cluster(text: str) -> Dict[str, List[str]]:
    rule = 'it is JSON like {"worker": ["host:port"], "ps": ["host:port"]}'
    try:
        value = json.loads(text)
    except ValueError as error:
        raise _wrong("YARDMASTER_CLUSTER", text, rule) from error
    if not isinstance(value, dict) or not all(isinstance(hosts, list) for hosts in value.values()):
        raise _wrong("YARDMASTER_CLUSTER", text, rule)
    return {str(role): [str(host) for host in hosts] for role, hosts in value.items()}
