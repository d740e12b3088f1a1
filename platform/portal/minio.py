"""MinIO on this machine: `make minio` runs it for people, `make up STORE=minio` and `make demo STORE=minio` beside the
portal. It listens where the portal does, and its keys and objects lie in the portal's home.

Not here: building it (`deploy/objectstores/build`), and a store that others run (the settings YARDMASTER_S3_…).
"""

from __future__ import annotations

import argparse
import os
import secrets
import shutil
import socket
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

from portal import env
from portal.up.home import home_of

ROOT = Path(__file__).resolve().parents[2]
PORT = 9000


class MinioMissing(Exception):
    """There is no MinIO program. The message says how to get one."""


@dataclass(frozen=True)
class Minio:
    """One server: where it listens, where its objects lie, and its pair of keys."""

    host: str
    port: int
    folder: Path
    access_key: str
    secret_key: str

    @property
    def url(self) -> str:
        return f"http://{self.host}:{self.port}"

    @property
    def probed_at(self) -> str:
        return f"{self.url}/minio/health/live"

    def command(self) -> tuple[str, ...]:
        self.folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        address = f"{self.host}:{self.port}"
        return (program(), "server", "--quiet", "--address", address, "--console-address", "127.0.0.1:0",
                str(self.folder))  # fmt: skip

    def environment(self) -> dict[str, str]:
        """What its own process is told."""
        return {
            "MINIO_ROOT_USER": self.access_key,
            "MINIO_ROOT_PASSWORD": self.secret_key,
            "MINIO_UPDATE": "off",
            "MINIO_BROWSER": "off",
        }

    def settings(self) -> dict[str, str]:
        """What the portal is told, so that its objects lie here."""
        return {
            "YARDMASTER_STORE": "s3",
            "YARDMASTER_S3_ENDPOINT": self.url,
            "YARDMASTER_S3_ACCESS_KEY": self.access_key,
            "YARDMASTER_S3_SECRET_KEY": self.secret_key,
        }


def minio_of(home: Path, port: int = PORT, host: str = "127.0.0.1") -> Minio:
    """The server whose objects lie in this home. Its keys are made the first time."""
    file = home / "minio.keys"
    try:
        access_key, secret_key = file.read_text().split()
    except FileNotFoundError:
        access_key, secret_key = secrets.token_hex(10), secrets.token_hex(20)
        home.mkdir(parents=True, exist_ok=True)
        descriptor = os.open(file, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        with os.fdopen(descriptor, "w") as target:
            target.write(f"{access_key}\n{secret_key}\n")
    return Minio(host, port, home / "minio", access_key, secret_key)


def free_port(host: str) -> int:
    """The usual port, else any free one: what is stored holds no address."""
    for port in (PORT, 0):
        with socket.socket() as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            try:
                probe.bind((host, port))
            except OSError:
                continue
            return int(probe.getsockname()[1])
    raise MinioMissing(f"MinIO cannot listen on {host}.")


def program() -> str:
    """The one that `YARDMASTER_MINIO` names, else one on PATH, else that which is built. Raises `MinioMissing`."""
    if found := env.text("YARDMASTER_MINIO") or shutil.which("minio"):
        return found
    built = subprocess.run(
        [ROOT / "deploy" / "objectstores" / "build", "minio"], stdout=subprocess.PIPE, text=True, check=False
    )
    if built.returncode:
        raise MinioMissing("There is no MinIO: install Go to build it, or set YARDMASTER_MINIO to the path of one.")
    return built.stdout.strip()


def main() -> int:
    """`python -m portal.minio`: run until Ctrl-C, after saying how a portal is told of it."""
    parser = argparse.ArgumentParser(prog="portal.minio", description="Runs MinIO on this machine.")
    parser.add_argument("--port", type=int, default=PORT)
    server = minio_of(home_of(os.environ, ROOT), parser.parse_args().port)
    try:
        command = server.command()
    except MinioMissing as error:
        print(error, file=sys.stderr)
        return 1
    print(f"MinIO listens at {server.url}. A portal uses it with:", flush=True)
    for name, value in server.settings().items():
        print(f"  export {name}={value}", flush=True)
    print("  Ctrl-C stops it; its objects stay.", flush=True)
    os.execve(command[0], command, {**os.environ, **server.environment()})


if __name__ == "__main__":
    sys.exit(main())
