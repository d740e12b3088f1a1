"""What saving a template and saving a schedule have in common: how often, under which name, and how many there may be.

Not here: what either says (`contents`, `services`).
"""

from __future__ import annotations

from django.db.models import Model

from apps.accounts.models import User
from apps.api.allowances import take
from apps.errors import Conflict, Invalid, TooMany
from apps.namespaces.models import Namespace
from apps.namespaces.selectors import refuse_closed
from yardmaster.allowances import Allowance, Taking
from yardmaster.errors import Problem
from yardmaster.job.spec_limits import shorten

CHANGES, _MINUTE = 60, 60
"""How often a user may change templates and schedules in a minute."""
LONGEST_NAME, LONGEST_DESCRIPTION = 100, 500


def refuse_often(user: User) -> None:
    """Raises `TooMany` for a user who changes templates and schedules without end."""
    outcome = take([Taking(Allowance("templates", CHANGES, _MINUTE), f"user {user.pk}")])
    if outcome.over is not None:
        raise TooMany(f"You may do this {CHANGES} times a minute.", "rate_limited", wait=_MINUTE)


def name_checked(name: str, description: str = "") -> str:
    """The name as it is kept. Raises `Invalid`."""
    name, found = name.strip(), []
    if not 0 < len(name) <= LONGEST_NAME or not name.isprintable():
        message = f"A name has 1 to {LONGEST_NAME} characters that can be seen."
        found.append(Problem("name", "bad_name", message, "Choose another name.", shorten(name)))
    if len(description) > LONGEST_DESCRIPTION or "\0" in description:
        message = f"A description is text of at most {LONGEST_DESCRIPTION} characters."
        found.append(Problem("description", "too_long", message, "Shorten it."))
    if found:
        raise Invalid(found)
    return name


def refuse_full(namespace: Namespace, kind: type[Model], what: str, name: str, most: int) -> None:
    """Lock the namespace, so that of two at once the second sees the first. Raises `Conflict` where it is closed, has
    one of this name, or as many as it may. `what`: `template` or `schedule`."""
    refuse_closed(Namespace.objects.select_for_update().get(pk=namespace.pk))
    refuse_taken(namespace, kind, what, name)
    if kind._default_manager.filter(namespace=namespace).count() >= most:
        remedy = f"Remove one, or ask an administrator to raise YARDMASTER_{what.upper()}S_PER_NAMESPACE."
        message = f"A namespace may have {most} {what}s, and there are that many."
        raise Conflict(message, f"too_many_{what}s", remedy=remedy)


def refuse_taken(namespace: Namespace, kind: type[Model], what: str, name: str, but: object = None) -> None:
    """Raises `Conflict` where another one (than that with the id `but`) has the name."""
    if kind._default_manager.filter(namespace=namespace, name=name).exclude(pk=but).exists():
        message, remedy = f"There is a {what} of this name.", "Choose another name."
        problem = Problem("name", "name_taken", message, remedy, shorten(name))
        text = f"The namespace has a {what} {shorten(name)}."
        raise Conflict(text, "name_taken", remedy=remedy, errors=[problem])
