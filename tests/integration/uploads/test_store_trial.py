"""What `manage.py doctor` says of an object store: one that does as it should, one that takes anything, none at all."""

from __future__ import annotations

import pytest

from tests.real.object_stores import S3Server, minio_server, versitygw_server
from yardmaster.storage import s3
from yardmaster.storage.s3 import S3Storage
from yardmaster.storage.trial import store_try

__all__ = ["minio_server", "versitygw_server"]
pytestmark = pytest.mark.s3


@pytest.mark.parametrize("name", ["minio", "versitygw"])
def test_a_server_that_compares_what_was_signed_is_well_and_nothing_stays(request, name):
    server: S3Server = request.getfixturevalue(f"{name}_server")
    store = S3Storage(**server.options())
    assert [one.is_well for one in store_try(store)] == [True, True]
    assert list(store.list_prefix("uploads")) == []


def test_a_server_that_takes_anything_is_named_with_what_it_costs(minio_server: S3Server, monkeypatch):
    monkeypatch.setattr(s3, "_content", lambda size, sha256: {})
    [_, tried] = store_try(S3Storage(**minio_server.options()))
    assert not tried.is_well
    assert "other bytes and lengths" in tried.message
    assert tried.remedy


def test_an_address_for_people_that_nobody_answers_is_named(minio_server: S3Server):
    store = S3Storage(**minio_server.options(), public_endpoint="http://127.0.0.1:1")
    [_, tried] = store_try(store)
    assert not tried.is_well
    assert "http://127.0.0.1:1" in tried.message


def test_keys_that_are_refused_are_named(minio_server: S3Server):
    [tried] = store_try(S3Storage(**minio_server.options() | {"secret_key": "another-secret"}))
    assert not tried.is_well
    assert "YARDMASTER_S3_SECRET_KEY" in tried.remedy
