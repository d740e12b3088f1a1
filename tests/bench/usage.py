"""A year of ten million reservations on a real PostgreSQL: summed by month in a second, a day closed in a few."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterable
from datetime import UTC, date, datetime, timedelta

from tests.bench.job_list import cluster
from tests.bench.lines import Line, median
from tests.real.postgres import programs

RESERVATIONS = 10_000_000
DAYS = 365
BEGIN = date(2025, 1, 1)
ROUNDS = 5
LEDGER = """
INSERT INTO jobs_reservation (job_id, job_name, namespace_id, namespace_slug, owner_id, owner_name, engine, attempt,
    role, tasks, cpu, memory, gpus, extended, reserved_at, released_at)
SELECT md5('job' || n / 2)::uuid, 'job ' || n / 2, md5('n' || n / 2 %% 40)::uuid, 'team-' || n / 2 %% 40,
    md5('u' || n / 2 %% 400)::uuid, 'user-' || n / 2 %% 400,
    CASE WHEN n / 2 %% 3 = 0 THEN 'cluster' ELSE 'local' END, 1,
    CASE WHEN n %% 2 = 0 THEN 'ps' ELSE 'worker' END, 1, 1 + n %% 8, (1 + n %% 16) * 1073741824::bigint,
    CASE WHEN n %% 5 = 0 THEN 1 ELSE 0 END, '{}', at, at + interval '1 hour'
FROM (SELECT n, timestamptz '2025-01-01+00' + n * (interval '365 days' / %s) AS at FROM generate_series(0, %s - 1) n) s
"""
"""A row is a role of a job that was held for an hour: ten million task-hours."""


def measure() -> Iterable[Line]:
    bin_folder = programs()
    if bin_folder is None:
        return
    with cluster(bin_folder) as database:
        os.environ["DJANGO_SETTINGS_MODULE"] = "portal.settings"
        os.environ["YARDMASTER_DATABASE_URL"] = database.url("bench")
        os.environ["YARDMASTER_SECRET_KEY"] = "only-for-measurements-" + "x" * 40
        os.environ["YARDMASTER_LOG_LEVEL"] = "WARNING"
        import django

        django.setup()
        yield from _lines(int(os.environ.get("YARDMASTER_BENCH_RESERVATIONS", RESERVATIONS)))


def _lines(count: int) -> Iterable[Line]:
    from django.core.management import call_command

    from apps.accounting.models import UsageDay
    from apps.accounting.use import use
    from yardmaster.accounting.calendar import begin_of

    call_command("migrate", verbosity=0, interactive=False)
    _fill(count)
    days = _close_days()
    yield Line(f"use: closing a day of {count:,} reservations a year", median(days), "s", at_most=5)
    _fill_days()
    yield Line("use: rows of the summed days", UsageDay.objects.count(), "")
    begin, end = begin_of(BEGIN), begin_of(BEGIN) + timedelta(days=DAYS)
    asked: dict[str, Callable[[], object]] = {
        "the year by month": lambda: use(begin, end, [], step="month"),
        "the year by month and namespace": lambda: use(begin, end, ["namespace"], step="month"),
        "the year by month and role": lambda: use(begin, end, ["role"], step="month"),
        "one month by user": lambda: use(begin_of(date(2025, 6, 1)), begin_of(date(2025, 7, 1)), ["user"]),
    }
    for words, ask in asked.items():
        ask()
        yield Line(f"use: {words}", median([_timed(ask) for _ in range(ROUNDS)]), "s", at_most=1)


def _execute(*statements: str) -> None:
    from django.db import connection

    with connection.cursor() as cursor:
        for one in statements:
            cursor.execute(one)


def _fill(count: int) -> None:
    """The ledger; its indexes are made afterwards, which is faster."""
    from django.db import connection

    with connection.cursor() as cursor:
        cursor.execute("SELECT indexname, indexdef FROM pg_indexes WHERE tablename = 'jobs_reservation'")
        indexes = [(name, made) for name, made in cursor.fetchall() if "UNIQUE" not in made]
        for name, _ in indexes:
            cursor.execute(f"DROP INDEX {name}")
        cursor.execute(LEDGER, [count, count])
    _execute(*(made for _, made in indexes), "VACUUM ANALYZE")


def _close_days() -> list[float]:
    """How long some days in the middle of the year take, as the worker closes them."""
    from apps.accounting.models import UsageState
    from apps.accounting.rollup import usage_rebuild, usage_sweep

    middle = BEGIN + timedelta(days=DAYS // 2)
    UsageState.objects.create(upto=middle, measured_upto=middle)
    usage_rebuild(middle)
    took = []
    for number in range(1, ROUNDS + 1):
        begun = time.perf_counter()
        usage_sweep(datetime.combine(middle, datetime.min.time(), UTC) + timedelta(days=number, hours=2))
        took.append(time.perf_counter() - begun)
    return took


def _fill_days() -> None:
    """All days, as the worker would have summed them, in three statements."""
    from apps.accounting.models import UsageCarried, UsageDay, UsageState

    UsageDay.objects.all().delete()
    UsageCarried.objects.all().delete()
    for resource, amount in {"cpu": "cpu * 1000", "memory": "memory / 1024", "gpus": "gpus"}.items():
        _execute(f"""INSERT INTO accounting_usageday (day, namespace_id, namespace_slug, owner_id, owner_name, role,
            engine, resource, amount)
            SELECT (reserved_at AT TIME ZONE 'UTC')::date AS day, namespace_id, namespace_slug, owner_id, owner_name,
            role, engine, '{resource}', sum(3600 * {amount}) FROM jobs_reservation
            GROUP BY 1, 2, 3, 4, 5, 6, 7 HAVING sum({amount}) > 0 ORDER BY 1""")
    UsageState.objects.update(upto=BEGIN + timedelta(days=DAYS))
    _execute("VACUUM ANALYZE accounting_usageday")


def _timed(ask: Callable[[], object]) -> float:
    begun = time.perf_counter()
    ask()
    return time.perf_counter() - begun
