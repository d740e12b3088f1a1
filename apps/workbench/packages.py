"""The packages that a Jupyter has beside its image's: those of an environment that a job of its namespace made."""

from __future__ import annotations

import uuid
from collections.abc import Sequence

from django.db.models import QuerySet

from apps.accounts.models import User
from apps.environments.models import Environment
from apps.environments.selectors import environments_visible_to
from apps.errors import Invalid
from apps.namespaces.models import Namespace
from apps.workbench.models import WorkbenchSession
from yardmaster.errors import Problem

MOST_OFFERED = 20
KEEP = "keep"
NONE = "none"


def requirements_of(user: User, session: WorkbenchSession, environment: str | None) -> list[str]:
    """Exact versions of what the environment with this ID has; nothing where it is empty or `none`; what the session
    has already where it is None or `keep`. Raises `Invalid`."""
    if environment is None or environment == KEEP:
        return list(session.requirements)
    if environment in ("", NONE):
        return []
    if not session.is_personal:
        message = "A TensorBoard has no packages of its own."
        raise Invalid([Problem("environment", "conflict", message, "Leave environment out.", environment[:40])])
    try:
        found = _of(user, session.namespace).filter(pk=uuid.UUID(environment)).first()
    except ValueError:
        found = None
    if found is None:
        message = f"{session.namespace.slug} has no such environment."
        raise Invalid([Problem("environment", "not_found", message, "GET /api/v1/environments/.", environment[:40])])
    return [f"{one['name']}=={one['version']}" for one in found.lock]


def choices(user: User, namespace: Namespace | None, now: Sequence[str]) -> list[tuple[str, str]]:
    """What a form offers. Empty: the namespace has no environment."""
    if namespace is None:
        return []
    found = [(str(one.pk), _words(one)) for one in _of(user, namespace)[:MOST_OFFERED]]
    kept = [(KEEP, f"As before ({_count(len(now))})")] if now else []
    return [*kept, (NONE, "Those of the image"), *found] if found or kept else []


def _of(user: User, namespace: Namespace) -> QuerySet[Environment]:
    return environments_visible_to(user).filter(namespace=namespace).exclude(lock=[])


def _words(environment: Environment) -> str:
    named = ", ".join(line for line in environment.requirements[:3] if not line.startswith("-"))
    more = " …" if len(environment.requirements) > 3 else ""
    return f"{named[:60]}{more} ({_count(len(environment.lock))})"


def _count(number: int) -> str:
    return "1 package" if number == 1 else f"{number} packages"
