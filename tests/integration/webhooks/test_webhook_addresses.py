"""Webhooks over the API and by page: managers alone, secrets shown once, foreign ids unknown, everything audited."""

from __future__ import annotations

import pytest
from django.test import Client

from apps.audit.models import AuditEvent
from apps.namespaces.models import Membership, Role
from apps.namespaces.services import team_create
from apps.secrets.services import secrets_reseal
from apps.webhooks import services
from apps.webhooks.models import Delivery, Webhook
from apps.webhooks.sealed_parts import parts_of, webhooks_reseal
from tests.integration.webhooks.conftest import deliver_all, hook

pytestmark = pytest.mark.django_db
URL = "https://ci.example.org/in?token=secret-of-the-address"
UNKNOWN = "01890a5d-ac96-774b-bcce-b302099a8057"


def base(namespace) -> str:
    return f"/api/v1/namespaces/{namespace.pk}/webhooks/"


def create(client, namespace, **more):
    body = {"url": URL, "events": ["job.failed", "job.launched"]}
    return client.post(base(namespace), body | more)


def test_a_secret_is_shown_once_and_an_address_masked(ada, mine, with_token):
    client = with_token(ada)
    made = create(client, mine, description="CI")
    assert made.status_code == 201
    secret = made.json()["secret"]
    assert secret.startswith("whsec_")
    assert made.json()["events"] == ["job.launched", "job.failed"]
    address = f"{base(mine)}{made.json()['id']}/"
    seen = [client.get(address), client.get(base(mine)), client.patch(address, {"description": "other"})]
    assert all(one.status_code == 200 for one in seen)
    assert not any(text in one.content.decode() for one in seen for text in (secret, "secret-of-the-address"))
    assert seen[0].json()["address"] == "https://ci.example.org/in?…"
    row = Webhook.objects.get()
    assert secret.encode() not in bytes(row.sealed)
    rotated = client.post(f"{address}secret/").json()
    assert rotated["secret"] != secret
    assert parts_of(Webhook.objects.get()).earlier == secret
    audit = str([event.facts for event in AuditEvent.objects.all()])
    assert not any(text in audit for text in (secret, rotated["secret"], "secret-of-the-address"))


def test_every_change_is_audited_with_before_and_after(ada, mine, with_token, receiver, clock):
    client = with_token(ada)
    made = create(client, mine, url=receiver.url()).json()
    address = f"{base(mine)}{made['id']}/"
    client.patch(address, {"events": ["job.stopped"], "is_active": False})
    test = client.post(f"{address}test/")
    assert test.status_code == 202
    deliver_all(Webhook.objects.get(), clock)
    (log,) = client.get(f"{address}deliveries/").json()["results"]
    assert (log["event"], log["state"], log["status"], log["id"]) == ("test", "delivered", 200, test.json()["id"])
    again = client.post(f"{address}deliveries/{log['id']}/redeliver/").json()
    assert (again["event_id"], again["id"] == log["id"]) == (log["event_id"], False)
    client.delete(address)
    rows = AuditEvent.objects.filter(action__startswith="webhook.").order_by("pk")
    assert [row.action.split(".")[1] for row in rows] == ["create", "change", "test", "redeliver", "delete"]
    facts = rows[1].facts
    assert (facts["events"], facts["events_before"]) == (["job.stopped"], ["job.launched", "job.failed"])
    assert (facts["active"], facts["active_before"]) == (False, True)


@pytest.mark.parametrize("role", [Role.VIEWER, Role.MEMBER, None])
def test_only_managers_see_and_change_them(admin, ada, bob, role, with_token, signed_in):
    team = team_create(slug="vision", title="", manager=ada, actor=admin)
    webhook, _ = hook(team, ada, URL)
    if role:
        Membership.objects.create(namespace=team, user=bob, role=role)
    expected = 403 if role else 404
    api, pages = with_token(bob), signed_in(bob)
    one = f"{base(team)}{webhook.pk}/"
    for path in (base(team), one, f"{one}deliveries/"):
        assert api.get(path).status_code == expected
        assert pages.get(path.removeprefix("/api/v1")).status_code in (expected, 404)
    for path in (f"{one}secret/", f"{one}test/"):
        assert api.post(path).status_code == expected
        assert pages.post(path.removeprefix("/api/v1")).status_code == expected
    assert api.patch(one, {"description": "x"}).status_code == expected
    assert api.delete(one).status_code == expected
    assert Webhook.objects.get().description == ""


def test_a_webhook_of_another_namespace_is_unknown(ada, bob, mine, with_token, signed_in):
    foreign, _ = hook(bob.personal_namespace, bob, URL)
    own, _ = hook(mine, ada, URL)
    delivery = services.send_test(webhook=foreign, actor=bob)
    client = with_token(ada)
    for webhook_id in (foreign.pk, UNKNOWN):
        assert client.get(f"{base(mine)}{webhook_id}/").status_code == 404
        assert client.delete(f"{base(mine)}{webhook_id}/").status_code == 404
    path = f"{base(mine)}{own.pk}/deliveries/{delivery.pk}/redeliver/"
    assert client.post(path).status_code == 404
    assert signed_in(ada).post(path.removeprefix("/api/v1")).status_code == 404


def test_what_cannot_be_sent_to_is_said_by_field(ada, mine, with_token, settings):
    client = with_token(ada)
    for url in ("ftp://x.example.org/", "https://a@b.example.org/", "https://x.example.org/a\r\nHost: b"):
        answer = create(client, mine, url=url)
        assert answer.status_code == 400, url
        (error,) = answer.json()["errors"]
        assert (error["field"], bool(error["remedy"])) == ("url", True)
    assert create(client, mine, events=["job.exploded"]).json()["errors"][0]["value"] == "job.exploded"
    assert create(client, mine, events=[]).status_code == 400
    assert not Webhook.objects.exists()


def test_a_namespace_has_twenty_and_tests_are_limited(ada, mine, with_token, settings):
    client = with_token(ada)
    ids = [create(client, mine).json()["id"] for _ in range(20)]
    refused = create(client, mine)
    assert (refused.status_code, refused.json()["code"]) == (409, "too_many_webhooks")
    answers = [client.post(f"{base(mine)}{ids[0]}/test/").status_code for _ in range(services.TESTS + 1)]
    assert answers[-1] == 429
    assert Delivery.objects.count() == services.TESTS


def test_the_pages_show_a_secret_once_and_need_a_csrf_token(ada, mine, signed_in):
    client = signed_in(ada)
    path = f"/namespaces/{mine.pk}/webhooks/"
    assert "No webhooks yet" in client.get(path).content.decode()
    form = {"url": URL, "format": "json", "events": ["job.failed"], "description": "<b>CI</b>"}
    text = client.post(path, form, format="multipart").content.decode()
    webhook = Webhook.objects.get()
    secret = parts_of(webhook).secret
    assert secret in text
    assert "<b>CI" not in text
    one = f"{path}{webhook.pk}/"
    assert secret not in client.get(one).content.decode()
    changed = client.post(one, {"events": ["job.failed"], "description": "x"}, format="multipart")
    assert changed.status_code == 302
    webhook.refresh_from_db()
    assert (webhook.is_active, parts_of(webhook).url) == (False, URL)
    assert client.post(f"{one}test/").status_code == 302
    services.deliveries_drop(webhook, "for the test")
    text = client.get(one).content.decode()
    assert "for the test" in text
    assert "Send again" in text
    delivery = Delivery.objects.get()
    assert client.post(f"{one}deliveries/{delivery.pk}/redeliver/").status_code == 302
    assert parts_of(webhook).secret not in client.get(one).content.decode()
    assert "Secret" in client.post(f"{one}secret/").content.decode()
    careful = Client(enforce_csrf_checks=True)
    careful.force_login(ada)
    for action in ("secret/", "test/", "delete/"):
        assert careful.post(f"{one}{action}").status_code == 403
        assert client.get(f"{one}{action}").status_code == 405
    bad = client.post(path, form | {"url": "https://10.0.0.1.:1/"}, format="multipart").content.decode()
    assert "not the name of a host" in bad
    assert client.post(f"{one}delete/").status_code == 302
    assert not Webhook.objects.exists()


def test_a_new_secret_key_seals_them_again(ada, mine, settings):
    _, secret = hook(mine, ada, URL)
    settings.YARDMASTER_EARLIER_SECRET_KEYS = [settings.SECRET_KEY]
    settings.SECRET_KEY = "another-secret-key-of-the-portal-0123456789"
    assert secrets_reseal() == (1, [])
    assert webhooks_reseal() == (0, [])
    settings.YARDMASTER_EARLIER_SECRET_KEYS = []
    assert parts_of(Webhook.objects.get()).secret == secret
