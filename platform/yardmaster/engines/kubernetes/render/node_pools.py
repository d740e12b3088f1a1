"""Which nodes a task is for: the operator's pools, by role and by the device that a task asks for. Pure.

A pool with a `device` is for the tasks that ask for it: jobs name it `device/<name>` among the amounts of a role, pages
show its label, and the nodes that the pool selects have it where they have `resource`. A pool with `accelerators` is
for tasks that ask for GPUs and name no device, one with `roles` for tasks of these roles that ask for no accelerator.
The first that says so counts; a task of which none does goes where the engine's own options say. The task of a service
that needs no node with an accelerator goes to those set apart for services (`service_pool`), where there are some.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields
from typing import Any

from yardmaster.engines.kubernetes.client.objects import Raw
from yardmaster.errors import Misconfigured
from yardmaster.job.spec import Role
from yardmaster.queueing.resources import DEVICE

_NAME = re.compile(r"[a-z0-9](?:[a-z0-9-]{0,40}[a-z0-9])?")
_LONGEST_LABEL = 60


@dataclass(frozen=True)
class NodePool:
    """Nodes with something in common. What a pool leaves out is as the engine's own options say."""

    name: str
    label: str = ""
    """What people read: `A100 40GB`. Without one, the name."""
    device: bool = False
    """Whether its nodes have a device that jobs ask for by this pool's name."""
    resource: str = "nvidia.com/gpu"
    """What the cluster calls that device."""
    accelerators: bool = False
    """For tasks that ask for GPUs and name no device."""
    roles: tuple[str, ...] = ()
    """For tasks of these roles that ask for no accelerator."""
    node_selector: Mapping[str, str] = field(default_factory=dict)
    tolerations: tuple[Raw, ...] = ()
    priority_class: str = ""
    image: str = ""

    @property
    def asked_as(self) -> str:
        """The name of its device among the amounts of a job and a quota; empty: it has none."""
        return DEVICE + self.name if self.device else ""

    @property
    def shown(self) -> str:
        return self.label or self.name


def pools_from(value: Any) -> tuple[NodePool, ...]:
    """The setting's `pools`. Raises `Misconfigured` with the name of what is wrong."""
    if not isinstance(value, Sequence) or isinstance(value, str):
        raise _wrong(f"pools is {value!r}: it is a list.")
    pools = tuple(map(_pool_from, value))
    names = [one.name for one in pools]
    for name in names:
        if names.count(name) > 1:
            raise _wrong(f"pools has {name!r} twice.")
    return pools


def _pool_from(table: Any) -> NodePool:
    if not isinstance(table, Mapping):
        raise _wrong(f"pools has {table!r}: each is a table.")
    known = {one.name: one for one in fields(NodePool)}
    name = table.get("name", "")
    if not isinstance(name, str) or not _NAME.fullmatch(name):
        raise _wrong(f"pools has the name {name!r}: it has lower-case letters, digits and dashes.")
    for key in table:
        if key not in known:
            raise _wrong(f"pools.{name}.{key} is no option. A pool has: {', '.join(known)}.")
    chosen: dict[str, Any] = {key: tuple(value) if isinstance(value, list) else value for key, value in table.items()}
    pool = NodePool(**chosen)
    for problem in _problems(pool):
        raise _wrong(f"pools.{name}.{problem}")
    return pool


def _problems(pool: NodePool) -> list[str]:
    found = []
    for name in ("label", "resource", "priority_class", "image"):
        if not isinstance(getattr(pool, name), str):
            found.append(f"{name} is {getattr(pool, name)!r}: it must be a text.")
    for name in ("device", "accelerators"):
        if not isinstance(getattr(pool, name), bool):
            found.append(f"{name} is {getattr(pool, name)!r}: it must be true or false.")
    if found:
        return found
    if len(pool.label) > _LONGEST_LABEL:
        found.append(f"label has more than {_LONGEST_LABEL} characters.")
    if "/" not in pool.resource:
        found.append(f"resource is {pool.resource!r}: a device is called vendor/name, such as nvidia.com/gpu.")
    known = [role.value for role in Role]
    for role in pool.roles:
        if role not in known:
            found.append(f"roles has {role!r}: it is one of {', '.join(known)}.")
    if not is_selector(pool.node_selector):
        found.append("node_selector is a table of texts.")
    found += [f"tolerations {problem}" for problem in toleration_problems(pool.tolerations)]
    if not (pool.device or pool.accelerators or pool.roles):
        found.append("device, accelerators or roles says what it is for: one of them must be set.")
    return found


_EFFECTS = ("NoSchedule", "PreferNoSchedule", "NoExecute")
_OF_A_TOLERATION = ("key", "operator", "value", "effect", "tolerationSeconds")


def is_selector(value: Any) -> bool:
    """Whether it can be a pod's `nodeSelector`."""
    return isinstance(value, Mapping) and all(isinstance(one, str) for one in (*value, *value.values()))


def toleration_problems(tolerations: Any) -> list[str]:
    """What of a list is no toleration as the cluster writes them: a pod with one such would be refused."""
    if not isinstance(tolerations, Sequence) or isinstance(tolerations, str):
        return [f"is {tolerations!r}: it is a list of tables."]
    return [f"has {one!r}: {problem}" for one in tolerations if (problem := _toleration_problem(one))]


def _toleration_problem(one: Any) -> str:
    if not isinstance(one, Mapping):
        return "each is a table."
    if unknown := [key for key in one if key not in _OF_A_TOLERATION]:
        return f"{unknown[0]} is none of {', '.join(_OF_A_TOLERATION)}."
    if not all(isinstance(one.get(key, ""), str) for key in _OF_A_TOLERATION[:-1]):
        return "key, operator, value and effect are texts."
    operator, effect = one.get("operator") or "Equal", one.get("effect", "")
    if operator not in ("Equal", "Exists") or (operator == "Exists" and one.get("value")):
        return "operator is Equal, or Exists without a value."
    if not one.get("key") and operator != "Exists":
        return "without a key its operator is Exists."
    if effect and effect not in _EFFECTS:
        return f"effect is one of {', '.join(_EFFECTS)}."
    seconds = one.get("tolerationSeconds")
    if seconds is not None and (type(seconds) is not int or effect != "NoExecute"):
        return "tolerationSeconds is a number, with the effect NoExecute."
    return ""


def _wrong(text: str) -> Misconfigured:
    return Misconfigured(f"The Kubernetes engine's tasks.{text}", remedy="See docs/kubernetes.md.")


def selects(selector: Mapping[str, str], tolerations: Sequence[Raw], node: Raw) -> bool:
    """Whether a node is meant for tasks with these: as the scheduler reads labels and taints. Taints that Kubernetes
    itself sets for a time do not count."""
    labels = node["metadata"].get("labels") or {}
    if any(labels.get(name) != value for name, value in selector.items()):
        return False
    taints = [one for one in node.get("spec", {}).get("taints") or () if not is_passing(one)]
    return all(
        taint.get("effect") == "PreferNoSchedule" or any(_tolerates(one, taint) for one in tolerations)
        for taint in taints
    )


PASSING = "node.kubernetes.io/"
"""Begins the taints that Kubernetes itself sets and takes away: not ready, unreachable, unschedulable, disk pressure
(https://kubernetes.io/docs/reference/labels-annotations-taints/)."""


def is_passing(taint: Raw) -> bool:
    """Whether the taint is one of those."""
    return str(taint["key"]).startswith(PASSING)


def _tolerates(toleration: Raw, taint: Raw) -> bool:
    if toleration.get("effect") not in (None, "", taint.get("effect")):
        return False
    if toleration.get("key") in (None, ""):
        return toleration.get("operator") == "Exists"
    if toleration["key"] != taint.get("key"):
        return False
    return toleration.get("operator") == "Exists" or toleration.get("value", "") == taint.get("value", "")
