"""Images of one's own for tests: built with the development cluster's buildah, pushed into a real registry that only
the node's network has, and pulled from there by the node."""

from __future__ import annotations

import secrets
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.cluster.reach import DEVCLUSTER, Cluster
from tests.real.registry import PASSWORD, USER, Registry, registry


@dataclass(frozen=True)
class PushedImage:
    """`reference` is how the node names it: with its digest, and nothing of it is on the node before."""

    registry: Registry
    reference: str

    def unknown(self) -> str:
        """Of the same repository, with a digest that it does not have."""
        return f"{self.reference.partition('@')[0]}@sha256:{'0' * 64}"


@contextmanager
def registry_on_node(cluster: Cluster, folder: Path) -> Iterator[Registry]:
    """With the node's own loopback as its address. What was pulled from it goes from the node afterwards."""
    if not cluster.is_developed:
        pytest.skip("a registry that nodes may pull from over plain HTTP: that of the development cluster alone")
    with registry(folder, (str(DEVCLUSTER), "network"), host="") as running:
        try:
            yield running
        finally:
            cluster.devcluster("unload", f"{running.name}/")


def push(cluster: Cluster, to: Registry, context: Path, name: str, folder: Path) -> PushedImage:
    """Build the Dockerfile of this folder upon a Debian with Python alone, and push it."""
    base = next(one for one in _buildah("images", "--format", "{{.Name}}:{{.Tag}}").split() if "/python:" in one)
    tag, digest = f"localhost/yardmaster/tests-{secrets.token_hex(4)}:1", folder / "digest"
    node = cluster.kubectl(
        "get", "nodes", "-o", 'jsonpath={.items[0].status.addresses[?(@.type=="InternalIP")].address}'
    )
    _buildah("bud", "--build-arg", f"BASE={base}", "--tag", tag, str(context))
    try:
        _buildah("push", "--quiet", "--disable-compression", "--tls-verify=false", "--creds", f"{USER}:{PASSWORD}",
                 "--digestfile", str(digest), tag, f"docker://{node}:{to.port}/{name}")  # fmt: skip
    finally:
        _buildah("rmi", tag)
    return PushedImage(to, f"{to.name}/{name}@{digest.read_text().strip()}")


def _buildah(*words: str) -> str:
    done = subprocess.run(
        [str(DEVCLUSTER), "buildah", *words], capture_output=True, text=True, timeout=120, check=False
    )
    assert done.returncode == 0, done.stderr[-2000:]
    return done.stdout
