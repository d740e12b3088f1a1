"""The machines of the engine `hosts`, as its operator lists them in a file:

    [[machine]]
    name = "gpu-1"
    address = "10.0.0.11"
    user = "train"

`Host` has every field. The file is read again when it has changed. Every mistake is `Misconfigured`, with its place.

In place of a file a function can give the list (`function:package.module.name`): the portal's own keeps it in its
database. `inventory_of` tells the two apart.
"""

from __future__ import annotations

import importlib
import ipaddress
import re
import threading
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

from yardmaster.errors import Misconfigured
from yardmaster.quantity import NotAQuantity, parse_cpu, parse_memory

MOST_MACHINES = 500
LARGEST_FILE = 1 << 20
_NAME = re.compile(r"[a-z0-9]([a-z0-9.-]{0,61}[a-z0-9])?")
_USER = re.compile(r"[A-Za-z_][A-Za-z0-9_.-]{0,31}")


@dataclass(frozen=True)
class Host:
    """One machine. What is empty or None is measured there, or has the value that the machine's own settings give."""

    name: str
    """A DNS label, as jobs and pages name it."""
    address: str
    """The private IP address by which the portal and the other machines reach it. Tasks listen on it alone."""
    user: str
    port: int = 22
    host_key: str = ""
    """Its public key, as `ssh-keyscan` prints it (`ssh-ed25519 AAAA…`). Empty: the one that an administrator has
    accepted."""
    folder: str = "~/.yardmaster"
    """Where everything of the portal lies on it, on a local disk."""
    python: str = "python3"
    """Python 3.11 or newer, for supervisors and for tasks that have no other."""
    task_python: str = ""
    """The Python of tasks, with TensorFlow. Empty: the environment that the portal installs."""
    cores: float | None = None
    memory: int | None = None
    gpus: tuple[str, ...] | None = None
    """As CUDA names them."""
    ports: tuple[int, int] | None = None
    """First and last of those that tasks may listen on."""
    is_cordoned: bool = False
    """It takes no further tasks; what runs there continues."""

    @property
    def place(self) -> str:
        """How `known_hosts` names it."""
        return f"[{self.address}]:{self.port}"


FUNCTION = "function:"
"""What a list begins with that is no file."""


@dataclass(frozen=True)
class Listed:
    """The machines that a function returns, by name. `path` is its dotted path."""

    path: str

    def hosts(self) -> Mapping[str, Host]:
        """Those that it lists now. Raises `Misconfigured`, and `Unavailable` where it cannot be asked."""
        module, _, name = self.path.rpartition(".")
        try:
            listed = getattr(importlib.import_module(module), name)
        except (ImportError, AttributeError, ValueError) as error:
            raise Misconfigured(
                f"The list of machines {self.path} cannot be imported: {error}.",
                remedy="Set YARDMASTER_HOSTS to database, or to a file that lists machines (docs/hosts.md).",
            ) from error
        return cast("Mapping[str, Host]", listed())


def inventory_of(machines: Path | str) -> Inventory | Listed:
    """The list that an engine's option `machines` names: a file, or `function:` and the dotted path of one."""
    text = str(machines)
    if text.startswith(FUNCTION):
        return Listed(text.removeprefix(FUNCTION))
    return Inventory(Path(machines))


class Inventory:
    """The machines in a file, by name. May be shared by threads."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._lock = threading.Lock()
        self._read: tuple[object, dict[str, Host]] | None = None

    def hosts(self) -> Mapping[str, Host]:
        """Those that the file lists now, in its order. Raises `Misconfigured`."""
        try:
            state = self.path.stat()
            stamp = (state.st_mtime_ns, state.st_size, state.st_ino)
            with self._lock:
                if self._read is None or self._read[0] != stamp:
                    if state.st_size > LARGEST_FILE:
                        raise _wrong(self.path, f"it is larger than {LARGEST_FILE >> 20} MiB")
                    self._read = stamp, hosts_in(self.path.read_bytes(), self.path)
                return self._read[1]
        except OSError as error:
            raise Misconfigured(
                f"The list of machines {self.path} cannot be read: {error.strerror}.",
                remedy="Set YARDMASTER_HOSTS to a file that lists machines (docs/hosts.md).",
            ) from error


def hosts_in(data: bytes, path: Path) -> dict[str, Host]:
    """The machines that the text of a file lists. Raises `Misconfigured` at the first mistake."""
    try:
        found = tomllib.loads(data.decode())
    except (UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise _wrong(path, str(error)) from error
    unknown = sorted(set(found) - {"machine"})
    entries = found.get("machine", [])
    if unknown or not isinstance(entries, list) or not all(isinstance(one, dict) for one in entries):
        raise _wrong(path, f"{unknown[0] if unknown else 'machine'} is not a list of [[machine]]")
    if len(entries) > MOST_MACHINES:
        raise _wrong(path, f"it lists {len(entries)} machines, but can have at most {MOST_MACHINES}")
    hosts: dict[str, Host] = {}
    addresses: dict[tuple[str, str], str] = {}
    for number, entry in enumerate(entries, 1):
        host = _host(entry, f"machine {entry.get('name') or number}", path)
        if host.name in hosts:
            raise _wrong(path, f"two machines are called {host.name}")
        # Two names for one machine: what is free there would count twice.
        same = addresses.setdefault((host.address, str(host.port)), host.name)
        if same != host.name:
            raise _wrong(path, f"{same} and {host.name} have the same address")
        hosts[host.name] = host
    return hosts


def _host(entry: Mapping[str, Any], place: str, path: Path) -> Host:
    values, wrong = read_entry(entry)
    if wrong:
        raise _wrong(path, f"{place}: {next(iter(wrong.values()))}")
    return Host(**values)


def read_entry(entry: Mapping[str, Any]) -> tuple[dict[str, Any], dict[str, str]]:
    """What the entry of one machine says, as `Host` has it, and by field what is wrong with it."""
    values, wrong = dict[str, Any](), dict[str, str]()
    for name in entry:
        if name not in _FIELDS:
            wrong[name] = f"there is no field {name}"
    for name in ("name", "address", "user"):
        if not entry.get(name):
            wrong[name] = f"{name} is missing"
    for name, value in entry.items():
        if name in wrong:
            continue
        field = "is_cordoned" if name == "cordoned" else name
        try:
            values[field] = _READERS[field](value)
        except _Wrong as error:
            wrong[name] = str(error)
        except NotAQuantity as error:
            wrong[name] = f"{name} is {value!r}: {error}"
    return values, wrong


class _Wrong(ValueError):
    pass


def _text(name: str, pattern: re.Pattern[str] | None = None, longest: int = 1000) -> Any:
    def read(value: object) -> str:
        if not isinstance(value, str) or len(value) > longest or not value.isprintable():
            raise _Wrong(f"{name} is not a line of text")
        if pattern is not None and not pattern.fullmatch(value):
            raise _Wrong(f"{name} is {value!r}: it may have letters, digits, - and .")
        return value

    return read


def _address(value: object) -> str:
    try:
        address = ipaddress.ip_address(str(value))
    except ValueError as error:
        raise _Wrong(f"address is {value!r}, and must be an IP address, such as 10.0.0.11") from error
    if address.version != 4 or address.is_unspecified or address.is_multicast:
        raise _Wrong(f"address is {value!r}, and must be the IPv4 address of one machine")
    return str(address)


def _port(value: object) -> int:
    if not isinstance(value, int) or isinstance(value, bool) or not 0 < value < 65_536:
        raise _Wrong(f"port is {value!r}, and must be between 1 and 65535")
    return value


def _ports(value: object) -> tuple[int, int]:
    if not isinstance(value, list) or len(value) != 2:
        raise _Wrong(f"ports is {value!r}, and must be [first, last]")
    first, last = _port(value[0]), _port(value[1])
    if first > last:
        raise _Wrong(f"ports is {value!r}, and its first is larger than its last")
    return first, last


def _gpus(value: object) -> tuple[str, ...]:
    if isinstance(value, int) and not isinstance(value, bool) and 0 <= value <= 64:
        return tuple(str(number) for number in range(value))
    if isinstance(value, list) and len(value) <= 64 and all(isinstance(one, str | int) for one in value):
        return tuple(str(one) for one in value)
    raise _Wrong(f"gpus is {value!r}, and must be a number or a list of what CUDA calls them")


def _flag(value: object) -> bool:
    if not isinstance(value, bool):
        raise _Wrong(f"cordoned is {value!r}, and must be true or false")
    return value


_READERS: Mapping[str, Any] = {
    "name": _text("name", _NAME),
    "address": _address,
    "user": _text("user", _USER),
    "port": _port,
    "host_key": _text("host_key"),
    "folder": _text("folder"),
    "python": _text("python"),
    "task_python": _text("task_python"),
    "cores": parse_cpu,
    "memory": parse_memory,
    "gpus": _gpus,
    "ports": _ports,
    "is_cordoned": _flag,
}
_FIELDS = frozenset(_READERS) - {"is_cordoned"} | {"cordoned"}


def _wrong(path: Path, what: str) -> Misconfigured:
    return Misconfigured(f"The list of machines {path} is wrong: {what}.", remedy="docs/hosts.md describes its fields.")
