"""Notifications as signed JSON to a program of one's own: bodies, signatures, digests, the secret shown once."""

from __future__ import annotations

import hashlib
import hmac
import json
from datetime import timedelta

import pytest

from apps.accounts.models import User
from apps.audit.models import AuditEvent
from apps.errors import Conflict, NotFound
from apps.notifications.choosing import notices_choose
from apps.notifications.digests import digests_note
from apps.notifications.models import Announcement, Event
from apps.notifications.own_chat import own_chat_secret, own_chat_set, own_chat_test
from apps.notifications.services import notice_write
from apps.notifications.telling import announce
from apps.webhooks.models import Delivery, Format, Webhook
from apps.webhooks.services import webhook_change
from apps.webhooks.worker import webhook_deliver
from tests.integration.webhooks.conftest import hook
from tests.real.postgres import postgres_cluster, postgres_db
from yardmaster.outgoing.notices import Choice, Pace, Way
from yardmaster.outgoing.posting import Reply

__all__ = ["postgres_cluster", "postgres_db"]

MINE = "https://ada.example.org/yardmaster?key=of-ada"
PAGE, API = "/account/notifications/", "/api/v1/account/notifications/"


class Program:
    """What a person's own program gets."""

    def __init__(self) -> None:
        self.got: list[tuple[dict[str, str], bytes]] = []

    def __call__(self, target, body, headers, policy) -> Reply:
        self.got.append((headers, body))
        return Reply(200, "ok", "")

    @property
    def last(self) -> dict:
        return json.loads(self.got[-1][1])

    def signed_by(self, *secrets: str) -> bool:
        """As `docs/webhooks.md` tells programs to verify it."""
        headers, body = self.got[-1]
        signed = headers["Yardmaster-Timestamp"].encode() + b"." + body
        expected = [f"v1={hmac.new(one.encode(), signed, hashlib.sha256).hexdigest()}" for one in secrets]
        return headers["Yardmaster-Signature"].split(",") == expected


@pytest.fixture
def program() -> Program:
    return Program()


def fail(world, ada, name: str) -> None:
    notice_write(world.launch(ada, name=name), Event.FAILED, world.now)


def test_a_notification_is_signed_json_with_the_secret_that_was_shown(world, ada, program):
    mine, secret = own_chat_set(user=ada, url=MINE, format=Format.JSON)
    notices_choose(ada, {"job.failed": Choice(Way.CHAT)})
    fail(world, ada, "digits")
    webhook_deliver(mine.pk, send=program)
    assert program.signed_by(secret)
    assert not program.signed_by("whsec_another")
    headers, body = program.got[0][0], program.last
    assert (headers["Yardmaster-Event"], body["event"], body["version"]) == ("job.failed", "job.failed", 1)
    assert headers["Yardmaster-Delivery"] == str(Delivery.objects.get().pk)
    assert body["namespace"] == {"id": str(ada.personal_namespace.pk), "name": ada.personal_namespace.slug}
    assert (body["job"]["name"], body["job"]["owner"], body["job"]["attempt"]) == ("digits", "ada", 1)
    assert "/jobs/" in body["job"]["url"]


def test_what_is_not_of_a_job_says_its_kind_its_title_and_where_to_read_on(world, ada, program):
    mine, secret = own_chat_set(user=ada, url=MINE, format=Format.JSON)
    notices_choose(ada, {"budget.spent": Choice(Way.CHAT)})
    url, place = "https://portal.example.org/namespaces/1/", ada.personal_namespace
    announce(
        ada, "budget.spent", place, key="budget.spent 1", subject="Used up", text="Text", url=url, now=world.now
    )  # fmt: skip
    webhook_deliver(mine.pk, send=program)
    assert program.signed_by(secret)
    assert program.got[0][0]["Yardmaster-Event"] == "budget.spent"
    assert program.last.pop("id")
    expected = {"version": 1, "event": "budget.spent", "at": world.now.isoformat(), "title": "Used up", "url": url}
    found = {name: value for name, value in program.last.items() if name not in ("id", "namespace")}
    assert (found, program.last["namespace"]["name"]) == (expected, place.slug)


def test_a_digest_is_one_message_with_a_list(world, ada, program):
    mine, secret = own_chat_set(user=ada, url=MINE, format=Format.JSON)
    notices_choose(ada, {"job.failed": Choice(Way.CHAT, Pace.HOURLY), "budget.spent": Choice(Way.CHAT, Pace.HOURLY)})
    for number in range(25):
        fail(world, ada, f"run-{number}")
    announce(ada, "budget.spent", None, key="budget.spent 1", subject="Used up", text="", url="/x", now=world.now)
    world.now += timedelta(hours=2)
    assert digests_note(world.now) == 1
    webhook_deliver(mine.pk, send=program)
    assert program.signed_by(secret)
    body = program.last
    assert (body["event"], body["version"], body["namespace"], body["left_out"]) == ("digest", 1, None, 0)
    assert (body["title"], body["at"]) == ("Yardmaster: 26 notifications", world.now.isoformat())
    assert [one["job"]["name"] for one in body["items"][:25]] == [f"run-{number}" for number in range(25)]
    assert (body["items"][25]["event"], body["items"][25]["title"]) == ("budget.spent", "Used up")
    assert len({one["id"] for one in body["items"]} | {body["id"]}) == 27
    assert (len(program.got), Announcement.objects.count()) == (1, 0)


def test_a_new_secret_signs_beside_the_one_before_for_a_day(world, ada, program):
    mine, first = own_chat_set(user=ada, url=MINE, format=Format.JSON)
    second = own_chat_secret(user=ada)
    assert first != second
    own_chat_test(user=ada)
    webhook_deliver(mine.pk, send=program)
    assert program.signed_by(second, first)
    own_chat_test(user=ada)
    sent_at = Delivery.objects.order_by("pk").last().due_at
    webhook_deliver(mine.pk, clock=lambda: sent_at + timedelta(hours=25), send=program)
    assert program.signed_by(second)


def test_a_chat_has_no_secret_and_without_an_address_there_is_none_to_make(ada, program):
    with pytest.raises(NotFound):
        own_chat_secret(user=ada)
    chat, secret = own_chat_set(user=ada, url="https://hooks.slack.com/services/T/B/x", format=Format.SLACK)
    assert secret == ""
    with pytest.raises(Conflict):
        own_chat_secret(user=ada)
    own_chat_test(user=ada)
    webhook_deliver(chat.pk, send=program)
    assert "Yardmaster-Signature" not in program.got[0][0]


def test_secrets_are_in_no_row_and_no_audit_event(ada):
    _, first = own_chat_set(user=ada, url=MINE, format=Format.JSON)
    second = own_chat_secret(user=ada)
    told = list(AuditEvent.objects.filter(actor_id=ada.pk).order_by("at").values_list("action", "facts"))
    assert [action for action, _ in told[-2:]] == ["notification.chat", "webhook.rotate"]
    assert told[-2][1]["format"] == "json"
    row = Webhook.objects.get()
    for secret in (first, second, "of-ada"):
        assert secret not in str(told)
        assert secret.encode() not in bytes(row.sealed)
        assert secret not in row.shown


def test_the_api_shows_each_secret_once(ada, signed_in):
    me = signed_in(ada)
    assert me.post(f"{API}chat/secret/").status_code == 404
    inside = me.put(f"{API}chat/", {"url": "https://10.0.0.1/x", "format": "json"}, format="json")
    assert (inside.status_code, inside.json()["errors"][0]["code"]) == (400, "address_not_allowed")
    made = me.put(f"{API}chat/", {"url": MINE, "format": "json"}, format="json")
    assert made.status_code == 200, made.json()
    secret = made.json()["secret"]
    assert secret.startswith("whsec_")
    shown = me.get(API)
    assert shown.json()["chat"] == {
        "format": "json", "address": "https://ada.example.org/yardmaster?…", "is_active": True, "off_reason": "",
    }  # fmt: skip
    other = me.post(f"{API}chat/secret/", HTTP_IDEMPOTENCY_KEY="rotate-1").json()
    assert other["secret"].startswith("whsec_")
    assert other["secret"] != secret
    assert other["earlier_until"]
    again = me.post(f"{API}chat/secret/", HTTP_IDEMPOTENCY_KEY="rotate-1")
    assert other["secret"] not in again.content.decode(), "an answer that is repeated has no secret"
    assert me.post(f"{API}chat/test/").status_code == 202
    assert "whsec_" not in me.get(API).content.decode()
    chat = me.put(f"{API}chat/", {"url": "https://hooks.slack.com/services/T/B/x", "format": "slack"}, format="json")
    assert chat.json()["secret"] == ""
    assert me.post(f"{API}chat/secret/").status_code == 409


def test_the_page_sets_a_webhook_up_and_shows_each_secret_once(client, ada):
    client.force_login(ada)
    assert "Webhook (signed JSON)" in client.get(PAGE).content.decode()
    answer = client.post(f"{PAGE}chat/", {"action": "save", "url": MINE, "format": "json"})
    page = answer.content.decode()
    assert (answer.status_code, page.count("whsec_")) == (200, 1)
    assert "no-store" in answer.headers["Cache-Control"]
    page = client.get(PAGE).content.decode()
    assert "whsec_" not in page
    assert "of-ada" not in page
    assert "ada.example.org" in page
    rotated = client.post(f"{PAGE}chat/", {"action": "rotate"}).content.decode()
    assert rotated.count("whsec_") == 1
    assert "whsec_" not in client.get(PAGE).content.decode()
    client.post(f"{PAGE}chat/", {"action": "test"})
    assert Delivery.objects.get().event == "test"
    refused = client.post(
        f"{PAGE}chat/", {"action": "save", "url": "https://127.0.0.1/", "format": "json"}, follow=True
    )
    assert "whsec_" not in refused.content.decode()
    assert Webhook.objects.get().shown == "https://ada.example.org/yardmaster?…"


@pytest.mark.postgres
def test_a_secret_is_rotated_and_a_webhook_changed_where_rows_are_really_locked(postgres_db):
    bob = User.objects.create_user("bob", "bob@example.org")
    _, first = own_chat_set(user=bob, url=MINE, format=Format.JSON)
    assert own_chat_secret(user=bob) != first
    of_namespace, _ = hook(bob.personal_namespace, bob, MINE)
    assert webhook_change(webhook=of_namespace, actor=bob, is_active=False).is_active is False
