"""Looking at clusters, as Celery's workers do it: one at a time has a connection's lease. A process of its own with
limits speaks to the cluster, since who registered it may run it; what it found is kept on the row.
"""

from __future__ import annotations

import logging
import uuid
from datetime import datetime, timedelta

from django.conf import settings
from django.db.models import Count, IntegerField, OuterRef, Subquery
from django.db.models.functions import Coalesce
from django.utils import timezone

from apps.connections.models import DataConnection, State
from apps.connections.opening import in_words, secret_values
from apps.dispatch.leases import Leases, due
from apps.dispatch.messages import CHECK_CONNECTION, enqueue_now
from apps.errors import Conflict, DomainError, Unprocessable, error_to_json
from apps.namespaces.models import Role
from apps.namespaces.selectors import require_role
from yardmaster.errors import YardmasterError
from yardmaster.ignite.looking import WALL, Wanted, look
from yardmaster.ignite.nodes import nodes_of
from yardmaster.ignite.refusals import NotLooked
from yardmaster.storage.ignite_rows import caches_of

log = logging.getLogger(__name__)

LEASES = Leases("lease", "leased_until", none=None)
LASTS = timedelta(seconds=2 * WALL + 30)
"""Longer than a look that had to wait for its place."""
TRIES = 3
_AT_ONCE = 50


def connections_sweep(now: datetime) -> None:
    """Wake connections whose message was lost or whose worker was killed."""
    rows = DataConnection.objects.exclude(leased_until__gt=now)
    for connection_id in due(rows, "next_look_at", now).values_list("pk", flat=True)[:_AT_ONCE]:
        enqueue_now(CHECK_CONNECTION, connection_id)


def connection_in_turn(now: datetime) -> uuid.UUID | None:
    """Which one is looked at next: the first that is due, of the namespace with the fewest looks under way."""
    wanted = DataConnection.objects.filter(next_look_at__isnull=False)
    leased = wanted.filter(namespace=OuterRef("namespace"), leased_until__gt=now).order_by()
    under_way = Subquery(leased.values("namespace").annotate(count=Count("pk")).values("count"))
    waiting = wanted.filter(next_look_at__lte=now).exclude(leased_until__gt=now)
    counted = waiting.annotate(under_way=Coalesce(under_way, 0, output_field=IntegerField()))
    return counted.order_by("under_way", "next_look_at", "pk").values_list("pk", flat=True).first()


def connection_check(connection_id: uuid.UUID) -> None:
    """Look at the cluster, and write what was found or why not. May be repeated."""
    holder, now = uuid.uuid4(), timezone.now()
    rows = DataConnection.objects.filter(pk=connection_id, next_look_at__lte=now)
    held = LEASES.claim(rows, holder, now, LASTS)
    if held is None:
        return
    one = DataConnection.objects.select_related("namespace", "asked_by").get(pk=connection_id)
    asked_at = one.asked_at
    try:
        facts: dict[str, object] = {
            "state": State.READY,
            "problem": None,
            "found": _found(one),
            "found_at": timezone.now(),
        }
    except (NotLooked, DomainError, YardmasterError) as error:
        facts = _failed(one, error)
    except Exception as error:
        log.exception("The check of the connection %s had an error", one.pk)
        facts = _failed(one, Unprocessable(f"The portal had an error ({type(error).__name__}).", "internal"))
    # One that was changed meanwhile is looked at again: what was found is of other hosts or other secrets.
    unchanged = DataConnection.objects.filter(pk=connection_id, asked_at=asked_at)
    end = timezone.now()
    LEASES.release(unchanged, holder, **facts, ended_at=end, next_look_at=None)
    # Namespaces take turns: the others of this one go behind those that wait already. Each may take a minute.
    others = DataConnection.objects.filter(namespace=one.namespace_id, next_look_at__lte=end)
    others.exclude(leased_until__gt=end).update(next_look_at=end)


def _failed(one: DataConnection, error: Exception) -> dict[str, object]:
    problem = in_words(error)
    log.info("Connection %s: %s", one.pk, problem.detail)
    return {"state": State.FAILED, "problem": error_to_json(problem)}


def _found(one: DataConnection) -> dict[str, object]:
    if not DataConnection.objects.filter(pk=one.pk, tries__lt=TRIES).update(tries=one.tries + 1):
        raise Conflict("The check was interrupted repeatedly.", "ignite_interrupted", remedy="Try again later.")
    _refuse_gone(one)
    nodes = nodes_of(one.hosts, settings.YARDMASTER_IGNITE_POLICY)
    wanted = Wanted(nodes, secret_values(one), _own_caches())
    return look(wanted, settings.YARDMASTER_IGNITE_POLICY)


def _own_caches() -> frozenset[str]:
    """Where checkpoints of the portal's jobs are kept, if that is in an Ignite."""
    store = settings.YARDMASTER_IGNITE
    return caches_of(store["options"]["name"]) if store else frozenset()


def _refuse_gone(one: DataConnection) -> None:
    """Secrets are used for who asked for it, as long as that user may use them."""
    if one.asked_by is None:
        raise Conflict("The user who started this was removed.", "user_gone", remedy="Check the connection again.")
    try:
        require_role(one.asked_by, one.namespace, Role.MEMBER)
    except DomainError as error:
        detail = f"The user who started this is no longer a member of {one.namespace.slug}."
        raise Conflict(detail, "user_gone", remedy="Ask a member to check the connection again.") from error
