"""The rows of a large portal: a populated team, then 200 people, 2,000 data sets and 100,000 jobs around it, with what
hangs on each. Most is copied by the database itself from one row that the portal made, so that it takes a minute.

Not here: who asks for what (`full_portal`).
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from typing import Any

from django.conf import settings
from django.db import connection, models

USERS, TEAMS, DATASETS, JOBS = 200, 40, 2_000, 100_000
_YEAR_AGO = 1_764_000_000_000
_SHARE = 3
"""One job, data set, … of so many is the populated team's; the others are spread over everyone's namespaces."""
_ID = (
    "(lpad(to_hex({ms}::bigint), 12, '0') || '7' || substr(md5({n}::text), 1, 3) || '8' || "
    "substr(md5({n}::text), 4, 15))::uuid"
)


def id_of(n: str, salt: str = "", step: int = 300_000) -> str:
    """SQL of a UUIDv7 for row `n`: one each `step` milliseconds, so that a hundred thousand fill a year."""
    return _ID.format(ms=f"({_YEAR_AGO} + {n}::bigint * {step})", n=f"({n}::text || '{salt}')")


def rows(kind: Any, source: str, template: Any = None, **columns: str) -> None:
    """Copy a row for each row `s` of the source (SQL). `columns`: SQL of those that differ, of `t` and `s`."""
    row = template or kind._default_manager.order_by("pk").first()
    table, key = kind._meta.db_table, kind._meta.pk.column
    names, values = [], []
    for field in kind._meta.concrete_fields:
        automatic = isinstance(field, models.AutoField) and field.attname not in columns
        if not automatic and not isinstance(field, models.GeneratedField):
            names.append(f'"{field.column}"')
            same = "gen_random_uuid()" if field.primary_key else f't."{field.column}"'
            values.append(columns.pop(field.attname, same))
    if columns:
        raise ValueError(f"{table} has no {list(columns)}")
    _execute(
        f"INSERT INTO {table} ({', '.join(names)}) SELECT {', '.join(values)} FROM {table} t, {source} s "
        f"WHERE t.{key} = '{row.pk}'"
    )


def fill() -> dict[str, Any]:
    """Fill the database; returns who asks, and for which addresses."""
    from apps.accounts.models import User
    from tests.integration.queries.multiplied import multiplied
    from tests.integration.queries.one_of_each import one_of_each
    from tests.integration.queries.walk import WALKERS, walk
    from tests.integration.security.populated import Populated

    settings.PASSWORD_HASHERS = ["django.contrib.auth.hashers.MD5PasswordHasher"]  # no one signs in by one
    populated = Populated(User.objects.create_user("admin", "admin@example.org", "x", is_staff=True))
    one_of_each(populated)
    multiplied(3)
    _sequences()
    _people()
    _spaces(populated)
    _jobs(populated)
    _of_jobs()
    _beside_jobs(populated)
    _data(populated)
    _rest(populated)
    _usage()
    _execute("VACUUM ANALYZE")
    cookies = {}
    for who in WALKERS:
        populated.client_of(who)
        cookies[who] = f"{settings.SESSION_COOKIE_NAME}={populated._cookies[who]}"
    asked = [[one.path, one.route, one.view] for one in walk(populated)]
    return {"cookies": cookies, "asked": asked, "rows": _sizes()}


def _people() -> None:
    from apps.accounts.models import User
    from apps.accounts.services import user_create
    from apps.namespaces.services import team_create

    admin = User.objects.get(username="admin")
    for n in range(USERS):
        user_create(username=f"person-{n}", password="correct horse battery")
    for n in range(TEAMS):
        team_create(slug=f"team-{n}", title=f"Team {n}", actor=admin, manager=User.objects.get(username=f"person-{n}"))


def _spaces(populated: Any) -> None:
    """Places for what follows: `spots` gives the n-th a namespace, its slug and an owner."""
    from apps.namespaces.models import Membership

    _execute(
        "CREATE TABLE bench_spot AS SELECT row_number() OVER (ORDER BY n.id) - 1 AS n, n.id AS namespace_id, "
        "n.slug, coalesce(n.owner_id, m.user_id) AS owner_id FROM namespaces_namespace n LEFT JOIN LATERAL "
        "(SELECT user_id FROM namespaces_membership WHERE namespace_id = n.id ORDER BY id LIMIT 1) m ON true "
        "WHERE coalesce(n.owner_id, m.user_id) IS NOT NULL",
        "CREATE TABLE bench_place AS SELECT g AS n, "
        f"CASE WHEN g % {_SHARE} = 0 THEN '{populated.team.pk}'::uuid ELSE p.namespace_id END AS namespace_id, "
        f"CASE WHEN g % {_SHARE} = 0 THEN '{populated.team.slug}' ELSE p.slug END AS slug, "
        f"CASE WHEN g % {_SHARE} = 0 THEN '{populated.people['manager'].pk}'::uuid ELSE p.owner_id END AS owner_id "
        f"FROM generate_series(1, {JOBS}) g JOIN bench_spot p ON p.n = (g * 7919) % (SELECT count(*) FROM bench_spot)",
        "CREATE INDEX ON bench_place (n)",
        "ANALYZE bench_place",
    )
    people = "(SELECT id AS user_id, username FROM accounts_user WHERE username LIKE 'person-%')"
    first = Membership.objects.get(namespace=populated.team, user=populated.people["member"])
    rows(Membership, people, first, user_id="s.user_id")


def _places(count: int) -> str:
    return f"(SELECT * FROM bench_place WHERE n <= {count})"


def _jobs(populated: Any) -> None:
    from apps.jobs.models import Job

    at = f"to_timestamp(({_YEAR_AGO} + s.n::bigint * 300000) / 1000.0)"
    spec = {
        "version": 1, "name": "digits", "strategy": "between_graph", "code": str(populated.code_version.pk),
        "entry_point": "main.py", "roles": {"ps": {"replicas": 1}, "worker": {"replicas": 2}},
        "arguments": ["--steps=200", "--learning_rate=0.01"], "environment": {"MODE": "usual"},
    }  # fmt: skip
    needs = {"cpu": 3.0, "memory": 3 << 30, "gpus": 0, "extended": {}}
    needs["roles"] = {"ps": dict(needs) | {"cpu": 1.0}, "worker": dict(needs) | {"cpu": 2.0}}
    is_over = f"s.n <= {JOBS - 400}"
    rows(
        Job, _places(JOBS), populated.job, id=id_of("s.n", "job"), namespace_id="s.namespace_id",
        owner_id="s.owner_id", name="'digits-' || s.n", strategy="(array['single', 'between_graph'])[1 + s.n % 2]",
        phase=f"CASE WHEN {is_over} THEN (array['SUCCEEDED', 'SUCCEEDED', 'FAILED', 'STOPPED'])[1 + s.n % 4] "
        f"WHEN s.n <= {JOBS - 100} THEN 'QUEUED' ELSE 'RUNNING' END",
        reason=f"CASE WHEN {is_over} AND s.n % 4 = 2 THEN (array['OUT_OF_MEMORY', 'EXIT_CODE', 'EVICTED'])[1 + s.n % 3]"
        f" WHEN {is_over} THEN '' ELSE 'QUOTA' END",
        message="'What happened to it is said in these words.'", spec=f"'{json.dumps(spec)}'::jsonb",
        needs=f"'{json.dumps(needs)}'::jsonb", replicas="'{\"ps\": 1, \"worker\": 2}'::jsonb",
        named_values="jsonb_build_object('learning_rate', 0.01, 'steps', 200 + s.n % 9)",
        tags="'[\"baseline\"]'::jsonb",
        archived_at=f"CASE WHEN s.n % 5 = 0 AND {is_over} THEN now() END", created_at=at, queued_at=at,
        admitted_at=f"CASE WHEN s.n <= {JOBS - 400} OR s.n > {JOBS - 100} THEN {at} END",
        started_at=f"CASE WHEN s.n <= {JOBS - 400} OR s.n > {JOBS - 100} THEN {at} + interval '2 minutes' END",
        decided_at=f"CASE WHEN {is_over} THEN {at} + interval '1 hour' END",
        released_at=f"CASE WHEN {is_over} THEN {at} + interval '1 hour' END",
        cleaned_up_at=f"CASE WHEN {is_over} THEN {at} + interval '1 hour' END",
        position=f"CASE WHEN {is_over} THEN NULL ELSE s.n - {JOBS - 400} END",
        progress="jsonb_build_object('step', s.n % 1000)", progress_at=at, request_key="NULL",
    )  # fmt: skip
    _execute(
        f"CREATE TABLE bench_job AS SELECT b.n, j.* FROM (SELECT n, {id_of('n', 'job')} AS id FROM bench_place) b "
        "JOIN jobs_job j ON j.id = b.id",
        "CREATE INDEX ON bench_job (n)",
        "ANALYZE",
    )


def _of_jobs() -> None:
    """Attempts, tasks, and what was held."""
    from apps.jobs.models import JobAttempt, Reservation, TaskFact

    roles = "(SELECT * FROM bench_job, (VALUES ('ps', 0), ('worker', 0), ('worker', 1)) AS r(role, place_of_task))"
    two = "(SELECT * FROM bench_job, (VALUES ('ps', 1), ('worker', 2)) AS r(role, tasks))"
    rows(
        JobAttempt, "bench_job", job_id="s.id", number="1", phase="s.phase", reason="s.reason", message="s.message",
        spec="s.spec", queued_at="s.queued_at", started_at="s.started_at", decided_at="s.decided_at",
        cleaned_up_at="s.cleaned_up_at",
    )  # fmt: skip
    rows(TaskFact, roles, job_id="s.id", attempt="1", role="s.role", index="s.place_of_task", phase="s.phase",
         started_at="s.started_at", finished_at="s.decided_at")  # fmt: skip
    admitted = f"(SELECT b.*, p.slug FROM {two} b JOIN bench_place p ON p.n = b.n WHERE b.admitted_at IS NOT NULL)"
    rows(
        Reservation, admitted,
        job_id="s.id", job_name="s.name", namespace_id="s.namespace_id", namespace_slug="s.slug",
        owner_id="s.owner_id", owner_name="'person'", role="s.role", tasks="s.tasks", attempt="1", cpu="1 + s.n % 4",
        memory="(1 + s.n % 8) * 1073741824::bigint", gpus="CASE WHEN s.n % 6 = 0 THEN 1 ELSE 0 END",
        reserved_at="s.admitted_at", released_at="s.released_at",
    )  # fmt: skip


def _beside_jobs(populated: Any) -> None:
    """Events, metrics, tags, estimates and runs of schedules."""
    from apps.jobs.models import JobEvent, JobInput, JobMetric, JobPin, JobTag, ScalarPoint, WaitEstimate
    from apps.schedules.models import ScheduleRun, TemplateJob

    rows(JobEvent, "(SELECT * FROM bench_job, generate_series(1, 4) AS e)", job_id="s.id", at="s.queued_at")
    for name in ("loss", "accuracy"):
        rows(JobMetric, "bench_job", job_id="s.id", namespace_id="s.namespace_id", name=f"'{name}'", attempt="1",
             latest="(s.n % 997) / 997.0", lowest="(s.n % 991) / 991.0", highest="1 + s.n % 7")  # fmt: skip
    rows(JobTag, "bench_job", job_id="s.id", namespace_id="s.namespace_id", name="'tag-' || s.n % 50")
    rows(JobInput, "bench_job", job_id="s.id", version=f"'{populated.code_version.pk}'::uuid")
    rows(JobPin, f"(SELECT * FROM bench_job WHERE n % {_SHARE} = 0 ORDER BY n DESC LIMIT 40)", job_id="s.id")
    rows(WaitEstimate, "(SELECT * FROM bench_job WHERE n % 4 = 0)", job_id="s.id", attempt="1", said_at="s.queued_at",
         started_at="s.started_at")  # fmt: skip
    rows(ScalarPoint, "generate_series(1, 2000)", job_id=f"'{populated.job.pk}'::uuid", step="s", run="'train'")
    rows(JobEvent, "generate_series(1, 500)", job_id=f"'{populated.job.pk}'::uuid")
    runs = "(SELECT * FROM bench_job WHERE n % 10 = 0)"
    rows(ScheduleRun, runs, planned_at="s.queued_at", job_id="s.id")
    rows(TemplateJob, runs, job_id="s.id")


def _data(populated: Any) -> None:
    from apps.code.models import Code, CodeVersion
    from apps.datasets.models import Dataset, DatasetVersion
    from apps.registry.models import Model, ModelVersion
    from apps.uploads.models import Upload

    kinds: list[tuple[Any, Any, str, int]] = [
        (Dataset, DatasetVersion, "dataset", DATASETS),
        (Code, CodeVersion, "code", 1_000),
        (Model, ModelVersion, "model", 1_000),
    ]
    for parents, versions, word, count in kinds:
        step = 300_000 * JOBS // count
        rows(parents, _places(count), id=id_of("s.n", word, step), namespace_id="s.namespace_id",
             name=f"'{word}-' || s.n", created_by_id="s.owner_id", latest_number="5")  # fmt: skip
        several = f"(SELECT *, n * 5 + v AS m FROM {_places(count)} p, generate_series(1, 5) AS v)"
        version = versions._default_manager.order_by("pk").first()
        upload = Upload.objects.filter(pk=version.upload_id).first() or Upload.objects.first()
        rows(Upload, several, upload, id=id_of("s.m", word + "u", step // 5), namespace_id="s.namespace_id",
             target_id=id_of("s.m", word + "v", step // 5), key_prefix=f"'bench/{word}/' || s.m",
             created_by_id="s.owner_id", job_id="NULL")  # fmt: skip
        more = {"job_id": "NULL", "stage": "''"} if word == "model" else {}
        rows(versions, several, version, id=id_of("s.m", word + "v", step // 5), number="s.v",
             upload_id=id_of("s.m", word + "u", step // 5), parent_id=id_of("s.n", word, step),
             key_prefix=f"'bench/{word}/' || s.m", created_by_id="s.owner_id", **more)  # fmt: skip
        _more_versions(populated, versions, version, upload, word)


def _more_versions(populated: Any, versions: Any, version: Any, upload: Any, word: str) -> None:
    """Three hundred versions of the one that is looked at."""
    from apps.uploads.models import Upload

    many = "generate_series(1, 300)"
    salt = word + "more"
    rows(Upload, many, upload, id=id_of("s", salt + "u"), target_id=id_of("s", salt + "v"),
         key_prefix=f"'bench/{salt}/' || s", job_id="NULL")  # fmt: skip
    more = {"job_id": "NULL", "stage": "''"} if word == "model" else {}
    rows(versions, many, version, id=id_of("s", salt + "v"), upload_id=id_of("s", salt + "u"), number="100 + s",
         key_prefix=f"'bench/{salt}/' || s", **more)  # fmt: skip


def _rest(populated: Any) -> None:
    from apps.audit.models import AuditEvent
    from apps.namespaces.models import Invitation
    from apps.notifications.models import Note, Notice
    from apps.schedules.models import JobTemplate, Schedule, TemplateRevision
    from apps.sweeps.models import Sweep, SweepTrial
    from apps.webhooks.models import Delivery, Webhook

    rows(AuditEvent, _places(JOBS), id=id_of("s.n", "audit"), namespace_id="s.namespace_id", actor_id="s.owner_id",
         at=f"to_timestamp(({_YEAR_AGO} + s.n::bigint * 300000) / 1000.0)", repeat_key="NULL")  # fmt: skip
    rows(Webhook, _places(200), id=id_of("s.n", "hook"), namespace_id="s.namespace_id")
    rows(Delivery, "generate_series(1, 20000)", id=id_of("s", "delivery"), key="'bench-' || s")
    rows(JobTemplate, _places(500), id=id_of("s.n", "template"), namespace_id="s.namespace_id",
         name="'template-' || s.n", created_by_id="s.owner_id")  # fmt: skip
    rows(TemplateRevision, _places(500), template_id=id_of("s.n", "template"))
    rows(Schedule, _places(500), id=id_of("s.n", "schedule"), namespace_id="s.namespace_id", owner_id="s.owner_id",
         template_id=id_of("s.n", "template"), name="'schedule-' || s.n")  # fmt: skip
    rows(Sweep, _places(500), id=id_of("s.n", "sweep"), namespace_id="s.namespace_id", owner_id="s.owner_id",
         request_key="NULL")  # fmt: skip
    sweep = id_of("(j.n / 20 % 500 + 1)", "sweep")
    trials = f"(SELECT j.*, j.n % 20 AS k, {sweep} AS sweep_id FROM bench_job j WHERE j.n <= 10000)"
    rows(SweepTrial, trials, sweep_id="s.sweep_id", number="s.k", job_id="s.id")
    own = Sweep.objects.get(pk=populated.ids["sweep_id"]).trials.first()
    rows(
        SweepTrial, "(SELECT * FROM bench_job WHERE n > 10000 AND n <= 10500)", own, number="1000 + s.n", job_id="s.id"
    )
    rows(Invitation, "generate_series(1, 300)", id=id_of("s", "invitation"), digest="t.digest || int4send(s)")
    rows(Note, "generate_series(1, 1000)", key="'bench-' || s")
    rows(Notice, "bench_job", job_id="s.id")


def _usage() -> None:
    """The days, the months and the counts of jobs, as the worker sums them."""
    from django.utils import timezone

    from apps.accounting.models import UsageState
    from apps.accounting.rollup import usage_rebuild, usage_sweep

    usage_rebuild()
    UsageState.objects.all().delete()
    usage_sweep(timezone.now(), longest=float("inf"))


def _sequences() -> None:
    """Rows were copied with numbers of their own: the next number is after them."""
    from io import StringIO

    from django.apps import apps
    from django.core.management import call_command

    for one in apps.get_app_configs():
        if one.name.startswith("apps."):
            out = StringIO()
            call_command("sqlsequencereset", one.label, stdout=out, no_color=True)
            if out.getvalue().strip():
                _execute(out.getvalue())


def _sizes() -> dict[str, int]:
    with connection.cursor() as cursor:
        cursor.execute("SELECT relname, reltuples::bigint FROM pg_class WHERE relkind = 'r' AND reltuples > 999")
        return dict(cursor.fetchall())


def _execute(*statements: str) -> None:
    with connection.cursor() as cursor:
        for one in statements:
            cursor.execute(one)


def main(write: Callable[[str], Any] = sys.stdout.write) -> None:
    write("\n" + json.dumps(fill()) + "\n")
