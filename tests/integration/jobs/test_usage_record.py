"""The ledger as a record: rows are added and closed once; who may read it, and for how long a time."""

from __future__ import annotations

from datetime import timedelta

import pytest
from rest_framework.test import APIClient

from apps.accounts.models import User
from apps.jobs.models import Reservation
from apps.jobs.models.ledger import AppendOnly
from apps.jobs.state import ledger
from apps.namespaces.models import Membership
from yardmaster.engines.base import Capacity
from yardmaster.job.spec import Resources, Role


@pytest.fixture
def rows(world, ada) -> list[Reservation]:
    """Of a job that runs."""
    world.until_running(world.launch(ada))
    return list(Reservation.objects.order_by("pk"))


@pytest.mark.parametrize(
    "change",
    [
        lambda row: row.delete(),
        lambda row: row.save(),
        lambda row: Reservation.objects.all().delete(),
        lambda row: Reservation.objects.filter(pk=row.pk).delete(),
        lambda row: Reservation.objects.update(cpu=0),
        lambda row: Reservation.objects.filter(pk=row.pk).update(released_at=None),
        lambda row: Reservation.objects.bulk_update([row], ["cpu"]),
        lambda row: Reservation.objects.update_or_create(pk=row.pk, defaults={"cpu": 0}),
    ],
)
def test_what_was_written_is_never_changed_or_deleted(rows, change):
    with pytest.raises(AppendOnly):
        change(rows[0])
    assert Reservation.objects.count() == len(rows)


def test_a_row_is_closed_once(world, ada, rows):
    job = rows[0].job
    assert ledger.release(job, list(Role), world.now) == len(rows)
    assert ledger.release(job, list(Role), world.now + timedelta(hours=1)) == 0
    assert {row.released_at for row in Reservation.objects.all()} == {world.now}


def test_a_row_names_whose_it_is(ada, rows):
    for row in rows:
        assert (row.owner_id, row.owner_name) == (ada.pk, ada.username)
        assert (row.namespace_slug, row.job_name) == (row.namespace.slug, row.job.name)


def test_two_roles_that_hold_the_same_of_a_resource_hold_it_twice(world, ada, django_assert_num_queries):
    each = {"replicas": 1, "cpu": 1, "memory": "1Gi", "extended": {"vendor.example/fpga": 2}}
    job = world.launch(ada, roles={"worker": each, "ps": each})
    total = Resources(8, 64 << 30, extended={"vendor.example/fpga": 8})
    world.engine._capacity = Capacity(total, total, total)
    world.until_running(job)
    with django_assert_num_queries(1):
        (held,) = ledger.holders("staged")
    assert held.resources == Resources(2, 2 << 30, extended={"vendor.example/fpga": 4})
    assert held.resources == ledger.held_by(job.namespace_id, "staged")


def asked(user: User, **query: str):
    client = APIClient()
    client.force_authenticate(user)
    return client.get("/api/v1/usage/", query)


def test_members_who_do_not_manage_are_refused(world, ada, rows):
    bob = User.objects.create(username="a-viewer")
    Membership.objects.create(namespace=rows[0].namespace, user=bob, role="member")
    assert asked(bob, namespace=rows[0].namespace_slug).status_code == 403
    assert asked(bob).json()["results"] == []


@pytest.mark.parametrize(
    ("query", "field"),
    [
        ({"from": "2026-11-02T00:00:00Z", "to": "2026-11-01T00:00:00Z"}, "to"),
        ({"from": "2020-01-01T00:00:00Z", "to": "2026-11-01T00:00:00Z"}, "from"),
        ({"from": "yesterday"}, "from"),
    ],
)
def test_a_time_that_makes_no_sense_is_refused_by_its_field(ada, query, field):
    answer = asked(ada, **query)
    assert answer.status_code == 400
    assert [one["field"] for one in answer.json()["errors"]] == [field]


def test_hours_are_cut_to_the_time_that_was_asked_for(world, ada, rows):
    begin = rows[0].reserved_at
    ends = {"from": begin.isoformat(), "to": (begin + timedelta(minutes=30)).isoformat()}
    found = asked(ada, **ends).json()
    (row,) = found["results"]
    cores = sum(float(one.cpu) for one in rows)
    assert row["cpu_hours"] == pytest.approx(cores / 2, abs=0.01)
    assert row["jobs"] == found["total"]["jobs"] == 1


def test_the_namespaces_page_says_what_was_used_this_month(client, ada, rows):
    client.force_login(ada)
    part = f"/namespaces/{rows[0].namespace_id}/use/"
    assert part in client.get(f"/namespaces/{rows[0].namespace_id}/").content.decode()
    page = client.get(part).content.decode()
    assert "Use this month" in page
    assert "CPU hours" in page
