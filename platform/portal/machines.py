"""Machines for trying out, in network namespaces of this one: `make hosts` brings them up, `make hosts-down` ends them.

Each has a real sshd; what tasks import is installed on them as on any other machine. Not here: making them
(`deploy/hosts/hosts`).
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

from portal.up.home import home_of
from yardmaster.engines.hosts.connection import Links
from yardmaster.engines.hosts.installing import Installer
from yardmaster.engines.hosts.inventory import Inventory
from yardmaster.engines.hosts.keys import Keys
from yardmaster.errors import YardmasterError

ROOT = Path(__file__).resolve().parents[2]
PROGRAM = ROOT / "deploy" / "hosts" / "hosts"
COUNT = 4


@dataclass(frozen=True)
class Machines:
    """Those of one home. `gateway` is where they reach this machine."""

    folder: Path
    gateway: str

    @property
    def list_file(self) -> Path:
        return self.folder / "machines.toml"

    def settings(self) -> dict[str, str]:
        """What the portal is told, so that jobs run on them."""
        return {
            "YARDMASTER_HOSTS": str(self.list_file),
            "YARDMASTER_HOST": self.gateway,
            "YARDMASTER_ALLOWED_HOSTS": f"127.0.0.1,localhost,{self.gateway}",
        }


def those_of(home: Path) -> Machines | None:
    """The machines that are up; None where there are none."""
    folder = home / "machines"
    try:
        network = (folder / "network").read_text().strip()
    except FileNotFoundError:
        return None
    return Machines(folder, f"10.77.{network}.1") if (folder / "machines.toml").exists() else None


def _up(home: Path) -> int:
    folder, engine = home / "machines", home / "hosts"
    if those_of(home) is None:
        done = subprocess.run([PROGRAM, "up", folder, str(COUNT), Keys(engine).public()], check=False)
        if done.returncode:
            return done.returncode
    found = those_of(home)
    assert found is not None
    links = Links(Keys(engine))
    try:
        installer = Installer(engine, links, lambda text: print(text, flush=True))
        for host in Inventory(found.list_file).hosts().values():
            installer.install(host)
    except YardmasterError as error:
        print(error.message, error.remedy, file=sys.stderr)
        return 1
    finally:
        links.close()
    print(f"{COUNT} machines are up. A portal uses them with:")
    for name, value in found.settings().items():
        print(f"  export {name}={value}")
    print("  make hosts-down ends them.")
    return 0


def main() -> int:
    parser = argparse.ArgumentParser(prog="portal.machines", description="Machines for trying out.")
    parser.add_argument("verb", choices=["up", "down"])
    home = home_of(os.environ, ROOT)
    if parser.parse_args().verb == "up":
        return _up(home)
    return subprocess.run([PROGRAM, "down", home / "machines"], check=False).returncode


if __name__ == "__main__":
    sys.exit(main())
