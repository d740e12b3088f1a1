"""Data connections by API and pages: registering, rights, bad input, deleting. No cluster is asked here."""

from __future__ import annotations

import uuid
from datetime import timedelta

import pytest
from django.conf import settings as django_settings
from django.utils import timezone

from apps.audit.models import AuditEvent
from apps.connections import services, worker
from apps.connections.models import DataConnection, State
from apps.namespaces.models import Membership, Namespace, Role
from apps.secrets.services import secret_set
from yardmaster.errors import Problem
from yardmaster.ignite.nodes import ignite_policy
from yardmaster.ignite.refusals import NotLooked

FOUND = {
    "caches": [
        {
            "name": "IMAGES", "tables": [], "partitions": 8, "rows": 300, "problem": "",
            "columns": [{"name": "key", "type": "long"}, {"name": "val.label", "type": "String"}],
            "preview": [["1", "cat"], ["2", None]],
        }
    ],
    "count": 1, "notes": [],
}  # fmt: skip


@pytest.fixture
def mine(ada, settings) -> Namespace:
    settings.YARDMASTER_IGNITE_POLICY = ignite_policy(["127.0.0.1"], ["1-65535"])
    namespace = Namespace.objects.get(owner=ada)
    for name in ("CERT", "PW", "USER"):
        secret_set(namespace=namespace, name=name, value=f"value of {name}", actor=ada)
    return namespace


@pytest.fixture
def looked(monkeypatch) -> list:
    """What the worker was asked to look at; it finds `FOUND`, or raises what is put here."""
    asked: list = []
    monkeypatch.setattr(worker, "look", lambda wanted, policy: asked.append(wanted) or FOUND)
    return asked


def address(namespace: Namespace, name: str = "", rest: str = "") -> str:
    return f"/api/v1/namespaces/{namespace.pk}/connections/" + (f"{name}/" if name else "") + rest


def register(client, namespace: Namespace, name: str = "cats", **values):
    return client.put(address(namespace, name), {"hosts": "one.example.org"} | values)


def test_a_connection_is_registered_checked_and_listed(signed_in, ada, mine, looked) -> None:
    client = signed_in(ada)
    made = register(client, mine, hosts="One.example.org:10801, two", username="USER", password="PW")
    assert made.status_code == 201, made.json()
    assert (made.json()["hosts"], made.json()["state"]) == ("one.example.org:10801,two", "checking")
    worker.connection_check(DataConnection.objects.get().pk)
    assert [dict(one.secrets) for one in looked] == [{"username": "value of USER", "password": "value of PW"}]
    found = client.get(address(mine, "cats")).json()
    assert (found["state"], found["found"]) == ("ready", FOUND)
    listed = client.get(address(mine)).json()["results"]
    assert [(one["name"], one["password"], "found" in one) for one in listed] == [("cats", "PW", False)]
    assert "value of" not in str(found) + str(listed)
    actions = list(AuditEvent.objects.order_by("pk").values_list("action", flat=True))
    assert actions[-3:] == ["connection.create", "secret.use_connection", "secret.use_connection"]


@pytest.mark.parametrize(
    ("values", "field", "code"),
    [
        ({"hosts": "http://x"}, "hosts", "invalid"),
        ({"hosts": "169.254.169.254"}, "hosts", "address_not_allowed"),
        ({"password": "NONE"}, "password", "unknown_secret"),
        ({"username": "USER"}, "password", "missing"),
        ({"tls": True}, "ca", "missing"),
        ({"certificate": "CERT"}, "certificate", "conflict"),
        ({"certificate_password": "PW"}, "certificate_password", "conflict"),
        ({"port": 1}, "port", "unknown_key"),
    ],
)
def test_bad_input_is_named_by_its_field(signed_in, ada, mine, values, field, code) -> None:
    answer = register(signed_in(ada), mine, **values)
    assert answer.status_code == 400
    assert field in [one["field"] for one in answer.json()["errors"]]
    if code != "unknown_key":
        assert (field, code) in [(one["field"], one["code"]) for one in answer.json()["errors"]]
    assert not DataConnection.objects.exists()


def test_a_changed_connection_forgets_what_was_found_and_is_checked_again(signed_in, ada, mine, looked) -> None:
    client = signed_in(ada)
    register(client, mine)
    one = DataConnection.objects.get()
    worker.connection_check(one.pk)
    assert register(client, mine, hosts="two.example.org").status_code == 200
    one.refresh_from_db()
    assert (one.state, one.found, one.hosts) == (State.CHECKING, None, "two.example.org")
    facts = AuditEvent.objects.filter(action="connection.change").get().facts
    assert (facts["hosts"], facts["hosts_before"]) == ("two.example.org", "one.example.org")


def test_a_check_that_fails_keeps_its_reason_and_what_was_found_before(signed_in, ada, mine, looked, monkeypatch):
    client = signed_in(ada)
    register(client, mine)
    one = DataConnection.objects.get()
    worker.connection_check(one.pk)

    def refuse(wanted, policy):
        raise NotLooked(Problem("password", "ignite_sign_in", "Wrong.", "Check the password.", "one"))

    monkeypatch.setattr(worker, "look", refuse)
    assert client.post(address(mine, "cats", "check/")).status_code == 202
    worker.connection_check(one.pk)
    found = client.get(address(mine, "cats")).json()
    assert (found["state"], found["problem"]["code"], found["found"]) == ("failed", "ignite_sign_in", FOUND)
    assert found["problem"]["errors"][0]["field"] == "password"


def test_a_connection_that_is_changed_while_it_is_looked_at_is_looked_at_again(ada, mine, signed_in, monkeypatch):
    client = signed_in(ada)
    register(client, mine)

    def change(wanted, policy):
        register(client, mine, hosts="two.example.org")
        return FOUND

    monkeypatch.setattr(worker, "look", change)
    one = DataConnection.objects.get()
    worker.connection_check(one.pk)
    one.refresh_from_db()
    assert (one.state, one.found) == (State.CHECKING, None)
    assert worker.connection_in_turn(timezone.now()) == one.pk


def test_a_deleted_secret_and_a_member_who_left_are_told(signed_in, ada, bob, mine, looked) -> None:
    Membership.objects.create(namespace=mine, user=bob, role=Role.MEMBER)
    register(signed_in(bob), mine, username="USER", password="PW")
    one = DataConnection.objects.get()
    Membership.objects.filter(user=bob, namespace=mine).delete()
    worker.connection_check(one.pk)
    one.refresh_from_db()
    assert (one.problem["code"], looked) == ("user_gone", [])
    services.connection_check_ask(connection=one, actor=ada)
    refused = signed_in(ada).delete(f"/api/v1/namespaces/{mine.pk}/secrets/PW/")
    assert (refused.status_code, refused.json()["code"]) == (409, "secret_in_use")
    assert "data connection cats" in refused.json()["detail"]
    signed_in(ada).delete(f"/api/v1/namespaces/{mine.pk}/secrets/PW/?force=1")
    worker.connection_check(one.pk)
    one.refresh_from_db()
    assert (one.problem["code"], looked) == ("secret_missing", [])


def test_viewers_see_and_others_see_nothing(signed_in, ada, bob, mine) -> None:
    register(signed_in(ada), mine)
    client = signed_in(bob)
    assert client.get(address(mine)).status_code == 404
    Membership.objects.create(namespace=mine, user=bob, role=Role.VIEWER)
    assert client.get(address(mine, "cats")).status_code == 200
    for answer in (
        register(client, mine), client.post(address(mine, "cats", "check/")), client.delete(address(mine, "cats")),
    ):  # fmt: skip
        assert answer.status_code == 403
    assert client.get(address(mine, "dogs")).json()["code"] == "connection_missing"


def test_the_sweep_wakes_what_was_lost_and_interrupted_looks_end(signed_in, ada, mine, looked, monkeypatch) -> None:
    woken: list = []
    monkeypatch.setattr(worker, "enqueue_now", lambda message, subject: woken.append(subject))
    register(signed_in(ada), mine)
    one = DataConnection.objects.get()
    worker.connections_sweep(timezone.now())
    assert woken == [one.pk]
    DataConnection.objects.update(lease=uuid.uuid4(), leased_until=timezone.now() + timedelta(minutes=1))
    worker.connections_sweep(timezone.now())
    worker.connection_check(one.pk)
    assert (woken, looked) == ([one.pk], [])
    DataConnection.objects.update(leased_until=None, lease=None, tries=worker.TRIES)
    worker.connection_check(one.pk)
    one.refresh_from_db()
    assert (one.state, one.problem["code"]) == (State.FAILED, "ignite_interrupted")


def test_a_look_passes_over_the_tables_of_the_checkpoint_store(signed_in, ada, mine, looked, settings) -> None:
    settings.YARDMASTER_IGNITE = {"class": "yardmaster.storage.ignite.IgniteStorage", "options": {"name": "OURS"}}
    register(signed_in(ada), mine)
    worker.connection_check(DataConnection.objects.get().pk)
    assert looked[0].passed_over == {"OURS_OBJECTS", "OURS_UPLOADS", "OURS_LOOSE", "OURS_PIECES"}


def test_checks_are_bounded_per_user(signed_in, ada, mine) -> None:
    client = signed_in(ada)
    answers = [register(client, mine) for _ in range(services.CHECKS_A_MINUTE + 1)]
    assert (answers[-1].status_code, answers[-1].json()["code"]) == (429, "rate_limited")


def test_the_pages_show_register_change_and_delete(client, ada, mine, looked) -> None:
    client.force_login(ada)
    pages = f"/namespaces/{mine.pk}/connections/"
    empty = client.get(pages)
    assert b"No data connections yet" in empty.content
    made = client.post(pages, {"name": "cats", "hosts": "one.example.org"})
    assert (made.status_code, made.url) == (302, f"{pages}cats/")
    assert b"A worker is checking the cluster" in client.get(f"{pages}cats/").content
    worker.connection_check(DataConnection.objects.get().pk)
    shown = client.get(f"{pages}cats/").content.decode()
    for word in ("IMAGES", "300 rows", "8 partitions", "val.label", "null", "connection: {name: cats, cache:"):
        assert word in shown, word
    wrong = client.post(pages, {"name": "cats", "hosts": "x"}).content.decode()
    assert "cats already exists" in wrong
    refused = client.post(f"{pages}cats/", {"hosts": "127.0.0.2"}).content.decode()
    assert "inside its own network" in refused
    assert client.post(f"{pages}cats/check/").status_code == 302
    part = client.get(f"{pages}cats/", headers={"HX-Request": "true", "HX-Target": "connection-state"}).content.decode()
    assert "<html" not in part
    assert client.post(f"{pages}cats/delete/").status_code == 302
    assert not DataConnection.objects.exists()


def test_the_portals_policy_allows_no_address_inside_by_itself() -> None:
    policy = django_settings.YARDMASTER_IGNITE_POLICY
    assert (policy.hosts, policy.networks) == (frozenset(), ())


def test_a_namespace_that_is_removed_loses_its_connections(signed_in, ada, mine) -> None:
    register(signed_in(ada), mine)
    assert services.connections_clear(mine, ada) == 1
    assert not DataConnection.objects.exists()
    assert AuditEvent.objects.filter(action="connection.delete").get().facts["name"] == "cats"


def test_a_namespace_with_many_checks_takes_turns_with_others(signed_in, ada, bob, mine, looked) -> None:
    other = Namespace.objects.get(owner=bob)
    for name in ("one", "two", "three"):
        assert register(signed_in(ada), mine, name).status_code == 201
    assert register(signed_in(bob), other, "late").status_code == 201
    order = []
    while (found := worker.connection_in_turn(timezone.now())) is not None:
        order.append(DataConnection.objects.get(pk=found).name)
        worker.connection_check(found)
    assert order == ["one", "late", "two", "three"]
