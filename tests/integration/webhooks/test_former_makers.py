"""What former managers have left: it goes on, is shown to the managers, mailed to them, and revoked or kept."""

from __future__ import annotations

import json
from datetime import timedelta

import pytest
from django.core import mail
from django.test import Client
from django.utils import timezone

from apps.accounts.models import PersonalToken, User
from apps.accounts.services import token_create, user_change
from apps.audit.models import AuditEvent
from apps.namespaces.invitations import Wish, invitation_create, invitation_look
from apps.namespaces.models import Namespace, Role
from apps.namespaces.service_accounts import service_account_create, service_token_create
from apps.namespaces.services import member_add, member_change, member_remove, team_create
from apps.notifications.former_managers import former_managers_note
from apps.removals.preview import team_preview
from apps.webhooks import former_makers
from apps.webhooks.former_makers import left_by_former
from apps.webhooks.models import Webhook
from apps.webhooks.services import webhook_create


@pytest.fixture
def team(ada, bob, settings):
    """Ada and Bob manage it. Bob has made a webhook and a token of a service account."""
    settings.YARDMASTER_SENDS_MAIL = True
    User.objects.filter(pk=ada.pk).update(email="ada@example.org")
    made = team_create(slug="vision", title="", manager=ada, actor=ada)
    member_add(namespace=made, user=bob, role=Role.MANAGER, actor=ada)
    webhook_create(namespace=made, actor=bob, url="https://ci.example.org/hook", events=["job.failed"])
    account = service_account_create(namespace=made, name="nightly", role=Role.MEMBER, description="", actor=ada)
    service_token_create(account=account, name="bobs", scopes=["jobs"], expires_in=timedelta(days=9), actor=bob)
    service_token_create(account=account, name="adas", scopes=["jobs"], expires_in=timedelta(days=9), actor=ada)
    return made


@pytest.fixture
def manager(ada) -> Client:
    client = Client()
    client.force_login(ada)
    return client


def path_of(team, verb: str = "") -> str:
    return f"/namespaces/{team.pk}/former-managers/{verb}"


def test_while_the_maker_manages_nothing_is_left(team, manager):
    assert left_by_former(team) == []
    assert b"Nothing to review" in manager.get(path_of(team)).content
    assert manager.get(path_of(team, "notice/")).content.strip() == b""


@pytest.mark.parametrize("how", ["demoted", "removed", "locked"])
def test_what_a_former_manager_made_is_shown_and_mailed(team, manager, ada, bob, how):
    if how == "demoted":
        member_change(namespace=team, user=bob, role=Role.MEMBER, actor=ada)
    elif how == "removed":
        member_remove(namespace=team, user=bob, actor=ada)
    else:
        user_change(user=bob, actor=None, is_active=False)
    page = manager.get(path_of(team)).content.decode()
    assert "bob</bdi>, who is no longer a manager" in page
    assert "ci.example.org" in page
    assert ">bobs<" in page
    assert ">adas<" not in page
    assert b"still works" in manager.get(path_of(team, "notice/")).content
    assert b"who is no longer a manager" in manager.get(f"/namespaces/{team.pk}/webhooks/").content
    account = team.service_accounts.get()
    assert b"who is no longer a manager" in manager.get(f"/namespaces/{team.pk}/service-accounts/{account.pk}/").content
    assert former_managers_note() == 1
    assert [one.bcc for one in mail.outbox] == [["ada@example.org"]]
    assert "token bobs of nightly@vision" in mail.outbox[0].body
    assert path_of(team) in mail.outbox[0].body
    assert Webhook.objects.get().is_active, "it goes on"


def test_what_managers_made_before_it_takes_no_place_in_the_list(team, ada, bob, monkeypatch):
    first, last = ("https://ci.example.org/a", "https://ci.example.org/b")
    webhook_create(namespace=team, actor=ada, url=first, events=["job.failed"])
    gone = User.objects.create(username="gone")
    webhook_create(namespace=team, actor=gone, url=last, events=["job.failed"])
    Webhook.objects.filter(created_by=gone).update(created_by=None)
    PersonalToken.objects.filter(name="adas").update(made_by=None, made_by_name="")  # by who made the account
    member_change(namespace=team, user=bob, role=Role.MEMBER, actor=ada)
    Webhook.objects.filter(created_by=bob).update(created_by=ada)
    monkeypatch.setattr(former_makers, "MOST_SHOWN", 1)
    (bobs, removed) = left_by_former(team)
    assert ([one.name for one in bobs.tokens], bobs.webhooks) == (["bobs"], [])
    assert (len(removed.webhooks), removed.name) == (1, former_makers.REMOVED)


def test_an_administrator_is_no_former_manager(team, ada, bob):
    User.objects.filter(pk=bob.pk).update(is_staff=True)
    member_change(namespace=team, user=bob, role=Role.MEMBER, actor=ada)
    assert left_by_former(team) == []
    assert former_managers_note() == 1
    assert mail.outbox == []


def test_all_of_it_is_revoked_in_one_click(team, manager, ada, bob):
    member_change(namespace=team, user=bob, role=Role.MEMBER, actor=ada)
    manager.post(path_of(team, "revoke/"), {"maker": str(bob.pk)})
    assert not Webhook.objects.get().is_active
    assert [one.name for one in PersonalToken.objects.filter(user__is_service=True)] == ["adas"]
    event = AuditEvent.objects.get(action="token.revoke")
    assert event.namespace_id == team.pk
    assert manager.post(path_of(team, "revoke/"), {"maker": str(bob.pk)}).status_code == 404


def test_it_is_kept_under_another_name(team, manager, ada, bob):
    member_change(namespace=team, user=bob, role=Role.MEMBER, actor=ada)
    manager.post(path_of(team, "keep/"), {"maker": str(bob.pk)})
    assert left_by_former(team) == []
    assert Webhook.objects.get().created_by == ada
    facts = AuditEvent.objects.get(action="namespace.answer_for").facts
    assert facts == {"webhooks": 1, "tokens": 1, "maker": "ada", "maker_before": "bob"}


def test_what_a_removed_user_made_is_still_theirs(team, manager, ada, bob):
    member_remove(namespace=team, user=bob, actor=ada)
    Namespace.objects.filter(owner=bob).delete()
    bob.delete()
    left = left_by_former(team)
    assert [(one.maker_id, len(one.webhooks), len(one.tokens)) for one in left] == [(None, 1, 1)]
    manager.post(path_of(team, "revoke/"), {"maker": ""})
    assert left_by_former(team) == []


def test_members_and_strangers_may_not(team, ada, bob):
    member_change(namespace=team, user=bob, role=Role.MEMBER, actor=ada)
    client = Client()
    client.force_login(bob)
    assert client.get(path_of(team)).status_code == 403
    assert client.get(path_of(team, "notice/")).content.strip() == b""
    for verb in ("revoke/", "keep/"):
        assert client.post(path_of(team, verb), {"maker": str(bob.pk)}).status_code == 403
    member_remove(namespace=team, user=bob, actor=ada)
    assert client.get(path_of(team)).status_code == 404
    assert client.post(path_of(team, "revoke/"), {"maker": "x"}).status_code == 404


def test_a_personal_token_loses_the_rights_with_its_owner(team, ada, bob):
    _, secret = token_create(user=bob, name="script", scopes=["admin"], expires_in=None)
    client = Client(headers={"authorization": f"Bearer {secret}"})
    path = f"/api/v1/namespaces/{team.pk}/members/"
    body = json.dumps({"username": "ada", "role": "manager"})
    assert client.post(path, body, "application/json").status_code < 300
    member_change(namespace=team, user=bob, role=Role.MEMBER, actor=ada)
    assert client.post(path, body, "application/json").status_code == 403


def test_an_invitation_of_a_former_manager_is_shown_as_refused(team, manager, ada, bob, settings):
    settings.YARDMASTER_SIGN_UP = "open"
    _, token = invitation_create(wish=Wish(namespace=team, role=Role.MEMBER), actor=bob)
    assert invitation_look(token, timezone.now()) is not None
    member_change(namespace=team, user=bob, role=Role.MEMBER, actor=ada)
    assert invitation_look(token, timezone.now()) is None
    page = manager.get(f"/namespaces/{team.pk}/invitations/").content.decode()
    assert ">refused<" in page
    assert "its creator is no longer a manager" in page


def test_the_preview_of_a_removal_counts_webhooks_and_service_accounts(team):
    preview = team_preview(team)
    assert (preview.found["webhooks"], preview.found["service_accounts"]) == (1, 1)
    assert all(one.removed["webhooks"] == 1 for one in preview.fates), "also where data are kept"
