"""Reserving an amount of an engine for a time: by page and API, what is refused, and what it does to the queue."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.urls import reverse
from django.utils import timezone

from apps.administration.shares import node_remove
from apps.audit.models import AuditEvent
from apps.errors import Conflict
from apps.jobs.models import AdvanceReservation, Job
from apps.jobs.state.windows import booked_on
from apps.jobs.worker.queue_pass import admit_queue
from apps.namespaces.models import Namespace, ShareNode
from tests.integration.jobs.test_queue_pass import fill, statements
from yardmaster.job.spec import Resources, time_to_end

PAGE, API = "/admin/reservations/", "/api/v1/reservations/"
HOUR = timedelta(hours=1)


@pytest.fixture
def console(client, admin):
    client.force_login(admin)
    return client


@pytest.fixture
def now(world):
    """The real clock is what people mean by a time; so the world has it, too."""
    world.now = timezone.now()
    world.engine._capacity = type(world.engine._capacity)(*[Resources(cpu=8, memory=64 << 30)] * 3)
    return world.now


def body(namespace, now, begins=3, ends=5, **amounts):
    return {
        "engine": "staged", "namespace": namespace.slug, "amounts": amounts or {"cpu": 6},
        "begins_at": (now + begins * HOUR).isoformat(), "ends_at": (now + ends * HOUR).isoformat(), "reason": "Class",
    }  # fmt: skip


def test_jobs_of_others_that_could_reach_into_it_wait_with_the_time_and_the_others_start(
    world, now, ada, bob, admin, signed_in
):
    mine = Namespace.objects.get(owner=ada)
    made = signed_in(admin).post(API, body(mine, now), format="json")
    assert made.status_code == 201, made.json()
    long, short, own = world.launch(bob), world.launch(bob, max_runtime=3600), world.launch(ada)
    admit_queue("staged", clock=world.clock)
    long, short, own = (world.again(one) for one in (long, short, own))
    assert (long.phase, long.reason) == ("QUEUED", "Reserved")
    assert f"Reserved for {mine.slug} from " in long.message
    assert "Set a time limit that ends before" in long.remedy
    assert (short.phase, own.phase) == ("STARTING", "STARTING")
    assert signed_in(admin).delete(f"{API}{made.json()['id']}/").status_code == 204
    assert not AdvanceReservation.objects.exists(), "it had not begun"
    admit_queue("staged", clock=world.clock)
    assert world.again(long).phase == "QUEUED"
    assert world.again(long).reason == "WaitingForCapacity"
    assert [one.action for one in AuditEvent.objects.filter(action__startswith="reservation.").order_by("pk")] == [
        "reservation.create",
        "reservation.end",
    ]


def test_a_job_ends_at_the_latest_after_the_time_to_start_its_limit_and_the_time_to_end(world, now, ada, settings):
    AdvanceReservation.objects.create(
        engine="staged", namespace=Namespace.objects.get(owner=ada), amounts={"cpu": 1}, begins_at=now,
        ends_at=now + 99 * HOUR,
    )  # fmt: skip
    job = world.launch(ada, max_runtime=600, grace_period=60)
    reclaimed = timedelta(seconds=job.spec["reclaim_delay"])
    longest = timedelta(seconds=600) + reclaimed + time_to_end(timedelta(seconds=60))
    admit_queue("staged", clock=world.clock)
    job = world.again(job)
    timing = settings.YARDMASTER_TIMING
    ends = job.admitted_at + timing.start_timeout + longest + timing.kill_margin
    assert booked_on("staged", [job.pk], world.now).ends == {job.pk: ends}
    world.until_running(job)
    ends = world.again(job).started_at + longest + timing.kill_margin
    assert booked_on("staged", [job.pk], world.now).ends == {job.pk: ends}
    assert booked_on("staged", [job.pk], ends).ends == {}, "it runs on, and its end is not known"
    asked_at = world.now - timedelta(minutes=1)
    Job.objects.filter(pk=job.pk).update(stop_sent_at=asked_at)
    ends = asked_at + time_to_end(timedelta(seconds=60)) + timing.kill_margin
    assert booked_on("staged", [job.pk], world.now).ends == {job.pk: ends}, "its tasks were asked to end"


def test_within_it_the_amount_is_kept_and_after_it_gone(world, now, ada, bob, admin, signed_in):
    mine = Namespace.objects.get(owner=ada)
    assert signed_in(admin).post(API, body(mine, now, -1, 1), format="json").status_code == 201
    job = world.launch(bob, max_runtime=60)
    admit_queue("staged", clock=world.clock)
    assert world.again(job).reason == "Reserved"
    world.now += HOUR
    admit_queue("staged", clock=world.clock)
    assert world.again(job).phase == "STARTING"


def test_more_than_the_engine_has_is_refused_with_field_value_and_remedy(world, now, ada, bob, admin, signed_in):
    mine, theirs, api = Namespace.objects.get(owner=ada), Namespace.objects.get(owner=bob), signed_in(admin)
    assert api.post(API, body(mine, now), format="json").status_code == 201
    answer = api.post(API, body(theirs, now, 4, 6, cpu=3), format="json")
    assert answer.status_code == 400
    (problem,) = answer.json()["errors"]
    assert (problem["field"], problem["code"], problem["value"]) == ("amounts.cpu", "too_much", "3")
    assert "staged has 8 of cpu, and 2 of it can still be reserved" in problem["message"]
    assert problem["remedy"]
    assert api.post(API, body(theirs, now, 5, 6, cpu=3), format="json").status_code == 201, "after the other's end"


@pytest.mark.parametrize(
    ("changes", "field"),
    [
        ({"engine": "nowhere"}, "engine"), ({"amounts": {}}, "amounts"), ({"amounts": {"cpu": 0}}, "amounts"),
        ({"ends_at": "2020-01-01T00:00:00Z"}, "ends_at"), ({"ends_at": "2199-01-01T00:00:00Z"}, "ends_at"),
    ],
)  # fmt: skip
def test_what_makes_no_sense_is_refused(world, now, ada, admin, signed_in, changes, field):
    said = body(Namespace.objects.get(owner=ada), now) | changes
    answer = signed_in(admin).post(API, said, format="json")
    assert answer.status_code == 400
    assert answer.json()["errors"][0]["field"] == field


def test_the_page_lists_makes_and_ends_them_and_members_read_what_is_theirs(world, now, ada, console, client):
    mine = Namespace.objects.get(owner=ada)
    assert "Nothing is reserved" in console.get(PAGE).content.decode()
    said = {
        "engine": "staged", "namespace": mine.slug, "cpu": "6", "memory": "8Gi", "reason": "Class of Monday",
        "begins_at": f"{now - HOUR:%Y-%m-%dT%H:%M}", "ends_at": f"{now + HOUR:%Y-%m-%dT%H:%M}",
    }  # fmt: skip
    wrong = console.post(PAGE, said | {"cpu": "9"})
    assert wrong.status_code == 400
    assert "can still be reserved within this time" in wrong.content.decode()
    assert console.post(PAGE, said | {"namespace": "nowhere"}).status_code == 400
    assert console.post(PAGE, said).status_code == 302
    (made,) = AdvanceReservation.objects.all()
    assert made.amounts == {"cpu": 6.0, "memory": 8 << 30}
    assert "in force" in console.get(PAGE).content.decode()
    client.force_login(ada)
    page = client.get(reverse("namespace_use_part", args=[mine.pk])).content.decode()
    assert "Reserved for you on staged: 6 cores, 8 GiB, from " in page
    assert client.get(PAGE).status_code == 403
    assert client.post(f"{PAGE}{made.pk}/end/").status_code == 403


@pytest.fixture
def course(ada):
    """A group of the tree of shares, with Ada's namespace in it."""
    group = ShareNode.objects.create(name="course")
    below = ShareNode.objects.create(name="seminar", parent=group)
    ShareNode.objects.create(namespace=Namespace.objects.get(owner=ada), parent=below)
    return group


def test_a_groups_reservation_is_for_all_below_it_and_for_no_one_else(world, now, ada, bob, admin, signed_in, course):
    said = body(Namespace.objects.get(owner=ada), now) | {"namespace": "", "group": "course"}
    made = signed_in(admin).post(API, said, format="json")
    assert made.status_code == 201, made.json()
    assert (made.json()["namespace"], made.json()["group"]) == (None, "course")
    other, own = world.launch(bob), world.launch(ada)
    admit_queue("staged", clock=world.clock)
    assert world.again(other).reason == "Reserved"
    assert "Reserved for the group course from " in world.again(other).message
    assert world.again(own).phase == "STARTING"
    assert AuditEvent.objects.get(action="reservation.create").facts["group"] == "course"


def test_a_group_is_named_instead_of_a_namespace_and_stays_while_something_is_reserved_for_it(
    world, now, ada, admin, console, client, course, signed_in, django_assert_max_num_queries
):
    mine, api = Namespace.objects.get(owner=ada), signed_in(admin)
    for wrong in ({"namespace": ""}, {"group": "course"}, {"namespace": "", "group": "nothing"}):
        assert api.post(API, body(mine, now) | wrong, format="json").status_code == 400
    said = {
        "engine": "staged", "namespace": "", "group": "course", "cpu": "2", "extended": "", "reason": "",
        "begins_at": f"{now - HOUR:%Y-%m-%dT%H:%M}", "ends_at": f"{now + HOUR:%Y-%m-%dT%H:%M}",
    }  # fmt: skip
    assert console.post(PAGE, said).status_code == 302
    with django_assert_max_num_queries(12):
        assert "course" in console.get(PAGE).content.decode()
    with pytest.raises(Conflict, match="Something is reserved for the group course"):
        node_remove(node=_emptied(course), reason="", actor=admin)
    ShareNode.objects.create(namespace=mine, parent=course)
    client.force_login(ada)
    page = client.get(reverse("namespace_use_part", args=[mine.pk])).content.decode()
    assert "Reserved for you and all others in the group <bdi>course</bdi> on staged: 2 cores" in page


def _emptied(group):
    ShareNode.objects.filter(namespace__isnull=False).delete()
    ShareNode.objects.filter(parent=group).delete()
    return group


def test_any_resource_of_the_engine_is_reserved_by_its_name(world, now, ada, admin, console):
    one = Resources(cpu=8, memory=64 << 30, extended={"nvidia.com/mig-1g.5gb": 7})
    world.engine._capacity = type(world.engine._capacity)(one, one, one)
    said = {
        "engine": "staged", "namespace": Namespace.objects.get(owner=ada).slug, "group": "",
        "begins_at": f"{now - HOUR:%Y-%m-%dT%H:%M}", "ends_at": f"{now + HOUR:%Y-%m-%dT%H:%M}",
    }  # fmt: skip
    for wrong, words in (
        ("nvidia.com/mig-1g.5gb=8", "staged has 7 of nvidia.com/mig-1g.5gb"), ("x=many", "x: write a whole number"),
        ("cpu=2", "Use the field for cpu instead"), ("nothing.example/there=1", "has 0 of nothing.example/there"),
    ):  # fmt: skip
        answer = console.post(PAGE, said | {"extended": wrong})
        assert answer.status_code == 400
        assert words in answer.content.decode()
    assert console.post(PAGE, said | {"extended": "nvidia.com/mig-1g.5gb=4"}).status_code == 302
    assert AdvanceReservation.objects.get().amounts == {"nvidia.com/mig-1g.5gb": 4}
    assert "nvidia.com/mig-1g.5gb" in console.get(PAGE).content.decode()


def test_one_that_is_in_force_ends_now(world, now, ada, admin, console):
    mine = Namespace.objects.get(owner=ada)
    one = AdvanceReservation.objects.create(
        engine="staged", namespace=mine, amounts={"cpu": 6}, begins_at=now - HOUR, ends_at=now + HOUR
    )
    assert console.post(f"{PAGE}{one.pk}/end/").status_code == 302
    one.refresh_from_db()
    assert one.ends_at <= timezone.now()
    assert AuditEvent.objects.get(action="reservation.end").facts["ends_at"] == one.ends_at.isoformat()


def test_a_pass_costs_at_most_twenty_statements_with_reservations(world, now, ada):
    for one in fill(world, ada, 60, namespaces=20)[:20]:
        AdvanceReservation.objects.create(
            engine="staged", namespace=one.namespace, amounts={"cpu": 0.1}, begins_at=now, ends_at=now + HOUR
        )
    asked = [sql for sql in statements(lambda: admit_queue("staged", clock=world.clock)) if "INSERT" not in sql]
    assert len(asked) <= 20
