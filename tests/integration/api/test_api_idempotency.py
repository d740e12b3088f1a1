"""`Idempotency-Key`: one request runs, its answer is replayed, and a crash holds nothing for ever."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.utils import timezone

from apps.accounts.models import PersonalToken, User
from apps.api import idempotency
from apps.api.idempotency import Claim, answer_keep, claim_release, idempotency_clean, key_claim
from apps.api.models import IdempotencyRecord
from apps.api.problems import ApiProblem
from apps.errors import Conflict
from apps.namespaces import services as namespace_services
from apps.namespaces.models import Namespace

pytestmark = pytest.mark.django_db
USERS, TEAMS, TOKENS = "/api/v1/users/", "/api/v1/namespaces/", "/api/v1/tokens/"
KEY = {"Idempotency-Key": "k-1"}


@pytest.fixture
def client(admin, signed_in):
    return signed_in(admin)


@pytest.mark.parametrize(("url", "body"), [(USERS, {"username": "eve"}), (TEAMS, {"slug": "vision"})])
def test_a_repeat_gets_the_first_answer_and_does_nothing(client, url, body):
    first = client.post(url, body, headers=KEY)
    again = client.post(url, body, headers=KEY)
    assert (first.status_code, again.status_code) == (201, 201)
    assert first.json() == again.json()
    assert "Idempotency-Replayed" not in first.headers
    assert again.headers["Idempotency-Replayed"] == "true"
    assert User.objects.filter(username="eve").count() + Namespace.objects.filter(slug="vision").count() == 1


def test_a_refusal_is_replayed_too(client):
    first = client.post(USERS, {"username": "a b"}, headers=KEY)
    again = client.post(USERS, {"username": "a b"}, headers=KEY)
    assert (first.status_code, again.status_code) == (400, 400)
    assert first.content == again.content
    assert again.headers["Content-Type"] == "application/problem+json"


@pytest.mark.parametrize(("url", "body"), [(USERS, {"username": "other"}), (TEAMS, {"username": "eve"})])
def test_a_key_stands_for_one_request(client, url, body):
    client.post(USERS, {"username": "eve"}, headers=KEY)
    response = client.post(url, body, headers=KEY)
    assert response.status_code == 422
    assert response.json()["code"] == "idempotency_mismatch"


def test_keys_of_different_users_are_different(admin, signed_in):
    other = User.objects.create_user("root", is_staff=True)
    assert signed_in(admin).post(TEAMS, {"slug": "one"}, headers=KEY).status_code == 201
    assert signed_in(other).post(TEAMS, {"slug": "two"}, headers=KEY).status_code == 201


@pytest.mark.parametrize("key", ["", "x" * 201, "é"])
def test_a_key_that_is_none_is_refused(client, key):
    response = client.post(TEAMS, {"slug": "one"}, headers={"Idempotency-Key": key})
    assert response.status_code == 400
    assert response.json()["errors"][0]["field"] == "Idempotency-Key"


def test_while_the_first_runs_the_second_is_told_to_wait(admin, signed_in, monkeypatch):
    answers = []
    real = User.objects.create_user

    def create_user(*args, **kwargs):
        answers.append(signed_in(admin).post(USERS, {"username": "eve"}, headers=KEY))
        return real(*args, **kwargs)

    monkeypatch.setattr(User.objects, "create_user", create_user)
    first = signed_in(admin).post(USERS, {"username": "eve"}, headers=KEY)
    assert first.status_code == 201
    assert [(a.status_code, a.json()["code"]) for a in answers] == [(409, "conflict")]


def test_a_request_that_fails_by_a_bug_holds_no_key(admin, signed_in, monkeypatch):
    client = signed_in(admin)
    client.raise_request_exception = False
    with monkeypatch.context() as broken:
        broken.setattr(User.objects, "create_user", lambda *a, **k: 1 / 0)
        assert client.post(USERS, {"username": "eve"}, headers=KEY).status_code == 500
    assert client.post(USERS, {"username": "eve"}, headers=KEY).status_code == 201


def test_where_post_is_one_transaction_a_bug_leaves_neither_deed_nor_key(admin, signed_in, monkeypatch):
    client = signed_in(admin)
    client.raise_request_exception = False
    with monkeypatch.context() as broken:
        broken.setattr(idempotency, "answer_keep", lambda *a, **k: 1 / 0)
        assert client.post(TEAMS, {"slug": "vision"}, headers=KEY).status_code == 500
    assert not Namespace.objects.filter(slug="vision").exists()
    assert not IdempotencyRecord.objects.exists()
    assert client.post(TEAMS, {"slug": "vision"}, headers=KEY).status_code == 201


def test_an_answer_of_500_and_above_is_not_kept(admin, signed_in, monkeypatch):
    def away(**kwargs):
        raise ApiProblem(503, "unavailable", "away")

    client = signed_in(admin)
    with monkeypatch.context() as broken:
        broken.setattr(namespace_services, "team_create", away)
        assert client.post(TEAMS, {"slug": "vision"}, headers=KEY).status_code == 503
    assert client.post(TEAMS, {"slug": "vision"}, headers=KEY).status_code == 201


def test_a_secret_is_not_kept_and_not_made_twice(ada, signed_in):
    client = signed_in(ada)
    secret = client.post(TOKENS, {"name": "a"}, headers=KEY).json()["token"]
    again = client.post(TOKENS, {"name": "a"}, headers=KEY)
    assert again.status_code == 409
    assert again.json()["remedy"]
    assert PersonalToken.objects.count() == 1
    assert secret not in IdempotencyRecord.objects.get().body


def test_a_stranger_claims_nothing(db, client):
    from rest_framework.test import APIClient

    assert APIClient().post(TEAMS, {"slug": "a"}, headers=KEY).status_code == 401
    assert not IdempotencyRecord.objects.exists()


class TestClaims:
    def test_a_claim_of_a_dead_request_is_taken_over_after_a_minute(self, ada):
        now = timezone.now()
        dead = key_claim(ada, "k", "f", now)
        with pytest.raises(Conflict):
            key_claim(ada, "k", "f", now + timedelta(seconds=59))
        alive = key_claim(ada, "k", "f", now + timedelta(seconds=61))
        assert alive.claim != dead.claim

    def test_of_two_that_take_over_at_once_one_succeeds(self, ada):
        now = timezone.now()
        key_claim(ada, "k", "f", now - timedelta(minutes=2))
        seen = IdempotencyRecord.objects.get()
        takers = [idempotency._claim_of_existing(seen, "f", now) for _ in range(2)]
        assert [taker is not None for taker in takers] == [True, False]

    def test_whoever_lost_the_claim_writes_no_answer_and_releases_nothing(self, ada):
        now = timezone.now()
        slow = key_claim(ada, "k", "f", now - timedelta(minutes=2))
        fast = key_claim(ada, "k", "f", now)
        answer_keep(slow, status=201, body="slow", content_type="x", location="")
        claim_release(slow)
        answer_keep(fast, status=201, body="fast", content_type="x", location="")
        assert IdempotencyRecord.objects.get().body == "fast"

    def test_an_answer_is_forgotten_after_a_day(self, ada):
        now = timezone.now()
        old = key_claim(ada, "k", "f", now - timedelta(hours=25))
        answer_keep(old, status=201, body="old", content_type="x", location="")
        assert isinstance(key_claim(ada, "k", "another", now), Claim)

    def test_cleaning_removes_only_what_is_past_its_time(self, ada):
        now = timezone.now()
        key_claim(ada, "old", "f", now - timedelta(hours=25))
        key_claim(ada, "new", "f", now)
        assert idempotency_clean(now) == 1
        assert idempotency_clean(now) == 0
        assert IdempotencyRecord.objects.get().key == "new"
