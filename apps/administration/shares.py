"""Groups of the tree of shares and the places of namespaces in it: who has which weight and which guarantee, changing
that, and how the shares are now. Every change is audited with its reason, before and after.

Not here: what shares decide (`yardmaster.queueing.shares`); who may change them (the callers).
"""

from __future__ import annotations

import uuid
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

from django.db import IntegrityError, transaction
from django.utils import timezone

from apps.accounts.models import User
from apps.audit.services import record
from apps.errors import Conflict, Invalid, NotFound
from apps.jobs.engines.configured import engine_named
from apps.jobs.models import Job
from apps.jobs.state import ledger
from apps.jobs.state.shares import shares_on
from apps.namespaces.models import Namespace, ShareNode
from yardmaster.errors import Problem, YardmasterError
from yardmaster.queueing.resources import units_of
from yardmaster.queueing.shares import DEEPEST, REST, ShareOf, Shares, Standing, parts_of

MOST_GROUPS = 200
LONGEST_REASON = 300


@dataclass(frozen=True)
class Said:
    """What someone wants of a node. `parent` None: at the top. `guaranteed`: cores, bytes and pieces by resource."""

    parent: ShareNode | None
    weight: int
    guaranteed: Mapping[str, float]
    is_default: bool = False


@dataclass(frozen=True)
class Row:
    """A node as the page shows it. `node` None: all namespaces that are in no group. `share` None: nothing of it runs
    or waits."""

    node: ShareNode | None
    depth: int
    share: ShareOf | None


def group_create(*, name: str, said: Said, reason: str, actor: User) -> ShareNode:
    """A new group, empty at first."""
    if ShareNode.objects.filter(namespace=None).count() >= MOST_GROUPS:
        raise Conflict(f"There are {MOST_GROUPS} groups already.", "too_many_groups", remedy="Remove one first.")
    _refuse_depth(said.parent, levels=1)
    try:
        with transaction.atomic():
            node = ShareNode.objects.create(name=name, **_columns(said))
            _record(actor, "share.create", node, reason, **_facts(node))
    except IntegrityError as error:
        problem = Problem("name", "unique", "There is a group of this name, or another default group.",
                          "Choose another name, or change the other group first.", name)  # fmt: skip
        raise Invalid([problem]) from error
    return node


def namespace_place(*, namespace: Namespace, said: Said, reason: str, actor: User) -> ShareNode:
    """Put a namespace into a group, or change its place and weight there."""
    said = replace(said, is_default=False)  # that is a property of groups
    try:
        with transaction.atomic():
            node = ShareNode.objects.select_for_update().filter(namespace=namespace).first()
            if node is not None:
                return _changed(node, said, reason, actor)
            _refuse_depth(said.parent, levels=0)
            node = ShareNode.objects.create(namespace=namespace, **_columns(said))
            _record(actor, "share.create", node, reason, **_facts(node))
    except IntegrityError as error:
        raise Conflict("The namespace was added to the tree meanwhile.", remedy="Reload the page.") from error
    return node


def node_change(*, node: ShareNode, said: Said, reason: str, actor: User) -> ShareNode:
    """Another weight, guarantee or place. Repeating it changes nothing."""
    with transaction.atomic():
        return _changed(ShareNode.objects.select_for_update().get(pk=node.pk), said, reason, actor)


def _changed(node: ShareNode, said: Said, reason: str, actor: User) -> ShareNode:
    if node.namespace_id is None:
        _refuse_circle(node, said.parent)
    else:
        _refuse_depth(said.parent, levels=0)
    before, wanted = _facts(node), _columns(said)
    if node.namespace_id is not None:
        wanted["is_default"] = False
    for name, value in wanted.items():
        setattr(node, name, value)
    try:
        with transaction.atomic():
            node.save()
    except IntegrityError as error:
        problem = Problem("is_default", "unique", "Another group is the default group.", "Change that one first.")
        raise Invalid([problem]) from error
    if before != _facts(node):
        earlier = {f"{name}_before": value for name, value in before.items()}
        _record(actor, "share.change", node, reason, **_facts(node), **earlier)
    return node


def node_remove(*, node: ShareNode, reason: str, actor: User) -> None:
    """Take a namespace out of its group, or remove a group that has nothing in it."""
    with transaction.atomic():
        node = ShareNode.objects.select_for_update().get(pk=node.pk)
        if node.children.exists():
            raise Conflict(
                f"The group {node.name} is not empty.", "group_not_empty",
                remedy="Move its groups and namespaces elsewhere first.",
            )  # fmt: skip
        if node.advance_reservations.filter(ends_at__gt=timezone.now()).exists():
            raise Conflict(
                f"Something is reserved for the group {node.name}.", "group_has_reservations",
                remedy="End its reservations first.",
            )  # fmt: skip
        _record(actor, "share.remove", node, reason, **_facts(node))
        node.delete()


def node_for(node_id: uuid.UUID) -> ShareNode:
    """Raises NotFound."""
    found = ShareNode.objects.select_related("namespace", "parent").filter(pk=node_id).first()
    if found is None:
        raise NotFound("There is no such group, and no such namespace in the tree.")
    return found


def group_named(name: str) -> ShareNode | None:
    """The group of this name; None for an empty one. Raises `Invalid` where there is none."""
    if not name:
        return None
    found = ShareNode.objects.filter(namespace=None, name=name).first()
    if found is None:
        raise Invalid([Problem("parent", "unknown", "There is no group of this name.", "Choose another group.", name)])
    return found


MOST_LEVELS = DEEPEST - 2
"""Of groups below each other: with a namespace in the last, the core still follows the whole path."""


def _refuse_circle(node: ShareNode, parent: ShareNode | None) -> None:
    """Raises where the group would be below itself, or it or one below it deeper than the core follows."""
    parents = _parents()
    if parent is not None and node.pk in _path(parent.pk, parents):
        message = "A group cannot be below itself."
        raise Invalid([Problem("parent", "bad_value", message, "Choose another group.", parent.name)])
    paths = [_path(one, parents) for one in parents]
    _refuse_depth(parent, levels=max((path.index(node.pk) + 1 for path in paths if node.pk in path), default=1))


def _refuse_depth(parent: ShareNode | None, *, levels: int) -> None:
    """Raises where so many levels of groups have no place below the parent."""
    if parent is not None and len(_path(parent.pk, _parents())) + levels > MOST_LEVELS:
        message = f"More than {MOST_LEVELS} groups would be below each other."
        raise Invalid([Problem("parent", "too_deep", message, "Choose a group further up.", parent.name)])


def _parents() -> dict[uuid.UUID, uuid.UUID | None]:
    return dict(ShareNode.objects.filter(namespace=None).values_list("pk", "parent_id"))


def _path(at: uuid.UUID | None, parents: Mapping[uuid.UUID, uuid.UUID | None]) -> list[uuid.UUID]:
    """The group and those above it; cut where it goes round in a circle."""
    found: list[uuid.UUID] = []
    while at is not None and at not in found:
        found.append(at)
        at = parents.get(at)
    return found


def _columns(said: Said) -> dict[str, Any]:
    guaranteed = {name: amount for name, amount in said.guaranteed.items() if amount}
    return {"parent": said.parent, "weight": said.weight, "guaranteed": guaranteed, "is_default": said.is_default}


def _facts(node: ShareNode) -> dict[str, Any]:
    parent = node.parent.name if node.parent else ""
    return {"parent": parent, "weight": node.weight, "guaranteed": node.guaranteed, "is_default": node.is_default}


def _record(actor: User, action: str, node: ShareNode, reason: str, **facts: Any) -> None:
    name = {"name": node.name} if node.namespace is None else {}
    record(actor, action, f"share:{node.pk}", namespace=node.namespace, reason=reason[:LONGEST_REASON], **name, **facts)


def rows_of(engine: str) -> list[Row]:
    """The tree from the top down, with the shares on this engine now. A fixed number of statements."""
    nodes = list(ShareNode.objects.select_related("namespace").order_by("name", "namespace__slug"))
    parts = _parts(engine)
    below: dict[uuid.UUID | None, list[ShareNode]] = {}
    for one in nodes:
        below.setdefault(one.parent_id, []).append(one)

    def walk(parent: uuid.UUID | None, depth: int) -> Iterator[Row]:
        for one in below.get(parent, ()):
            yield Row(one, depth, parts.get(one.namespace_id or one.pk))
            yield from walk(one.pk, depth + 1)

    found = list(walk(None, 0))
    has_default = any(one.is_default for one in nodes)
    return found if has_default or not nodes else [*found, Row(None, 0, parts.get(REST))]


def _parts(engine: str) -> dict[uuid.UUID, ShareOf]:
    try:
        total = units_of(engine_named(engine).capacity().total)
    except YardmasterError:
        return {}
    waiting = set(Job.objects.waiting().filter(engine=engine).values_list("namespace_id", flat=True).distinct())
    shares = shares_on(ledger.holders(engine), waiting) or Shares()
    return parts_of(Standing(shares, total), {*waiting, *shares.held})
