"""Who may read which audit events, and those that fit what is searched for.

Administrators read all. Everyone reads what they did, what was done to their account, and what happened in their
namespaces: managers with addresses, others without, and without what is the managers' alone. Not here: how they are
shown (`audit_pages`).
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import UTC, date, datetime, time, timedelta
from typing import Any
from uuid import UUID

from django.db import connections
from django.db.models import BooleanField, ExpressionWrapper, F, Func, Q, QuerySet, TextField
from django.db.models.functions import Cast, Upper

from apps.accounts.models import User
from apps.administration.audit_actions import ACTIONS, actions_of
from apps.audit.models import AuditEvent
from apps.namespaces.models import Membership, Namespace, Role

_AT_ONCE = 500
MOST_WORDS = 6
_OF_MANAGERS = tuple(one for one in ACTIONS if one.startswith(("webhook.", "invitation.", "namespace.answer_for")))
"""What members do not read of their namespace: the pages of these are their managers'."""
_FAILED_BY_NAME = ("session.fail", "second_factor.fail")
"""Events without an actor, of which a fact is the name that was tried."""


def events_visible(user: User) -> QuerySet[AuditEvent]:
    """What this user may read, in no order."""
    if user.is_staff:
        return AuditEvent.objects.all()
    mine = Membership.objects.filter(user=user)
    as_member = Q(namespace_id__in=mine.values("namespace_id")) & ~Q(action__in=_OF_MANAGERS)
    whole = ExpressionWrapper(_whole(user), output_field=BooleanField())
    return AuditEvent.objects.filter(_whole(user) | as_member).annotate(is_whole=whole)


def _whole(user: User) -> Q:
    """What the user may read with the address that it came from."""
    managed = Membership.objects.filter(user=user, role=Role.MANAGER).values("namespace_id")
    return Q(namespace_id__in=managed) | Q(actor_id=user.pk) | Q(subject=f"user:{user.pk}")


def addresses_hide(events: list[AuditEvent]) -> list[AuditEvent]:
    """The same events of `events_visible`, without the address and the program of those that the reader may not read
    whole. The rows are not saved."""
    for one in events:
        if not getattr(one, "is_whole", True):
            one.address, one.agent = None, ""
    return events


def events_matching(rows: QuerySet[AuditEvent], wanted: dict[str, Any], user: User) -> QuerySet[AuditEvent]:
    """Those of them that fit every filter that is set: `action` (one, or all of a group: `member.`), `person` (a name),
    `object` (as `job:<id>`, or an id alone), `namespace` (its short name), `address`, `words` (in the facts), `since`
    and `until` (days in UTC, both included)."""
    if action := wanted.get("action"):
        rows = rows.filter(action__in=actions_of(action))
    if person := wanted.get("person"):
        tried = Q(action__in=_FAILED_BY_NAME, facts__name__iexact=person)
        rows = rows.alias(actor_upper=Upper("actor_name")).filter(Q(actor_upper=person.upper()) | tried)
    if subject := wanted.get("object"):
        rows = rows.filter(subject__in=_subjects(subject))
    if slug := wanted.get("namespace"):
        rows = rows.filter(namespace_id__in=Namespace.objects.filter(slug=slug).values("pk"))
    if address := wanted.get("address"):
        rows = from_address(rows, address, user)
    if words := wanted.get("words"):
        rows = with_words(rows, words)
    return _within(rows, wanted.get("since"), wanted.get("until"))


def _subjects(text: str) -> list[str]:
    """The subjects that a person may mean: an id is one of any noun."""
    if ":" in text:
        return [text]
    nouns = {one.partition(".")[0] for one in ACTIONS} | {"user", "token", "model_version"}
    return [f"{noun}:{text}" for noun in sorted(nouns)]


def from_address(rows: QuerySet[AuditEvent], address: str, user: User) -> QuerySet[AuditEvent]:
    """Those that came from this address, as far as the user may see addresses."""
    found = rows.filter(address=address)
    return found if user.is_staff else found.filter(_whole(user))


def with_words(rows: QuerySet[AuditEvent], text: str) -> QuerySet[AuditEvent]:
    """Those whose facts have all of the words: whole ones, by an index of PostgreSQL; SQLite looks for them anywhere in
    each row."""
    if connections[rows.db].vendor == "postgresql":
        from django.contrib.postgres.search import SearchQuery, SearchVectorField

        vector = Func(
            F("facts"), template="to_tsvector('simple', %(expressions)s)", output_field=SearchVectorField()
        )  # the expression of the index `audit_words`
        return rows.alias(fact_words=vector).filter(fact_words=SearchQuery(text, config="simple"))
    rows = rows.alias(fact_text=Cast("facts", TextField()))
    for word in text.split()[:MOST_WORDS]:
        rows = rows.filter(fact_text__icontains=json.dumps(word)[1:-1])
    return rows


def _within(rows: QuerySet[AuditEvent], since: date | None, until: date | None) -> QuerySet[AuditEvent]:
    if since:
        rows = rows.filter(at__gte=_midnight(since))
    if until and until < date.max:
        rows = rows.filter(at__lt=_midnight(until) + timedelta(days=1))
    return rows


def _midnight(day: date) -> datetime:
    return datetime.combine(day, time.min, UTC)


def events_newest_first(rows: QuerySet[AuditEvent], most: int) -> Iterator[list[AuditEvent]]:
    """All of them, `most` at most, some at a time: no more is in memory, and no query stays open between."""
    last = None
    while most > 0:
        page = rows if last is None else rows.filter(pk__lt=last)
        found = list(page.order_by("-pk")[: min(_AT_ONCE, most)])
        if found:
            yield found
        if len(found) < _AT_ONCE:
            return
        most -= len(found)
        last = found[-1].pk


def namespaces_of(events: list[AuditEvent]) -> dict[UUID, str]:
    """The short names of the namespaces that the events tell of, as far as they are still there."""
    ids = {event.namespace_id for event in events if event.namespace_id}
    return dict(Namespace.objects.filter(pk__in=ids).values_list("pk", "slug"))
