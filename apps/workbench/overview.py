"""The workbench on Home: the reader's Jupyter, the TensorBoard of the namespace, and how many more run.

One statement, and one for the role where that is not known. No port is asked: that is for the page of a session.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from django.db.models import Q

from apps.accounts.models import User
from apps.hosting.selectors import NOT_ENDED
from apps.hosting.state import Situation, situation_of
from apps.namespaces.models import Namespace, Role
from apps.namespaces.selectors import role_of
from apps.workbench.access import may_start_in, with_all
from apps.workbench.models import Kind, WorkbenchSession

_MOST = 100


@dataclass(frozen=True)
class Place:
    """One of the two sessions that a namespace offers. `session` is None where it was never started."""

    kind: str
    name: str
    about: str
    icon: str
    session: WorkbenchSession | None
    now: Situation | None


@dataclass(frozen=True)
class Overview:
    """What Home shows."""

    places: Sequence[Place]
    others: int
    """More sessions that run, and that the reader sees."""
    may_start: bool


def overview_of(user: User, namespace: Namespace, now: datetime) -> Overview:
    """What this member of the namespace sees; others see nothing that runs."""
    known = getattr(namespace, "my_role", None)  # of `shares_of`
    role = Role(known) if known and not user.is_staff else role_of(user, namespace)
    may_start = may_start_in(user, namespace, role)
    mine, shared = Q(kind=Kind.JUPYTER, owner=user), Q(kind=Kind.TENSORBOARD, subject="namespace")
    others = Q(NOT_ENDED) & ~Q(kind=Kind.JUPYTER)
    found = WorkbenchSession.objects.filter(mine | shared | others, namespace=namespace)
    rows = list(with_all(found).defer("job__spec")[:_MOST])
    jupyter = next((one for one in rows if one.is_personal), None)
    board = next((one for one in rows if one.subject == "namespace"), None)
    places = [_place(Kind.TENSORBOARD, board, now)] if role is not None else []
    if may_start or jupyter is not None:
        places.insert(0, _place(Kind.JUPYTER, jupyter, now))
    return Overview(places, len(rows) - sum(one is not None for one in (jupyter, board)), may_start)


_WORDS = {
    Kind.JUPYTER: ("Jupyter", "Notebooks and terminals beside your data, signed in as you.", "notebook"),
    Kind.TENSORBOARD: ("TensorBoard", "The curves of all jobs of the namespace, live.", "chart-line"),
}


def _place(kind: Kind, session: WorkbenchSession | None, now: datetime) -> Place:
    situation = None if session is None else situation_of(session, now, ask=False)
    return Place(kind.value, *_WORDS[kind], session, situation)
