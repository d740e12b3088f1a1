"""What only a real database shows of accounts and keys: several at once."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

import pytest
from django.db import connection
from django.utils import timezone
from rest_framework.test import APIClient

from apps.accounts.models import User
from apps.accounts.services import sign_in_link_create, sign_in_link_use, token_create, user_change
from apps.errors import DomainError
from apps.namespaces.models import Membership, Namespace, Role
from apps.namespaces.services import member_remove, team_create
from tests.real.postgres import postgres_cluster, postgres_db

__all__ = ["postgres_cluster", "postgres_db"]

pytestmark = pytest.mark.postgres


def at_once(deed: Callable[[int], Any], times: int = 6) -> list[Any]:
    """What each of several threads gets, or the problem it meets, all begun together."""
    gate, found = threading.Barrier(times), []

    def run(number: int) -> None:
        gate.wait()
        try:
            found.append(deed(number))
        except DomainError as problem:
            found.append(problem)
        finally:
            connection.close()

    threads = [threading.Thread(target=run, args=(number,)) for number in range(times)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return found


@pytest.fixture
def root(postgres_db) -> User:
    return User.objects.create_user("root", is_staff=True)


@pytest.mark.parametrize(
    ("url", "body"), [("/api/v1/users/", {"username": "eve"}), ("/api/v1/namespaces/", {"slug": "vision"})]
)
def test_of_clients_with_one_key_exactly_one_runs(root, url, body):
    _, secret = token_create(user=root, name="t", scopes=[], expires_in=None)

    def post(number: int) -> tuple[int, str | None]:
        client = APIClient(HTTP_AUTHORIZATION=f"Bearer {secret}")
        response = client.post(url, body, headers={"Idempotency-Key": "k"})
        return response.status_code, response.headers.get("Idempotency-Replayed")

    answers = at_once(post)
    assert answers.count((201, None)) == 1
    assert set(answers) <= {(201, None), (201, "true"), (409, None)}
    assert Namespace.objects.filter(slug__in=["eve", "vision"]).count() == 1


def test_users_whose_slugs_are_equal_get_different_ones_at_once(postgres_db):
    made = at_once(lambda number: User.objects.create_user(f"a{'.' * number}b"))
    assert len({user.personal_namespace.slug for user in made}) == 6


def test_a_sign_in_link_lets_one_of_many_in(root):
    token = sign_in_link_create(root).rstrip("/").rpartition("/")[2]
    users = at_once(lambda number: sign_in_link_use(token, timezone.now()))
    assert sorted(user is not None for user in users) == [False] * 5 + [True]


def test_two_administrators_who_demote_each_other_leave_one(root):
    other = User.objects.create_user("other", is_staff=True)
    people = [root, other]
    at_once(lambda n: user_change(user=people[n], actor=people[1 - n], is_staff=False), times=2)
    assert User.objects.filter(is_staff=True, is_active=True).count() == 1


def test_two_managers_who_leave_at_once_leave_one(root):
    people = [User.objects.create_user("ada"), User.objects.create_user("bob")]
    team = team_create(slug="vision", title="", manager=people[0], actor=root)
    Membership.objects.create(namespace=team, user=people[1], role=Role.MANAGER)
    at_once(lambda n: member_remove(namespace=team, user=people[n], actor=people[n]), times=2)
    assert team.memberships.count() == 1
