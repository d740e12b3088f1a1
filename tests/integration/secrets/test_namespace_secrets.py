"""Secrets of a namespace over the API: names and facts come out, values only go in."""

from __future__ import annotations

import pytest
from django.core.management import CommandError, call_command

from apps.audit.models import AuditEvent
from apps.namespaces.models import Membership, Namespace, Role
from apps.namespaces.services import team_create
from apps.secrets import sealing
from apps.secrets.delivery import opened
from apps.secrets.models import Secret
from apps.secrets.services import secret_set, secrets_clear

VALUE = "hunter2-hunter2-hunter2"
KEY = "another-secret-key-of-the-portal-0123456789"


@pytest.fixture
def mine(ada) -> Namespace:
    return Namespace.objects.get(owner=ada)


def address(namespace: Namespace, name: str = "") -> str:
    return f"/api/v1/namespaces/{namespace.pk}/secrets/" + (f"{name}/" if name else "")


def put(client, namespace, name="TOKEN", **body):
    return client.put(address(namespace, name), {"value": VALUE} | body if "kind" not in body else body)


def test_a_value_goes_in_and_never_out(ada, mine, with_token):
    client = with_token(ada)
    made = put(client, mine, description="for the registry")
    assert made.status_code == 201
    answers = [made, client.get(address(mine)), client.get(address(mine, "TOKEN"))]
    assert all(VALUE not in one.content.decode() for one in answers)
    (row,) = answers[1].json()["results"]
    assert (row["name"], row["size"], row["changed_by"], row["last_used_at"]) == ("TOKEN", len(VALUE), "ada", None)
    assert row["description"] == "for the registry"
    assert put(client, mine, value="other-value").status_code == 200
    assert client.get(address(mine, "TOKEN")).json()["description"] == "for the registry"
    assert opened(Secret.objects.get()) == b"other-value"


def test_nothing_of_a_value_is_in_the_database_or_the_audit(ada, mine, with_token):
    put(with_token(ada), mine)
    with_token(ada).delete(address(mine, "TOKEN"))
    rows = AuditEvent.objects.filter(action__startswith="secret.").order_by("pk")
    assert [(row.action, row.facts["name"]) for row in rows] == [
        ("secret.create", "TOKEN"),
        ("secret.delete", "TOKEN"),
    ]
    assert all(VALUE not in str(row.facts) for row in rows)
    secret, _ = secret_set(namespace=mine, name="A", value=VALUE, actor=ada)
    assert VALUE.encode() not in bytes(secret.sealed)
    first = bytes(secret.sealed)
    again, _ = secret_set(namespace=mine, name="A", value=VALUE, actor=ada)
    assert bytes(again.sealed) != first, "a nonce of its own"


def test_viewers_see_names_and_strangers_nothing(ada, bob, admin, mine, with_token):
    team = team_create(slug="vision", title="", manager=ada, actor=admin)
    put(with_token(ada), team)
    assert with_token(bob).get(address(team)).status_code == 404
    assert put(with_token(bob), team).status_code == 404
    Membership.objects.create(namespace=team, user=bob, role=Role.VIEWER)
    assert [one["name"] for one in with_token(bob).get(address(team)).json()["results"]] == ["TOKEN"]
    assert put(with_token(bob), team).status_code == 403
    assert with_token(bob).delete(address(team, "TOKEN")).status_code == 403
    assert with_token(ada, "jobs").get(address(team)).status_code == 403
    assert with_token(ada, "read").get(address(team)).status_code == 200


@pytest.mark.parametrize(
    ("name", "body", "field"),
    [
        ("1TOKEN", {"value": "x"}, "name"),
        ("TO-KEN", {"value": "x"}, "name"),
        ("T" * 129, {"value": "x"}, "name"),
        ("TOKEN", {"value": ""}, "value"),
        ("TOKEN", {}, "value"),
        ("TOKEN", {"value": "x" * ((64 << 10) + 1)}, "value"),
        ("TOKEN", {"value": "x", "kind": "s3"}, "access_key"),
        ("TOKEN", {"kind": "s3", "access_key": "a b", "secret_key": "x"}, "access_key"),
        ("TOKEN", {"value": "x", "access_key": "a"}, "access_key"),
        ("TOKEN", {"value": "x", "description": "d" * 501}, "description"),
        ("TOKEN", {"value": "x", "scope": "all"}, "scope"),
    ],
)
def test_what_cannot_be_a_secret_is_refused_without_its_value(ada, mine, with_token, name, body, field):
    answer = with_token(ada).put(address(mine, name), body)
    assert answer.status_code == 400, answer.content
    assert field in {one["field"] for one in answer.json()["errors"]}
    assert not Secret.objects.exists()


def test_a_value_with_a_nul_is_refused(ada, mine, with_token):
    answer = with_token(ada).put(address(mine, "TOKEN"), {"value": "a\0b"})
    assert answer.status_code == 400
    assert not Secret.objects.exists()


def test_a_namespace_has_a_bounded_number_and_a_user_a_bounded_rate(ada, mine, with_token, settings):
    settings.YARDMASTER_SECRETS_PER_NAMESPACE = 2
    settings.YARDMASTER_SECRET_CHANGES = 4
    client = with_token(ada)
    assert [put(client, mine, name).status_code for name in ("A", "B", "C", "A", "A")] == [201, 201, 409, 200, 429]


def test_credentials_keep_their_kind(ada, mine, with_token):
    keys = {"kind": "s3", "access_key": "AKIA0", "secret_key": "abc/def+"}
    client = with_token(ada)
    assert put(client, mine, "BUCKET", **keys).status_code == 201
    assert put(client, mine, "BUCKET").status_code == 409
    assert client.get(address(mine, "BUCKET")).json()["kind"] == "s3"


def test_after_a_change_of_the_key_values_are_encrypted_again(ada, mine, settings, capsys):
    before = settings.SECRET_KEY
    secret, _ = secret_set(namespace=mine, name="A", value=VALUE, actor=ada)
    settings.SECRET_KEY = KEY
    with pytest.raises(sealing.CannotOpen, match="another secret key"):
        opened(Secret.objects.get())
    with pytest.raises(CommandError, match="ada/A"):
        call_command("rotate_secrets")
    settings.YARDMASTER_EARLIER_SECRET_KEYS = [before]
    assert opened(Secret.objects.get()) == VALUE.encode()
    call_command("rotate_secrets")
    settings.YARDMASTER_EARLIER_SECRET_KEYS = []
    assert opened(Secret.objects.get()) == VALUE.encode()
    assert Secret.objects.get().key_id != secret.key_id
    assert "Encrypted 1 secrets again." in capsys.readouterr().out


def test_a_value_that_was_moved_to_another_row_does_not_open(ada, mine):
    one, _ = secret_set(namespace=mine, name="A", value=VALUE, actor=ada)
    other, _ = secret_set(namespace=mine, name="B", value="something", actor=ada)
    Secret.objects.filter(pk=other.pk).update(sealed=one.sealed)
    with pytest.raises(sealing.CannotOpen, match="changed in the database"):
        opened(Secret.objects.get(name="B"))
    Secret.objects.filter(pk=other.pk).update(sealed=b"short")
    with pytest.raises(sealing.CannotOpen):
        opened(Secret.objects.get(name="B"))


def test_a_removed_namespace_keeps_no_secrets(ada, admin, mine):
    secret_set(namespace=mine, name="A", value=VALUE, actor=ada)
    assert secrets_clear(mine, admin) == 1
    assert not Secret.objects.exists()


def test_the_description_of_the_api_marks_values_as_write_only(client, ada):
    client.force_login(ada)
    found = client.get("/api/v1/schema/?format=json").json()["components"]["schemas"]
    fields = found["NewSecretRequest"]["properties"]
    assert all(fields[name]["writeOnly"] for name in ("value", "access_key", "secret_key"))
    assert "value" not in found["Secret"]["properties"]


def test_the_page_shows_names_and_never_a_value(client, ada, mine):
    client.force_login(ada)
    page = f"/namespaces/{mine.pk}/secrets/"
    assert "No secrets yet" in client.get(page).content.decode()
    sent = client.post(page, {"name": "TOKEN", "kind": "text", "value": f"{VALUE}\r\nsecond line"}, follow=True)
    assert "TOKEN" in sent.content.decode()
    assert VALUE not in sent.content.decode()
    assert opened(Secret.objects.get()) == f"{VALUE}\nsecond line".encode()
    refused = client.post(page, {"name": "not a name", "kind": "text", "value": VALUE})
    assert VALUE not in refused.content.decode()
    assert "digits and _" in refused.content.decode()
    twice = client.post(page, {"name": "TOKEN", "kind": "text", "value": "new-value-here"})
    assert "already exists" in twice.content.decode()
    client.post(f"{page}TOKEN/replace/", {"value": "new-value-here"})
    assert opened(Secret.objects.get()) == b"new-value-here"
    client.post(f"{page}TOKEN/delete/")
    assert not Secret.objects.exists()
