"""The dashboard on PostgreSQL: percentiles are the database's, and what is counted is read from indexes alone."""

from __future__ import annotations

import os
from datetime import timedelta

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from apps.accounting.rollup import usage_sweep
from apps.accounts.models import User
from apps.jobs.models import JobAttempt
from apps.namespaces.models import Namespace
from tests.integration.accounting.test_dashboard import check_waits, waiting
from tests.integration.jobs.test_job_list_on_postgres import jobs_appear, person
from yardmaster.accounting.calendar import begin_of, day_of

pytestmark = pytest.mark.postgres
MANY = int(os.environ.get("YARDMASTER_TEST_DASHBOARD_JOBS", "20000"))


def history_appears(many: int) -> User:
    """Jobs of a hundred days with an attempt and two rows of the ledger each, a tenth of them failed."""
    root = person("root", is_staff=True)
    teams = [Namespace.objects.create(slug=f"team-{n}") for n in range(50)]
    jobs_appear(many, teams, root)
    with connection.cursor() as cursor:
        cursor.execute(
            f"""
            INSERT INTO jobs_jobattempt (job_id, number, spec, phase, reason, message, remedy, blame, role, queued_at,
                started_at, decided_at, log_bytes)
            SELECT id, 1, spec, CASE WHEN turn % 10 = 0 THEN 'FAILED' ELSE 'SUCCEEDED' END,
                CASE WHEN turn % 10 = 0 THEN (array['OutOfMemory', 'ScriptFailed', 'ImageNotFound'])[1 + turn % 3]
                ELSE '' END, '', '', '', '', at, at + (turn % 600) * interval '1 second', at + interval '1 hour', 0
            FROM (SELECT id, spec, row_number() OVER (ORDER BY id) AS turn,
                now() - (row_number() OVER (ORDER BY id)) * interval '100 days' / {many} AS at FROM jobs_job) jobs
            """
        )
        cursor.execute(
            """
            INSERT INTO jobs_reservation (job_id, job_name, namespace_id, namespace_slug, owner_id, owner_name, engine,
                attempt, role, tasks, cpu, memory, gpus, extended, reserved_at, released_at)
            SELECT a.job_id, 'digits', j.namespace_id, n.slug, j.owner_id, 'root', 'staged', 1, kind, 2, 2, 4294967296,
                0, '{}'::jsonb, a.started_at, a.decided_at
            FROM jobs_jobattempt a JOIN jobs_job j ON j.id = a.job_id JOIN namespaces_namespace n
                ON n.id = j.namespace_id, unnest(array['worker', 'ps']) kind
            """
        )
    usage_sweep(timezone.now(), longest=600)
    with connection.cursor() as cursor:
        cursor.execute("VACUUM ANALYZE")
    return root


def test_percentiles_are_the_same_as_counted_one_by_one(postgres_db):
    check_waits(waiting(person("ada")))


@pytest.mark.slow
@pytest.mark.long
def test_what_is_counted_over_all_jobs_is_read_from_indexes(postgres_db):
    root = history_appears(MANY)
    client = Client()
    client.force_login(root)
    client.get("/admin/dashboard/")
    took = {}
    for period in ("day", "week", "month", "quarter"):
        begun = timezone.now()
        with CaptureQueriesContext(connection) as seen:
            assert client.get(f"/admin/dashboard/?period={period}").status_code == 200
        took[period] = round((timezone.now() - begun).total_seconds(), 3)
        asked = [one["sql"] for one in seen.captured_queries if one["sql"].startswith("SELECT")]
        assert len(asked) <= 12, "beside those that begin and end the snapshot of what was used"
        counted = [one["sql"] for one in seen.captured_queries if 'FROM "jobs_jobattempt"' in one["sql"]]
        assert len(counted) == 2
        for sql in counted:
            with connection.cursor() as cursor:
                cursor.execute(f"EXPLAIN {sql}")
                plan = "\n".join(row[0] for row in cursor.fetchall())
            if period != "quarter":  # nearly all of it: any way of reading will do
                assert "Seq Scan on jobs_jobattempt" not in plan, plan
    print(f"\n{MANY} jobs: {took}")
    begin = begin_of(day_of(timezone.now()) - timedelta(days=29))
    assert JobAttempt.objects.filter(queued_at__gte=begin).count() > MANY // 5
