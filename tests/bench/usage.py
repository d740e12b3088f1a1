"""A year of ten million reservations on a real PostgreSQL: reported by month in a second, a day closed in a few; and
the dashboard over a hundred thousand jobs.

`YARDMASTER_BENCH_RESERVATIONS` takes fewer. What reports read grows with the users, namespaces, roles and resources,
not with the reservations; what is read to close a day grows with the reservations of that day.
"""

from __future__ import annotations

import os
import resource
import time
from collections.abc import Callable, Iterable
from datetime import UTC, date, datetime, timedelta
from pathlib import Path

from tests.bench.job_list import cluster
from tests.bench.lines import Line, median
from tests.real.postgres import default_database, programs

RESERVATIONS = 10_000_000
JOBS = 100_000
DAYS = 365
DAY = timedelta(days=1)
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
        database.create("dashboard")
        with default_database(database.settings("dashboard")):
            yield from _dashboard()


def _lines(count: int) -> Iterable[Line]:
    from django.core.management import call_command

    from apps.accounting.models import JobCount, UsageDay, UsageMonth
    from apps.accounting.rollup import usage_sweep

    call_command("migrate", verbosity=0, interactive=False)
    begun = time.perf_counter()
    _fill(count)
    yield Line(f"use: {count:,} reservations written", time.perf_counter() - begun, "s", note=_load())
    days = _close_days()
    yield Line(f"use: closing a day of {count:,} reservations a year", median(days), "s", at_most=5, note=_load())
    _fill_days()
    begun = time.perf_counter()
    usage_sweep(datetime.combine(BEGIN, datetime.min.time(), UTC) + timedelta(days=DAYS), longest=float("inf"))
    yield Line("use: filling the months of an existing year", time.perf_counter() - begun, "s", note=_load())
    _fill_counts()
    for name, model in (("days", UsageDay), ("months", UsageMonth), ("counts of jobs", JobCount)):
        yield Line(f"use: rows of the {name}", model.objects.count(), "")
    yield from _reports()


def _reports() -> Iterable[Line]:
    from apps.accounting.models import UsageState
    from apps.accounting.report import Asked, usage_report
    from apps.accounting.report_file import csv_response
    from apps.accounting.use import use
    from apps.accounting.views import lines_of
    from apps.accounts.models import User
    from yardmaster.accounting.calendar import begin_of

    root = User(is_staff=True)
    begin, end = begin_of(BEGIN), begin_of(BEGIN) + timedelta(days=DAYS)
    for by in ("month", "month,namespace", "month,user", "month,role", "namespace,user,role"):
        asked = Asked(by=tuple(by.split(",")), begin=begin, end=end)
        ask: Callable[[], object] = lambda asked=asked: usage_report(root, asked, end)  # noqa: E731
        yield _asked(f"use: report of the year by {by}", ask)
    asked = Asked(by=("month", "user"), begin=begin, end=end)
    yield _asked("... as CSV", lambda: csv_response("usage", lines_of(usage_report(root, asked, end))))
    UsageState.objects.update(upto=(end - DAY).date(), jobs_upto=(end - DAY).date(), months_upto=date(2025, 12, 1))
    yield _asked("... on its last day, before that is summed", lambda: usage_report(root, asked, end))
    UsageState.objects.update(upto=end.date(), jobs_upto=end.date(), months_upto=end.date())
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    csv_response("usage", lines_of(usage_report(root, Asked(by=("day", "namespace"), begin=begin, end=end), end)))
    grown = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) / 1024
    yield Line("... more memory for a CSV by day and namespace", grown, "MiB", at_most=200)
    june = (begin_of(date(2025, 6, 1)), begin_of(date(2025, 7, 1)))
    yield _asked("use: one month by user", lambda: use(*june, ["user"]))
    yield _asked("use: 90 days by day and namespace", lambda: use(june[0], june[0] + 90 * DAY, ["slug"], step="day"))


def _asked(words: str, ask: Callable[[], object], at_most: float = 1) -> Line:
    """The processor's seconds are told, too: on a machine that others use, the clock says little."""
    ask()
    before = _processor()
    took = [_timed(ask) for _ in range(ROUNDS)]
    spent = (_processor() - before) / ROUNDS
    note = f"{min(took):.2f} to {max(took):.2f} s, {spent:.2f} s of a processor, {_load()}"
    return Line(words, median(took), "s", at_most=at_most, note=note)


def _processor() -> float:
    """Seconds of this process and of the database's for it."""
    from django.db import connection

    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_backend_pid()")
        fields = Path(f"/proc/{cursor.fetchone()[0]}/stat").read_text().rpartition(")")[2].split()
    return time.process_time() + (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def _load() -> str:
    return f"load average {os.getloadavg()[0]:.1f} of {os.cpu_count()} cores"


def _dashboard() -> Iterable[Line]:
    """As `tests.integration.accounting.test_dashboard_on_postgres`, of a hundred thousand jobs of a hundred days."""
    from django.core.management import call_command
    from django.test import Client, override_settings

    from tests.integration.accounting.test_dashboard_on_postgres import history_appears

    call_command("migrate", verbosity=0, interactive=False)
    with override_settings(ALLOWED_HOSTS=["testserver"]):
        client = Client()
        client.force_login(history_appears(JOBS))
        for period, days, goal in (("month", 30, 0.5), ("quarter", 90, 1.0)):
            page = f"/admin/dashboard/?period={period}"
            ask: Callable[[], object] = lambda page=page: client.get(page)  # noqa: E731
            yield _asked(f"dashboard over {days} days of {JOBS:,} jobs", ask, goal)


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
    """How long the last days of the year take, as the worker closes them and counts their jobs."""
    from apps.accounting.models import UsageState
    from apps.accounting.rollup import usage_rebuild, usage_sweep

    first = BEGIN + timedelta(days=DAYS - ROUNDS)
    UsageState.objects.create(upto=first, measured_upto=first, jobs_upto=first)
    usage_rebuild(first)
    took = []
    for number in range(1, ROUNDS + 1):
        begun = time.perf_counter()
        usage_sweep(datetime.combine(first, datetime.min.time(), UTC) + timedelta(days=number, hours=2))
        took.append(time.perf_counter() - begun)
    return took


def _fill_days() -> None:
    """All days, as the worker would have summed them, in three statements."""
    from django.db.models import Max

    from apps.accounting.models import UsageCarried, UsageDay, UsageState
    from apps.jobs.models import Reservation

    UsageDay.objects.all().delete()
    UsageCarried.objects.all().delete()
    for what, amount in {"cpu": "cpu * 1000", "memory": "memory / 1024", "gpus": "gpus"}.items():
        _execute(f"""INSERT INTO accounting_usageday (day, namespace_id, namespace_slug, owner_id, owner_name, role,
            engine, resource, amount)
            SELECT (reserved_at AT TIME ZONE 'UTC')::date AS day, namespace_id, namespace_slug, owner_id, owner_name,
            role, engine, '{what}', sum(3600 * {amount}) FROM jobs_reservation
            GROUP BY 1, 2, 3, 4, 5, 6, 7 HAVING sum({amount}) > 0 ORDER BY 1""")
    last = Reservation.objects.aggregate(last=Max("pk"))["last"]
    end = BEGIN + timedelta(days=DAYS)
    # The jobs are counted by statements, too: the worker takes seconds for each day of long ago.
    UsageState.objects.update(upto=end, measured_upto=end, last_reservation=last, months_upto=None, jobs_upto=end)
    _execute("VACUUM ANALYZE accounting_usageday")


def _fill_counts() -> None:
    """The jobs of all days, without those few that ran over midnight, and of the months."""
    from apps.accounting.models import JobCount

    JobCount.objects.all().delete()
    names = "namespace_id, namespace_slug, owner_id, owner_name, engine"
    for role in ("role", "''"):
        _execute(f"""INSERT INTO accounting_jobcount (is_month, begin, {names}, role, jobs)
            SELECT false, (reserved_at AT TIME ZONE 'UTC')::date, {names}, {role}, count(DISTINCT job_id)
            FROM jobs_reservation GROUP BY 2, 3, 4, 5, 6, 7, 8""")
    _execute(f"""INSERT INTO accounting_jobcount (is_month, begin, {names}, role, jobs)
        SELECT true, date_trunc('month', begin)::date, {names}, role, sum(jobs) FROM accounting_jobcount
        GROUP BY 2, 3, 4, 5, 6, 7, 8""")
    _execute("VACUUM ANALYZE accounting_jobcount", "VACUUM ANALYZE accounting_usagemonth")


def _timed(ask: Callable[[], object]) -> float:
    begun = time.perf_counter()
    ask()
    return time.perf_counter() - begun
