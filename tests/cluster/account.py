"""The portal's account on a cluster, as deploy/kubernetes gives it: its rights, and the policy that bounds them.

Each account has names of its own, so that several tests, and a portal of the cluster's owner, have theirs side by side.
What the files say is applied as it is, but for these names.
"""

from __future__ import annotations

import json
import re
import secrets
import tempfile
import time
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import yaml

from tests.cluster.reach import Cluster, Refused, wait_for
from yardmaster.engines.kubernetes import KubernetesEngine
from yardmaster.engines.kubernetes.client.errors import Forbidden
from yardmaster.errors import Unavailable
from yardmaster.queueing.ledger import Quota

FILES = Path(__file__).resolve().parents[2] / "deploy" / "kubernetes"
IN_ORDER = ("admission-policy.yaml", "rights.yaml")
BY_POLICY = "ValidatingAdmissionPolicy"
"""What a refusal says that comes from the policy, and not from the lack of a right."""


@dataclass(frozen=True)
class Account:
    """`cluster` is the cluster as this account sees it: kubectl speaks with its token."""

    cluster: Cluster
    home: str
    prefix: str

    @property
    def role(self) -> str:
        return f"{self.home}-tasks"

    @property
    def options(self) -> dict[str, str]:
        """What the engine must be told."""
        return {
            "namespace_prefix": self.prefix,
            "bound_role": self.role,
            "bound_account": f"{self.home}/portal",
        }

    def engine(self, **tasks: Any) -> KubernetesEngine:
        options = {"image": self.cluster.probe_image, **self.options, **tasks}
        return KubernetesEngine(kubeconfig=self.cluster.kubeconfig, tasks=options)


@contextmanager
def portal_account(cluster: Cluster, prefix: str) -> Iterator[Account]:
    """Until the end of the context; the namespaces that it made go with it."""
    home = f"ym-home-{secrets.token_hex(3)}"
    given = [one for name in IN_ORDER for one in documents(name, home, prefix)]
    with tempfile.TemporaryDirectory(prefix="yardmaster-account-") as folder:
        try:
            for one in given:
                cluster.apply(one)
            path = Path(folder) / "kubeconfig"
            path.write_text(json.dumps(_kubeconfig(cluster, home)))
            account = Account(replace(cluster, kubeconfig=str(path)), home, prefix)
            wait_for("the policy to hold", lambda: _is_held(account), 30)
            yield account
        finally:
            cluster.remove_namespaces(prefix)
            for one in given:
                place = ("--namespace", one["metadata"].get("namespace", "default"))
                cluster.kubectl("delete", one["kind"], one["metadata"]["name"], "--wait=false", "--ignore-not-found",
                                *place)  # fmt: skip


def documents(name: str, home: str, prefix: str) -> list[dict[str, Any]]:
    """Of one of the files, with names that no portal on this cluster has."""
    text = (FILES / name).read_text()
    text = re.sub(r"yardmaster-(portal|namespaces|tasks)\b", rf"{home}-\1", text)
    text = text.replace("serviceaccount:yardmaster:portal", f"serviceaccount:{home}:portal")
    text = re.sub(r"(name|namespace): yardmaster\b(?!-)", rf"\1: {home}", text)
    return list(yaml.safe_load_all(text.replace("\"'yardmaster-'\"", f"\"'{prefix}'\"")))


def shaped(engine: KubernetesEngine, namespace_id: uuid.UUID, quota: Quota, portal_url: str) -> list[str]:
    """As the portal does: again, where rights that were just given are not heeded yet."""
    for _ in range(100):
        try:
            return list(engine.shape(namespace_id, quota, portal_url))
        except Forbidden:
            time.sleep(0.1)
        except Unavailable as error:
            if "just created" not in error.message:
                raise
            time.sleep(0.1)
    return list(engine.shape(namespace_id, quota, portal_url))


def may(account: Account, verb: str, what: str, namespace: str) -> bool:
    """Whether the account has this right there."""
    try:
        account.cluster.kubectl("auth", "can-i", verb, what, "--namespace", namespace, "-q")
    except Refused:
        return False
    return True


def namespace_of(name: str, **labels: str) -> dict[str, Any]:
    """A manifest, with those labels that the policy reads."""
    known = {
        "managed_by": "app.kubernetes.io/managed-by",
        "enforce": "pod-security.kubernetes.io/enforce",
        "enforce_version": "pod-security.kubernetes.io/enforce-version",
    }
    metadata = {"name": name, "labels": {known[label]: value for label, value in labels.items()}}
    return {"apiVersion": "v1", "kind": "Namespace", "metadata": metadata}


def _is_held(account: Account) -> bool:
    """A policy that was just made takes a moment to be heeded, and so do rights."""
    try:
        account.cluster.kubectl("create", "--dry-run=server", "-f", "-", given=namespace_of(f"not-{account.home}"))
    except Refused as refused:
        return BY_POLICY in str(refused)
    return False


def _kubeconfig(cluster: Cluster, home: str) -> dict[str, Any]:
    token = cluster.kubectl("create", "token", "portal", "--namespace", home, "--duration=2h").strip()
    config = json.loads(cluster.kubectl("config", "view", "--raw", "--minify", "-o", "json"))
    config["users"] = [{"name": config["contexts"][0]["context"]["user"], "user": {"token": token}}]
    return config
