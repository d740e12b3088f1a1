"""People and clients for tests that need a database."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest
from django.core.cache import cache
from django.db import OperationalError, connection
from django.db.models.signals import pre_save
from django.test import TransactionTestCase
from rest_framework.test import APIClient

from apps.accounts.models import User
from apps.accounts.services import token_create
from apps.api.allowances import forget_all
from apps.audit import append_only
from apps.audit.changes import lacks_before
from apps.audit.models import AuditEvent

PASSWORD = "correct horse battery"


@pytest.fixture(autouse=True)
def _cheap_passwords_and_no_counts(settings):
    settings.PASSWORD_HASHERS = ["django.contrib.auth.hashers.MD5PasswordHasher"]
    cache.clear()
    forget_all()


@pytest.fixture(scope="session", autouse=True)
def _tables_may_be_emptied() -> Iterator[None]:
    """Tests with transactions of their own end by emptying every table, which that of the audit refuses."""
    really = TransactionTestCase._fixture_teardown

    def teardown(self: TransactionTestCase) -> None:
        append_only.unguard(connection)
        really(self)
        append_only.guard(connection)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(TransactionTestCase, "_fixture_teardown", teardown)
        yield


@pytest.fixture(autouse=True)
def _changes_are_recorded_with_what_was_before() -> Iterator[None]:
    """In every test that changes something: its audit event has the values of before."""

    def look(instance: AuditEvent, **facts: object) -> None:
        assert not lacks_before(instance.action, instance.facts), (instance.action, instance.facts)

    pre_save.connect(look, sender=AuditEvent)
    yield
    pre_save.disconnect(look, sender=AuditEvent)


@pytest.fixture
def admin(db) -> User:
    return User.objects.create_user("admin", "admin@example.org", PASSWORD, is_staff=True)


@pytest.fixture
def ada(db) -> User:
    return User.objects.create_user("ada", "ada@example.org", PASSWORD)


@pytest.fixture
def bob(db) -> User:
    return User.objects.create_user("bob", "bob@example.org", PASSWORD)


@pytest.fixture
def signed_in() -> Callable[[User], APIClient]:
    """A client with the user's session."""

    def make(user: User) -> APIClient:
        client = APIClient()
        client.force_login(user)
        return client

    return make


@pytest.fixture
def with_token() -> Callable[..., APIClient]:
    """A client with a new token of the user."""

    def make(user: User, *scopes: str) -> APIClient:
        _, secret = token_create(user=user, name="test", scopes=list(scopes), expires_in=None)
        client = APIClient()
        client.credentials(HTTP_AUTHORIZATION=f"Bearer {secret}")
        return client

    return make


def no_writes(execute, sql, params, many, context):
    """For `connection.execute_wrapper`: what a full disk makes of the database."""
    if sql.startswith(("INSERT", "UPDATE")):
        raise OperationalError("database or disk is full")
    return execute(sql, params, many, context)
