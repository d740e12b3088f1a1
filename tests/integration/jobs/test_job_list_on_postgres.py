"""A page of the list costs the same however many jobs there are, and wherever the reader's own lie among them.

What is compared is how many blocks PostgreSQL touches: unlike time, it is the same on a busy machine.
"""

from __future__ import annotations

import json
import uuid

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.utils import timezone
from rest_framework.test import APIClient

from apps.accounts.models import User
from apps.api.paging import Cursor
from apps.jobs.job_list import JobFilters, job_list
from apps.jobs.models import Job, JobMetric
from apps.namespaces.models import Membership, Namespace
from yardmaster.job.list_columns import ordering_of
from yardmaster.job.spec import Strategy
from yardmaster.lifecycle.phases import Phase

pytestmark = [pytest.mark.postgres, pytest.mark.slow]

PAGE = 51
MANY = 20_000


def person(name: str, **facts) -> User:
    return User.objects.create_user(name, f"{name}@example.org", "correct horse battery", **facts)


def own(user: User) -> Namespace:
    return Namespace.objects.get(owner=user)


def jobs_appear(
    count: int, namespaces: list[Namespace], owner: User, *, age: int = 0, phase: str = "SUCCEEDED"
) -> None:
    """Jobs in turn in these namespaces, one a millisecond; those of a higher age are older."""
    spec = json.dumps({"name": "digits", "reclaim_delay": 30, "filler": "x" * 600})
    needs = json.dumps({"cpu": 1, "memory": 1, "gpus": 0, "extended": {}})
    columns = {
        "id": "(lpad(to_hex(1800000000000 + %(age)s::bigint * 10000000 + g), 12, '0') || '70008000' || "
        "substr(md5(g::text || %(age)s), 1, 12))::uuid",
        "namespace_id": "(%(namespaces)s::uuid[])[1 + g %% %(turns)s]",
        "owner_id": "%(owner)s::uuid",
        "name": "'digits-' || g",
        "engine": "'staged'",
        "strategy": "(array['single', 'between_graph'])[1 + g %% 2]",
        "priority": "0",
        "spec": "%(spec)s::jsonb",
        "needs": "%(needs)s::jsonb",
        "created_at": "now()",
        "wanted": "'RUN'",
        "phase": "%(phase)s",
        "attempt": "1",
        **dict.fromkeys(("reason", "message", "remedy", "lease_owner", "waiting_digest"), "''"),
        **dict.fromkeys(("waiting", "progress", "replicas"), "'{}'::jsonb"),
        "queued_at": "now()",
        "wake_again": "false",
        "setbacks": "0",
        "reclaim_delay": "0",
    }
    values = {
        "age": -age, "namespaces": [str(one.pk) for one in namespaces], "turns": len(namespaces),
        "owner": str(owner.pk), "spec": spec, "needs": needs, "phase": phase, "count": count,
    }  # fmt: skip
    with connection.cursor() as cursor:
        cursor.execute(
            f"INSERT INTO jobs_job ({', '.join(columns)}) SELECT {', '.join(columns.values())} "
            "FROM generate_series(1, %(count)s) g",
            values,
        )
        cursor.execute("ANALYZE jobs_job")


def blocks_touched(user: User, filters: JobFilters, cursor: Cursor | None = None) -> int:
    """By the statements that read a page, the row lookup included. That an administrator's reading is recorded, once an
    hour, does not count."""
    with CaptureQueriesContext(connection) as captured:
        job_list(user, filters).page(cursor, PAGE)
    return blocks_of(captured)


def blocks_of(captured: CaptureQueriesContext) -> int:
    touched = 0
    reads = [one for one in captured.captured_queries if one["sql"].startswith("SELECT")]
    assert len(reads) >= 2
    for one in reads:
        with connection.cursor() as plan:
            plan.execute(f"EXPLAIN (ANALYZE, BUFFERS, FORMAT JSON) {one['sql']}")
            top = plan.fetchone()[0][0]["Plan"]
            touched += top["Shared Hit Blocks"] + top["Shared Read Blocks"]
    return touched


def test_a_page_costs_the_same_wherever_the_readers_jobs_lie(postgres_db):
    root, late, early, member = person("root", is_staff=True), person("late"), person("early"), person("member")
    teams = [Namespace.objects.create(slug=f"team-{n}") for n in range(8)]
    for team in teams:
        Membership.objects.create(namespace=team, user=member)
    readers = {
        "an administrator": (root, JobFilters()),
        "whose jobs are the newest": (late, JobFilters()),
        "whose jobs are the oldest": (early, JobFilters()),
        "a member of many": (member, JobFilters()),
        "by a phase that is rare": (root, JobFilters(phases=(Phase.FAILED,))),
        "by a strategy": (root, JobFilters(strategy=Strategy.SINGLE)),
        "of one namespace and phase": (root, JobFilters(namespace="early", phases=(Phase.SUCCEEDED,))),
    }
    jobs_appear(60, [own(early)], early, age=9, phase="FAILED")
    jobs_appear(400, [own(early)], early, age=8)
    jobs_appear(300, teams, member, age=7)
    jobs_appear(300, [own(late)], late, age=6)
    before = {name: blocks_touched(*one) for name, one in readers.items()}
    jobs_appear(MANY // 2, [own(early)], early, age=5)
    jobs_appear(MANY // 2, [own(late)], late, age=4)
    jobs_appear(MANY // 2, teams, member, age=3)
    after = {name: blocks_touched(*one) for name, one in readers.items()}
    assert {name: blocks for name, blocks in after.items() if blocks > 2 * before[name] + 100} == {}


def test_a_page_far_down_costs_what_the_first_one_does(postgres_db):
    root, late, member = person("root", is_staff=True), person("late"), person("member")
    teams = [Namespace.objects.create(slug=f"team-{n}") for n in range(4)]
    for team in teams:
        Membership.objects.create(namespace=team, user=member)
    jobs_appear(MANY, [own(late)], late, age=2)
    jobs_appear(MANY, teams, member, age=1)
    for user, jobs in [
        (root, Job.objects.all()),
        (late, Job.objects.filter(namespace=own(late))),
        (member, Job.objects.filter(namespace__in=teams)),
    ]:
        middle = Cursor(jobs.order_by("pk").values_list("pk", flat=True)[MANY // 2])
        assert blocks_touched(user, JobFilters(), middle) <= 1.5 * blocks_touched(user, JobFilters()) + 50
        assert len(job_list(user, JobFilters()).page(middle, PAGE)) == PAGE


def test_a_page_sorted_by_a_metric_is_read_from_its_index(postgres_db):
    root, late = person("root", is_staff=True), person("late")
    order = ordering_of("-metric:loss")

    def touched(user: User) -> int:
        with CaptureQueriesContext(connection) as captured:
            assert len(job_list(user, JobFilters(), order=order).part(0, PAGE, timezone.now())) == PAGE
        return blocks_of(captured)

    def metrics_appear() -> None:
        JobMetric.objects.all().delete()
        with connection.cursor() as cursor:
            cursor.execute(
                "INSERT INTO jobs_jobmetric (job_id, namespace_id, name, attempt, latest, not_finite) "
                "SELECT id, namespace_id, 'loss', 1, random(), '' FROM jobs_job"
            )
            cursor.execute("ANALYZE jobs_jobmetric")

    jobs_appear(400, [own(late)], late, age=2)
    metrics_appear()
    before = {user.username: touched(user) for user in (root, late)}
    jobs_appear(MANY, [own(late)], late, age=1)
    metrics_appear()
    after = {user.username: touched(user) for user in (root, late)}
    assert {name: blocks for name, blocks in after.items() if blocks > 2 * before[name] + 300} == {}


def test_pages_of_several_namespaces_are_merged_in_order_both_ways(postgres_db):
    member = person("member")
    teams = [Namespace.objects.create(slug=f"team-{n}") for n in range(3)]
    for team in teams:
        Membership.objects.create(namespace=team, user=member)
    stranger = person("stranger")
    jobs_appear(30, [own(stranger), *teams], member)
    visible = list(Job.objects.filter(namespace__in=teams).order_by("-pk").values_list("pk", flat=True))
    client = APIClient()
    client.force_login(member)
    seen: list[str] = []
    url = "/api/v1/jobs/?page_size=10"
    while url:
        page = client.get(url).json()
        seen += [one["id"] for one in page["results"]]
        last, url = page, page["next"]
    assert [uuid.UUID(one) for one in seen] == visible
    back = client.get(last["previous"]).json()["results"]
    assert [uuid.UUID(one["id"]) for one in back] == visible[10:20] if len(visible) > 20 else True


def test_the_list_takes_few_statements_and_never_counts(postgres_db):
    member = person("member")
    teams = [Namespace.objects.create(slug=f"team-{n}") for n in range(3)]
    for team in teams:
        Membership.objects.create(namespace=team, user=member)
    jobs_appear(200, teams, member)
    client = APIClient()
    client.force_login(member)
    with CaptureQueriesContext(connection) as captured:
        assert len(client.get("/api/v1/jobs/").json()["results"]) == 50
    statements = [one["sql"].upper() for one in captured.captured_queries]
    assert len(statements) <= 8
    assert not any("COUNT(" in one or "OFFSET" in one for one in statements)
