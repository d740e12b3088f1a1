"""The priority with which a job is launched: that of a class, or a number. Not here: what a priority does
(`yardmaster.queueing.turns`).
"""

from __future__ import annotations

from dataclasses import replace

from apps.accounts.models import User
from apps.namespaces.models import Namespace
from apps.namespaces.priorities import classes_for
from yardmaster.errors import Problem
from yardmaster.job.spec import TrainingSpec
from yardmaster.job.spec_limits import shorten

MOST_NAMED = 20


def with_priority(user: User, namespace: Namespace, spec: TrainingSpec) -> tuple[TrainingSpec, list[Problem]]:
    """The spec with the number of its class, or of the default class where it says neither; and what forbids that. A
    class and a number: the class counts."""
    if not spec.priority_class and spec.priority:
        return spec, []
    known = {one.name: one for one in classes_for(user, namespace)}
    if not spec.priority_class:
        usual = next((one for one in known.values() if one.is_default), None)
        return (spec if usual is None else _of(spec, usual.name, usual.value)), []
    found = known.get(spec.priority_class)
    if found is not None:
        return _of(spec, found.name, found.value), []
    names = ", ".join(list(known)[:MOST_NAMED])
    message = f"You may not use a priority class of this name in {namespace.slug}."
    remedy = f"Use one of: {names}." if known else "Leave it out: there is no class that you may use here."
    return spec, [Problem("priority_class", "priority_class_forbidden", message, remedy, shorten(spec.priority_class))]


def with_class_that_is_there(user: User, namespace: Namespace, spec: TrainingSpec) -> TrainingSpec:
    """A stored spec that is to run again: without its class where that is gone, or is not this user's to use."""
    known = {one.name for one in classes_for(user, namespace)}
    return spec if not spec.priority_class or spec.priority_class in known else _of(spec, "", 0)


def _of(spec: TrainingSpec, name: str, value: int) -> TrainingSpec:
    return replace(spec, priority_class=name, priority=value)
