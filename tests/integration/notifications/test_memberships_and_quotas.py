"""People are told of their memberships, and managers of quotas that fill up: once, as each has chosen."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.core import mail

from apps.administration.quota_warnings import quota_warnings_sweep
from apps.audit.models import AuditEvent
from apps.namespaces.invitations import Wish, invitation_create, invitation_join
from apps.namespaces.models import Namespace, Role
from apps.namespaces.services import member_add, member_change, member_remove, members_add, team_create
from apps.notifications.choosing import exception_choose, notices_choose
from apps.notifications.digests import digests_note
from apps.notifications.memberships import memberships_note
from apps.notifications.models import Announcement, Note, QuotaLevel
from apps.notifications.worker import announcement_send
from apps.uploads.models import StorageAccount
from yardmaster.outgoing.notices import Choice, Pace, Way


@pytest.fixture
def team(world, ada) -> Namespace:
    return team_create(slug="vision", title="", manager=ada, actor=ada)


@pytest.fixture
def bob(django_user_model):
    return django_user_model.objects.create_user("bob", "bob@example.org", "x")


def send_all(world) -> None:
    for one in Announcement.objects.all():
        announcement_send(one.pk, clock=world.clock)


def subjects(world) -> list[tuple[str, str]]:
    send_all(world)
    return [(one.to[0], one.subject) for one in mail.outbox]


def store(namespace: Namespace, used: int) -> None:
    StorageAccount.objects.update_or_create(namespace=namespace, defaults={"used": used})


def limit(namespace: Namespace, **limits) -> None:
    type(namespace.quota).objects.filter(pk=namespace.pk).update(**limits)


def test_a_person_is_told_when_they_are_added_get_another_role_and_are_removed(world, ada, team, bob):
    member_add(namespace=team, user=bob, role=Role.VIEWER, actor=ada)
    member_change(namespace=team, user=bob, role=Role.MEMBER, actor=ada)
    assert memberships_note() == 2
    member_remove(namespace=team, user=bob, actor=ada)
    assert (memberships_note(), memberships_note()) == (1, 0)
    assert subjects(world) == [
        ("bob@example.org", "[Yardmaster] You are a viewer of vision"),
        ("bob@example.org", "[Yardmaster] You are a member of vision now"),
        ("bob@example.org", "[Yardmaster] You were removed from vision"),
    ]
    added, changed, removed = (one.body for one in mail.outbox)
    assert f"/namespaces/{team.pk}/" in added
    assert "by ada." in added
    assert "from viewer to member by ada." in changed
    assert str(team.pk) not in removed, "an address that they may not open"
    assert all("Stop e-mails of this kind: " in one.body for one in mail.outbox)


def test_of_what_they_did_themselves_no_one_is_told(world, ada, team, bob):
    _, token = invitation_create(wish=Wish(namespace=team, role=Role.MEMBER), actor=ada)
    invitation_join(token=token, user=bob)
    member_change(namespace=team, user=bob, role=Role.MANAGER, actor=ada)
    member_remove(namespace=team, user=ada, actor=ada)
    assert memberships_note() == 1
    assert subjects(world) == [("bob@example.org", "[Yardmaster] You are a manager of vision now")]


def test_a_change_that_is_none_is_not_told(world, ada, team, bob):
    members_add(namespace=team, usernames=["bob", "bob"], role=Role.VIEWER, actor=ada)
    member_add(namespace=team, user=bob, role=Role.VIEWER, actor=ada)
    member_change(namespace=team, user=bob, role=Role.VIEWER, actor=ada)
    assert memberships_note() == 1


def test_a_removal_is_told_in_a_digest_too_though_the_namespace_is_out_of_sight(world, ada, team, bob):
    notices_choose(bob, {"member.removed": Choice(Way.MAIL, Pace.DAILY), "member.added": Choice(Way.NONE)})
    member_add(namespace=team, user=bob, role=Role.VIEWER, actor=ada)
    member_remove(namespace=team, user=bob, actor=ada)
    memberships_note()
    assert [one.kind for one in Note.objects.all()] == ["member.removed"]
    world.now += timedelta(days=3)
    digests_note(world.now)
    assert subjects(world) == [("bob@example.org", "[Yardmaster] 1 notification")]
    assert "You were removed from vision" in mail.outbox[0].body


def test_managers_are_told_once_as_storage_passes_each_level(world, ada, team, bob):
    member_add(namespace=team, user=bob, role=Role.MEMBER, actor=ada)
    limit(team, storage=1_000 << 20)
    for used, told in [(500, 0), (800, 1), (801, 0), (999, 0), (1_000, 1), (1_001, 0), (960, 0), (700, 0), (850, 1)]:
        store(team, used << 20)
        assert quota_warnings_sweep(world.now) == told, used
    assert subjects(world) == [
        ("ada@example.org", "[Yardmaster] Storage of vision has reached 80 %"),
        ("ada@example.org", "[Yardmaster] Storage of vision is used up"),
        ("ada@example.org", "[Yardmaster] Storage of vision has reached 80 %"),
    ]
    assert "800 MiB of 1000 MiB" in mail.outbox[0].body
    assert "Uploads are refused" in mail.outbox[1].body
    facts = [one.facts["level"] for one in AuditEvent.objects.filter(action="quota.warn").order_by("pk")]
    assert facts == [80, 100, 80]


def test_a_limit_that_is_raised_a_little_is_told_of_again_as_it_fills_up(world, ada):
    """What jobs hold goes up and down: only a much smaller use, or a higher limit, begins from the start."""
    mine, job = ada.personal_namespace, world.launch(ada)
    limit(mine, cpu=3)
    world.until_running(job)
    assert quota_warnings_sweep(world.now) == 1
    limit(mine, cpu=3.5)
    assert [quota_warnings_sweep(world.now) for _ in range(2)] == [0, 0], "less than before"
    assert QuotaLevel.objects.get().level == 80
    limit(mine, cpu=3)
    assert [quota_warnings_sweep(world.now) for _ in range(2)] == [1, 0]
    limit(mine, cpu=2.5)
    assert quota_warnings_sweep(world.now) == 0
    limit(mine, cpu=3)
    assert quota_warnings_sweep(world.now) == 0, "as full as it was"


def test_a_quota_that_jobs_fill_is_told_once(world, ada):
    limit(ada.personal_namespace, cpu=3)
    job = world.launch(ada)
    world.until_running(job)
    assert [quota_warnings_sweep(world.now) for _ in range(3)] == [1, 0, 0]
    assert subjects(world) == [("ada@example.org", "[Yardmaster] CPU cores of ada is used up")]
    assert QuotaLevel.objects.get().resource == "cpu"
    limit(ada.personal_namespace, cpu=None)
    assert quota_warnings_sweep(world.now) == 0
    assert not QuotaLevel.objects.exists()


def test_a_limit_of_none_and_no_limit_are_never_told(world, ada, team):
    limit(team, storage=0, gpus=0, cpu=None)
    store(team, 1 << 30)
    assert quota_warnings_sweep(world.now) == 0


def test_each_manager_hears_as_they_have_chosen_for_the_namespace(world, ada, team, bob):
    member_add(namespace=team, user=bob, role=Role.MANAGER, actor=ada)
    exception_choose(ada, "quota.full", team, Choice(Way.NONE))
    limit(team, storage=100)
    store(team, 100)
    quota_warnings_sweep(world.now)
    assert subjects(world) == [("bob@example.org", "[Yardmaster] Storage of vision is used up")]


def test_a_sweep_over_many_namespaces_asks_no_more(world, ada, django_assert_max_num_queries):
    for number in range(5):
        store(team_create(slug=f"team-{number}", title="", manager=ada, actor=ada), 1)
    with django_assert_max_num_queries(8):
        quota_warnings_sweep(world.now)
