"""The classes of priority: making, changing and removing them. Every change is audited with before and after.

Not here: who may use one (`apps.namespaces.priorities`); who may change them (the callers).
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

from django.db import transaction
from django.db.models import QuerySet

from apps.accounts.models import User
from apps.audit.services import record
from apps.errors import Conflict, Invalid, NotFound
from apps.namespaces.models import Namespace, PriorityClass
from apps.namespaces.share_models import LONGEST_NAME, Users
from yardmaster.errors import Problem

MOST_CLASSES = 50
MOST_NAMESPACES = 1_000
_NAME = re.compile(r"[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?")


@dataclass(frozen=True)
class ClassFacts:
    """What is said of a class beside its name and its namespaces."""

    value: int
    description: str = ""
    users: str = Users.EVERYONE.value
    is_default: bool = False
    preempts: bool = False
    is_preemptible: bool = True


def classes() -> QuerySet[PriorityClass]:
    """All of them, the highest first."""
    return PriorityClass.objects.order_by("-value", "name").prefetch_related("namespaces")


def class_named(name: str) -> PriorityClass:
    """Raises NotFound."""
    found = classes().filter(name=name).first()
    if found is None:
        raise NotFound("There is no priority class of this name.")
    return found


def class_create(*, name: str, facts: ClassFacts, namespaces: Sequence[Namespace], actor: User) -> PriorityClass:
    """A new class. The default class is the one that was made or changed to be it last."""
    if not _NAME.fullmatch(name):
        message = f"A name is 1 to {LONGEST_NAME} of a to z, 0 to 9 and inner hyphens."
        raise Invalid([Problem("name", "bad_value", message, "Choose something like urgent.", name)])
    if PriorityClass.objects.filter(name=name).exists():
        message = "There is a priority class of this name."
        raise Invalid([Problem("name", "unique", message, "Choose another name.", name)])
    if PriorityClass.objects.count() >= MOST_CLASSES:
        raise Conflict(f"There are {MOST_CLASSES} classes already.", "too_many_classes", remedy="Remove one first.")
    with transaction.atomic():
        _one_default(facts)
        made = PriorityClass.objects.create(name=name, **_checked(facts))
        made.namespaces.set(namespaces)
        record(actor, "priority_class.create", f"priority_class:{made.pk}", name=name, **_shown(made))
    return made


def class_change(
    *, found: PriorityClass, facts: ClassFacts, namespaces: Sequence[Namespace], actor: User
) -> PriorityClass:
    """Change all but the name. Jobs that were launched keep their number."""
    with transaction.atomic():
        found = PriorityClass.objects.select_for_update().get(pk=found.pk)
        before = {f"{name}_before": value for name, value in _shown(found).items()}
        _one_default(facts, but=found)
        for name, value in _checked(facts).items():
            setattr(found, name, value)
        found.save()
        found.namespaces.set(namespaces)
        record(
            actor, "priority_class.change", f"priority_class:{found.pk}", name=found.name, **_shown(found), **before
        )  # fmt: skip
    return found


def class_remove(*, found: PriorityClass, actor: User) -> None:
    """New jobs can no longer name it; those that were launched keep their number."""
    with transaction.atomic():
        record(actor, "priority_class.remove", f"priority_class:{found.pk}", name=found.name, **_shown(found))
        found.delete()


def _checked(facts: ClassFacts) -> dict[str, Any]:
    if not -1000 <= facts.value <= 1000:
        message = "The value must be from -1000 to 1000."
        raise Invalid([Problem("value", "out_of_range", message, "Choose a value in this range.", str(facts.value))])
    if facts.is_default and facts.users != Users.EVERYONE:
        message = "The default class must be one that everyone may use."
        raise Invalid([Problem("is_default", "conflict", message, "Let everyone use it, or choose another.")])
    return asdict(facts)


def _one_default(facts: ClassFacts, but: PriorityClass | None = None) -> None:
    if facts.is_default:
        others = PriorityClass.objects.filter(is_default=True)
        (others if but is None else others.exclude(pk=but.pk)).update(is_default=False)


def _shown(one: PriorityClass) -> dict[str, Any]:
    slugs = list(one.namespaces.order_by("slug").values_list("slug", flat=True)[:20])
    facts = {"value": one.value, "users": str(one.users), "is_default": one.is_default, "description": one.description}
    facts |= {"preempts": one.preempts, "is_preemptible": one.is_preemptible}
    return {**facts, "namespaces": slugs}
