"""The audit is searched, and shown to the people whom it concerns."""

from __future__ import annotations

import json

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from apps.accounts.models import User
from apps.administration.audit_selectors import events_matching, events_visible
from apps.audit.models import AuditEvent
from apps.audit.services import record
from apps.namespaces.models import Membership, Role
from apps.namespaces.services import team_create
from tests.real.postgres import postgres_cluster, postgres_db

__all__ = ["postgres_cluster", "postgres_db"]
URL = "/api/v1/audit/"


@pytest.fixture
def team(admin, ada, bob):
    """Ada manages it, Bob is a member. Ada has stopped a job and made a webhook there, from 10.0.0.7."""
    made = team_create(slug="vision", title="", manager=ada, actor=admin)
    Membership.objects.create(namespace=made, user=bob, role=Role.MEMBER)
    for action, facts in (("job.stop", {"why": "diverged at step 900"}), ("webhook.create", {"url": "https://x"})):
        _from(ada, action, "job:1", made, facts)
    return made


def _from(user: User, action: str, subject: str, namespace, facts) -> None:
    AuditEvent.objects.bulk_create(
        [
            AuditEvent(
                actor_id=user.pk, actor_name=user.username, action=action, subject=subject, facts=facts,
                namespace_id=namespace.pk if namespace else None, address="10.0.0.7", agent="curl/8",
            )
        ]
    )  # fmt: skip


def rows_of(client, **query: str) -> list[dict]:
    return client.get(URL, query).json()["results"]


@pytest.mark.django_db
class TestWhomItConcerns:
    def test_members_read_their_namespace_without_addresses(self, team, bob, signed_in):
        (row,) = rows_of(signed_in(bob), action="job.stop")
        assert (row["address"], row["agent"], row["actor_name"]) == (None, "", "ada")
        assert rows_of(signed_in(bob), action="webhook.create") == []
        page = signed_in(bob).get("/audit/?namespace=vision").content.decode()
        assert "diverged" in page
        assert "from 10.0.0.7" not in page
        csv = b"".join(signed_in(bob).get("/audit/audit.csv?namespace=vision").streaming_content).decode()
        assert "diverged" in csv
        assert "10.0.0.7" not in csv

    def test_a_filter_by_address_shows_members_nothing_of_it(self, team, ada, bob, signed_in):
        assert [row["address"] for row in rows_of(signed_in(ada), address="10.0.0.7", action="job.")] == ["10.0.0.7"]
        assert rows_of(signed_in(bob), address="10.0.0.7") == []
        assert b"diverged" not in signed_in(bob).get("/audit/?address=10.0.0.7").content

    def test_managers_read_all_of_it(self, team, ada, signed_in):
        assert [row["address"] for row in rows_of(signed_in(ada), action="webhook.create")] == ["10.0.0.7"]

    def test_everyone_reads_what_was_done_to_their_account(self, admin, bob, ada, signed_in):
        _from(admin, "user.change", f"user:{bob.pk}", None, {"is_staff": False})
        assert [row["actor_name"] for row in rows_of(signed_in(bob), action="user.change")] == ["admin"]
        assert rows_of(signed_in(ada), action="user.change") == []


def everything_is_found(admin: User) -> None:
    """On the database that is the default one now."""
    eve = User.objects.create_user("eve")
    _from(eve, "member.add", "namespace:1", None, {"user": "zoé", "role": "viewer"})
    _from(eve, "member.remove", "namespace:2", None, {"user": "zoé"})
    _from(eve, "job.stop", "job:42", None, {"why": "diverged at step 900"})
    record(None, "session.fail", "user", name="Eve")

    def found(**wanted: str) -> list[str]:
        rows = events_matching(events_visible(admin), wanted, admin)
        return sorted(rows.exclude(action__in=["user.create", "namespace.create"]).values_list("action", flat=True))

    assert found(action="member.") == ["member.add", "member.remove"]
    assert found(action="member.add") == ["member.add"]
    assert found(person="EVE") == ["job.stop", "member.add", "member.remove", "session.fail"]
    assert found(object="job:42") == ["job.stop"]
    assert found(object="42") == ["job.stop"]
    assert found(object="4") == []
    assert found(address="10.0.0.7", action="job.stop") == ["job.stop"]
    assert found(address="10.0.0.8") == []
    assert found(words="diverged 900") == ["job.stop"]
    assert found(words="Diverged") == ["job.stop"]
    assert found(words="diverged never") == []
    assert found(words="zoé viewer") == ["member.add"]
    assert found(words="%' OR 1=1 --") == []


@pytest.mark.django_db
def test_sqlite_finds_by_every_filter(admin):
    everything_is_found(admin)


@pytest.mark.postgres
def test_postgresql_finds_by_every_filter_and_words_by_their_index(postgres_db):
    admin = User.objects.create_user("admin", is_staff=True)
    everything_is_found(admin)
    with connection.cursor() as cursor:
        cursor.execute("SET enable_seqscan = off")
        rows = events_matching(AuditEvent.objects.order_by(), {"words": "diverged"}, admin)
        plan = rows.explain()
    assert "audit_words" in plan


@pytest.mark.django_db
def test_the_page_asks_few_queries_and_says_what_is_wrong(team, ada, signed_in):
    client = signed_in(ada)
    client.get("/audit/")
    with CaptureQueriesContext(
        connection,
    ) as asked:
        client.get("/audit/?action=job.&person=ada&words=diverged&object=job:1&address=10.0.0.7&namespace=vision")
    assert len(asked) <= 8, [one["sql"] for one in asked]
    assert "Enter a valid IPv4 or IPv6 address" in client.get("/audit/?address=x").content.decode()
    answer = client.get(URL, {"address": "x"})
    assert (answer.status_code, answer.json()["errors"][0]["field"]) == (400, "address")


@pytest.mark.django_db
def test_an_export_respects_every_filter(team, admin, signed_in):
    client = signed_in(admin)
    lines = b"".join(client.get("/audit/audit.jsonl?words=diverged").streaming_content).decode().splitlines()
    assert [json.loads(one)["action"] for one in lines] == ["job.stop"]
    answer = client.get(f"{URL}export/", {"as": "jsonl", "words": "diverged"})
    assert b"".join(answer.streaming_content).decode().count("\n") == 1


def test_the_last_day_that_there_is_ends_no_search(team, ada, signed_in, client):
    assert signed_in(ada).get(URL, {"until": "9999-12-31"}).status_code == 200
    assert signed_in(ada).get(URL, {"since": "0001-01-01"}).status_code == 200
    client.force_login(ada)
    assert client.get("/audit/?until=9999-12-31").status_code == 200
