"""The database itself refuses to change the audit, on SQLite and on PostgreSQL."""

from __future__ import annotations

from datetime import timedelta

import pytest
import time_machine
from django.db import DatabaseError, connection, transaction
from django.utils import timezone

from apps.accounts.models import User
from apps.audit.append_only import guard, unguard
from apps.audit.models import AuditEvent, AuditRetention
from apps.audit.services import events_clean, record, second_factor_failure_record
from tests.real.postgres import postgres_cluster, postgres_db

__all__ = ["postgres_cluster", "postgres_db"]

EVENTS = "audit_auditevent"
CHANGES = [
    f"UPDATE {EVENTS} SET actor_name = 'eve'",
    f"UPDATE {EVENTS} SET facts = '{{}}'",
    f"UPDATE {EVENTS} SET at = '2020-01-01 00:00:00'",
    f"UPDATE {EVENTS} SET count = 7",
    f"UPDATE {EVENTS} SET address = NULL, count = count + 1",
]


def run(statement: str) -> None:
    with transaction.atomic(), connection.cursor() as cursor:
        cursor.execute(statement)


def everything_is_refused(settings) -> None:
    """On the database that is the default one now."""
    settings.YARDMASTER_AUDIT_KEPT = timedelta(days=10)
    eve = User.objects.create_user("eve")
    with time_machine.travel(timezone.now() - timedelta(days=11)):
        record(eve, "job.stop", "job:old", why="bored")
    record(eve, "job.stop", "job:new", why="bored")
    for statement in CHANGES:
        with pytest.raises(DatabaseError, match="An audit event is never changed"):
            run(statement)
    for statement in (f"DELETE FROM {EVENTS}", f"DELETE FROM {EVENTS} WHERE subject = 'job:old'"):
        with pytest.raises(DatabaseError, match="deleted by the retention alone"):
            run(statement)
    with pytest.raises(DatabaseError, match="never changed"), transaction.atomic():
        AuditEvent.objects.update(actor_name="eve")
    with pytest.raises(DatabaseError, match="retention alone"), transaction.atomic():
        AuditEvent.objects.all().delete()
    assert set(AuditEvent.objects.values_list("subject", flat=True)) >= {"job:old", "job:new"}


def the_portal_goes_on(settings) -> None:
    """What stands for several counts, and old events go, without leaving the door open."""
    eve = User.objects.get(username="eve")
    for _ in range(3):
        second_factor_failure_record(eve)
    assert AuditEvent.objects.get(action="second_factor.fail").count == 3
    with pytest.raises(DatabaseError, match="never changed"):
        run(f"UPDATE {EVENTS} SET count = 1 WHERE action = 'second_factor.fail'")
    assert events_clean(timezone.now()) == 1
    assert not AuditEvent.objects.filter(subject="job:old").exists()
    assert AuditRetention.objects.get().until is None
    with pytest.raises(DatabaseError, match="retention alone"):
        run(f"DELETE FROM {EVENTS}")


@pytest.mark.django_db
def test_sqlite_refuses_to_change_the_audit(settings):
    assert connection.vendor == "sqlite"
    everything_is_refused(settings)
    the_portal_goes_on(settings)


@pytest.mark.postgres
def test_postgresql_refuses_to_change_the_audit(postgres_db, settings):
    assert connection.vendor == "postgresql"
    everything_is_refused(settings)
    the_portal_goes_on(settings)
    with pytest.raises(DatabaseError, match="retention alone"):
        run(f"TRUNCATE {EVENTS}")


@pytest.mark.django_db
def test_a_migration_that_must_change_events_lifts_it(settings):
    record(None, "job.stop", "job:1")
    unguard(connection)
    run(f"UPDATE {EVENTS} SET action = 'job.halt'")
    guard(connection)
    guard(connection)
    with pytest.raises(DatabaseError, match="never changed"):
        run(f"UPDATE {EVENTS} SET action = 'job.stop'")
