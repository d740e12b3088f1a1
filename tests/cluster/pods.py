"""Manifests for tests: pods of the probe image that a `restricted` namespace lets in."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tests.cluster.reach import Cluster, wait_for


def pod(
    cluster: Cluster,
    namespace: str,
    name: str,
    script: str,
    *,
    environment: Mapping[str, str] | None = None,
    subdomain: str = "",
    image: str = "",
    memory: str = "64Mi",
) -> dict[str, Any]:
    """A pod that runs a Python script once. With a subdomain it has the DNS name `<name>.<subdomain>`."""
    container = {
        "name": "main",
        "image": image or cluster.probe_image,
        "imagePullPolicy": "IfNotPresent",
        "command": ["python", "-c", script],
        "env": [{"name": key, "value": value} for key, value in (environment or {}).items()],
        "resources": {"requests": {"cpu": "50m", "memory": memory}, "limits": {"cpu": "1", "memory": memory}},
        "securityContext": {
            "allowPrivilegeEscalation": False,
            "readOnlyRootFilesystem": True,
            "capabilities": {"drop": ["ALL"]},
        },
        "volumeMounts": [{"name": "tmp", "mountPath": "/tmp"}],
    }
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "namespace": namespace, "labels": {"app": subdomain or name}},
        "spec": {
            "restartPolicy": "Never",
            "automountServiceAccountToken": False,
            "terminationGracePeriodSeconds": 1,
            "securityContext": {"runAsNonRoot": True, "seccompProfile": {"type": "RuntimeDefault"}},
            "containers": [container],
            "volumes": [{"name": "tmp", "emptyDir": {}}],
            **({"hostname": name, "subdomain": subdomain} if subdomain else {}),
        },
    }


def service(namespace: str, name: str, *, headless: bool, port: int = 8000) -> dict[str, Any]:
    """Headless: a name for every pod, before it is ready, as peers look for each other while they start."""
    kind = {"clusterIP": "None", "publishNotReadyAddresses": True} if headless else {}
    return {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {"name": name, "namespace": namespace},
        "spec": {**kind, "selector": {"app": name}, "ports": [{"port": port}]},
    }


def ended(cluster: Cluster, namespace: str, name: str, seconds: float = 60) -> int:
    """The exit code of a pod's container, waited for."""

    def terminated() -> Any:
        statuses = cluster.get("pod", name, namespace).get("status", {}).get("containerStatuses", [])
        return next((one["state"]["terminated"] for one in statuses if "terminated" in one["state"]), None)

    return wait_for(f"the end of pod {name}", terminated, seconds)["exitCode"]
