"""Machines with a real sshd each, in network namespaces of this one (deploy/hosts)."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from yardmaster.engines.hosts.keys import Keys

ROOT = Path(__file__).resolve().parents[2]
_PROGRAM = ROOT / "deploy/hosts/hosts"


def lacks_machines() -> str:
    """Why none can be made here; empty where they can."""
    if os.geteuid() != 0:
        return "machines in network namespaces need root"
    if not Path("/usr/sbin/sshd").exists():
        return "no sshd (Debian: apt install openssh-server)"
    if not shutil.which("ip"):
        return "no ip (Debian: apt install iproute2)"
    done = subprocess.run(
        ["unshare", "--mount", "--net", "--pid", "--fork", "--mount-proc", "true"], capture_output=True, check=False
    )
    return "" if done.returncode == 0 else "this kernel lets no namespaces be made here"


@dataclass(frozen=True)
class Machines:
    """`m1`, `m2`, … `file` lists them; `portal` is a folder with the portal's key, which all of them let in."""

    folder: Path
    portal: Path

    @property
    def file(self) -> Path:
        return self.folder / "machines.toml"

    @property
    def gateway(self) -> str:
        """The address of this machine on their network."""
        return f"10.77.{(self.folder / 'network').read_text().strip()}.1"

    def address(self, number: int) -> str:
        return f"{self.gateway.rpartition('.')[0]}.{10 + number}"

    def space(self, number: int) -> str:
        """Its network namespace."""
        return f"ymh{(self.folder / 'network').read_text().strip()}-{number}"

    def home(self, number: int) -> Path:
        """The home of the user that the portal is there."""
        return self.folder / str(number) / "home"

    def crash(self, number: int) -> None:
        """It loses power."""
        self._do("crash", number)

    def boot(self, number: int) -> None:
        self._do("boot", number)

    def cut(self, number: int) -> None:
        """Pull its network cable."""
        self._do("cut", number)

    def join(self, number: int) -> None:
        self._do("join", number)

    def _do(self, verb: str, number: int) -> None:
        subprocess.run([_PROGRAM, verb, self.folder, str(number)], check=True, capture_output=True)


@contextmanager
def machines(folder: Path, count: int, entry: str = "") -> Iterator[Machines]:
    """So many, each with these lines in its entry of the list."""
    portal = folder / "portal"
    found = Machines(folder / "machines", portal)
    key = Keys(portal).public()
    environment = {**os.environ, "MACHINE": entry}
    try:
        subprocess.run([_PROGRAM, "up", found.folder, str(count), key], check=True, env=environment)
        yield found
    finally:
        subprocess.run([_PROGRAM, "down", found.folder], check=True)
