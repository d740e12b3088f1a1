"""A real registry of container images for tests (the CNCF's Distribution), with one user and a password.

It speaks plain HTTP. Nodes pull so from a registry of their own loopback alone, hence it may be started in a node's
network (`before`): what is pushed to the node's address is pulled from 127.0.0.1.
"""

from __future__ import annotations

import base64
import json
import os
import re
import subprocess
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from tests.real.portal import ROOT

USER, PASSWORD = "puller", "pulls-for-tests"
_ENTRY = "$2y$05$yardmasterregistry123uOBx1umtHzOWVq3ron2WepBkpymyWCcC"
"""The password, as `htpasswd -B` writes it."""
_LISTENS = re.compile(rb"listening on \S+:(\d+)")
_CONFIG = """\
version: 0.1
storage: {{filesystem: {{rootdirectory: {objects}}}}}
http: {{addr: "{host}:0"}}
auth: {{htpasswd: {{realm: tests, path: {users}}}}}
"""


@dataclass(frozen=True)
class Registry:
    """One that runs; the port is the same on all of its addresses."""

    port: int
    process: subprocess.Popen[bytes]

    @property
    def name(self) -> str:
        """How references to its images begin, where it runs."""
        return f"127.0.0.1:{self.port}"

    def login(self, password: str = PASSWORD) -> dict[str, str]:
        """What a Secret of the type `kubernetes.io/dockerconfigjson` holds, in base64."""
        known = base64.b64encode(f"{USER}:{password}".encode()).decode()
        text = json.dumps({"auths": {self.name: {"username": USER, "password": password, "auth": known}}})
        return {".dockerconfigjson": base64.b64encode(text.encode()).decode()}


@contextmanager
def registry(folder: Path, before: Sequence[str] = (), host: str = "127.0.0.1") -> Iterator[Registry]:
    """Until it listens; ended afterwards. `before` are words that start the program elsewhere, in its own process;
    `host` empty: on all addresses there."""
    built = subprocess.run([ROOT / "deploy/registry/build"], check=True, stdout=subprocess.PIPE, text=True)
    users, config, log = folder / "users", folder / "registry.yaml", folder / "registry.log"
    folder.mkdir(parents=True, exist_ok=True)
    users.write_text(f"{USER}:{_ENTRY}\n")
    config.write_text(_CONFIG.format(objects=folder / "objects", host=host, users=users))
    command = [*before, built.stdout.strip(), "serve", str(config)]
    environment = {**os.environ, "OTEL_TRACES_EXPORTER": "none"}
    with log.open("wb") as output:
        process = subprocess.Popen(command, env=environment, stdout=output, stderr=output)
    try:
        yield Registry(_port_in(log, process), process)
    finally:
        process.kill()
        process.wait(20)


def _port_in(log: Path, process: subprocess.Popen[bytes]) -> int:
    deadline = time.monotonic() + 60
    while (found := _LISTENS.search(log.read_bytes())) is None:
        if process.poll() is not None or time.monotonic() > deadline:
            raise RuntimeError(log.read_text()[-2000:])
        time.sleep(0.05)
    return int(found[1])
