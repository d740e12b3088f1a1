"""What an account may ask of the fake API server, after the rules of RBAC: ClusterRoles, bound everywhere, or in those
namespaces in which the store has a RoleBinding of them.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import yaml

from tests.fakes.kubernetes_answers import Asked
from tests.fakes.kubernetes_store import UNSPACED, Store

RIGHTS = Path(__file__).resolve().parents[2] / "deploy" / "kubernetes" / "rights.yaml"
Pair = tuple[str, str]
"""Verb, resource."""


class Rights:
    """Those of `documents`: their ClusterRoles and ClusterRoleBindings."""

    def __init__(self, documents: Iterable[Mapping[str, Any]]) -> None:
        found = list(documents)
        self.roles = {one["metadata"]["name"]: _pairs(one["rules"]) for one in found if one["kind"] == "ClusterRole"}
        bound = {one["roleRef"]["name"] for one in found if one["kind"] == "ClusterRoleBinding"}
        self.everywhere: set[Pair] = set().union(*(self.roles[name] for name in bound))

    def lacking(self, asked: Asked, store: Store) -> str:
        """The right that is missing, as a server names it; empty where there is none."""
        namespace = asked.place[2] if asked.place[0] == "namespaces" and asked.verb != "create" else asked.place[1]
        given = set(self.everywhere)
        for place, one in store.objects.items():
            if place[0] == "rolebindings" and place[1] == namespace:
                given |= self.roles.get(one["roleRef"]["name"], set())
        verbs = ["patch"] if asked.verb == "dry-run" else [asked.verb]
        if verbs == ["patch"] and asked.place not in store.objects:
            verbs.append("create")
        missing = next((verb for verb in verbs if (verb, asked.what) not in given), "")
        where = f' in the namespace "{namespace}"' if namespace and asked.place[0] not in UNSPACED else ""
        return f'cannot {missing} resource "{asked.what}"{where}' if missing else ""


def shipped() -> Rights:
    """Those that operators are told to give."""
    return Rights(yaml.safe_load_all(RIGHTS.read_text()))


def _pairs(rules: Iterable[Mapping[str, Any]]) -> set[Pair]:
    return {(verb, what) for rule in rules for verb in rule["verbs"] for what in rule["resources"]}
