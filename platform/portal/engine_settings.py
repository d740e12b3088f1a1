"""The engines that a portal has, from the environment: this machine always, others where they are named."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from portal import env, object_stores

IN_DATABASE = "database"
"""The value of YARDMASTER_HOSTS that leaves the list of machines to the portal's administrators."""
LISTED_IN_DATABASE = "function:apps.jobs.engines.machine_list.hosts_listed"


def engines(home: Path, secret_key: str) -> dict[str, dict[str, Any]]:
    """By name."""
    found = {"local": _local(home)}
    kubeconfig = env.text("YARDMASTER_KUBECONFIG")
    if env.flag("YARDMASTER_KUBERNETES", default=bool(kubeconfig)):
        found["kubernetes"] = _kubernetes(kubeconfig, secret_key)
    if machines := env.text("YARDMASTER_HOSTS"):
        found["hosts"] = _hosts(home, machines, secret_key)
    return found


def _local(home: Path) -> dict[str, Any]:
    return {
        "class": "yardmaster.engines.local.LocalEngine",
        "options": {
            "root": home / "local",
            "python": env.task_python("YARDMASTER_TASK_PYTHON"),
            "workbench_python": env.workbench_python("YARDMASTER_WORKBENCH_PYTHON"),
            "spark_folder": env.spark_folder("YARDMASTER_SPARK"),
            "loopback_only": env.text("YARDMASTER_LOCAL_LOOPBACK_ONLY", "auto"),
            "open_servers": env.flag("YARDMASTER_LOCAL_OPEN_SERVERS"),
        },
    }


def _hosts(home: Path, machines: str, secret_key: str) -> dict[str, Any]:
    return {
        "class": "yardmaster.engines.hosts.HostsEngine",
        "options": {
            "root": home / "hosts",
            "machines": LISTED_IN_DATABASE if machines == IN_DATABASE else Path(machines),
            "owner": env.fingerprint(secret_key, "installation"),
            "lost_after": env.number("YARDMASTER_HOSTS_LOST_AFTER", 300, least=10),
            "open_servers": env.flag("YARDMASTER_HOSTS_OPEN_SERVERS"),
        },
    }


def _kubernetes(kubeconfig: str, secret_key: str) -> dict[str, Any]:
    return {
        "class": "yardmaster.engines.kubernetes.KubernetesEngine",
        "options": {
            "kubeconfig": kubeconfig,
            "context": env.text("YARDMASTER_KUBERNETES_CONTEXT"),
            "tasks": {
                "image": env.text("YARDMASTER_KUBERNETES_IMAGE"),
                "workbench_image": env.text("YARDMASTER_KUBERNETES_WORKBENCH_IMAGE"),
                "spark_image": env.text("YARDMASTER_KUBERNETES_SPARK_IMAGE"),
                "installation": env.fingerprint(secret_key, "installation"),
                "store_url": object_stores.store_url_of_pods(),
                "deadline_margin": 1800 + env.number("YARDMASTER_START_TIMEOUT", 1800, least=1),
                **env.table("YARDMASTER_KUBERNETES_TASKS"),
            },
            "watch": True,
        },
    }
