"""Which cluster a machine's kubeconfig means: read from files, nothing is asked of the cluster and nothing is run."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml


@dataclass(frozen=True)
class Target:
    """A cluster, by the files, the context and the server's address that lead to it."""

    kubeconfig: str
    """One path, or several as kubectl takes them."""
    context: str
    server: str


def kubeconfig_of(environment: Mapping[str, str], home: Path) -> str:
    """The kubeconfig that is meant, or nothing: the portal's own setting, kubectl's, or the usual file."""
    for name in ("YARDMASTER_KUBECONFIG", "KUBECONFIG"):
        if value := environment.get(name, ""):
            return value
    usual = home / ".kube" / "config"
    return str(usual) if usual.is_file() else ""


def target_of(kubeconfig: str, context: str = "") -> Target | None:
    """What this kubeconfig says; None where it leads to no cluster. As kubectl does, the first file that says something
    counts."""
    chosen = context
    contexts: dict[str, Mapping[str, Any]] = {}
    clusters: dict[str, Mapping[str, Any]] = {}
    for path in filter(None, kubeconfig.split(os.pathsep)):
        table = _table_in(Path(path))
        chosen = chosen or str(table.get("current-context") or "")
        contexts = {**_by_name(table, "contexts", "context"), **contexts}
        clusters = {**_by_name(table, "clusters", "cluster"), **clusters}
    cluster = clusters.get(str((contexts.get(chosen) or {}).get("cluster") or ""))
    server = str((cluster or {}).get("server") or "")
    return Target(kubeconfig, chosen, server) if server else None


def _table_in(path: Path) -> Mapping[str, Any]:
    try:
        found = yaml.safe_load(path.read_text())
    except (OSError, ValueError, yaml.YAMLError):
        return {}
    return found if isinstance(found, Mapping) else {}


def _by_name(table: Mapping[str, Any], plural: str, singular: str) -> dict[str, Mapping[str, Any]]:
    found = table.get(plural)
    return {
        str(one.get("name")): one[singular]
        for one in (found if isinstance(found, list) else ())
        if isinstance(one, Mapping) and isinstance(one.get(singular), Mapping)
    }
