"""What `manage.py doctor` says of an object store: one that does as it should, one that takes anything, none at all."""

from __future__ import annotations

import http.server
from threading import Thread

import pytest

from tests.real.object_stores import S3Server, minio_server, versitygw_server
from yardmaster.storage import s3
from yardmaster.storage.s3 import S3Storage
from yardmaster.storage.trial import _pages, lacking_of, store_try

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


PAGE = "https://portal.example.org"


def test_a_server_that_lets_pages_of_the_portal_send_is_well(minio_server: S3Server):
    [_, _, tried] = store_try(S3Storage(**minio_server.options()), PAGE)
    assert (tried.is_well, PAGE in tried.message) == (True, True)


def test_a_server_that_does_not_let_pages_send_is_named_with_what_to_allow():
    """The module's own server answers 501 to what browsers ask first."""
    with http.server.HTTPServer(("127.0.0.1", 0), http.server.BaseHTTPRequestHandler) as server:
        Thread(target=server.handle_request, daemon=True).start()
        store = S3Storage(f"http://127.0.0.1:{server.server_port}", "any-bucket", "access-key", "secret-key")
        tried = _pages(store, "folder", PAGE)
    assert (tried.is_well, "501" in tried.message) == (False, True)
    assert f"Allow the origin {PAGE} there (CORS)" in tried.remedy


@pytest.mark.parametrize(
    ("allowed", "lacking"),
    [
        ({}, "that origin"),
        ({"origin": "https://other.example.org", "methods": "put", "headers": "*"}, "that origin"),
        ({"origin": PAGE, "methods": "get, post", "headers": "*"}, "the method PUT"),
        ({"origin": "*", "methods": "get, put", "headers": "content-type"}, "the header x-amz-checksum-sha256"),
        ({"origin": "*", "methods": "get, put", "headers": "x-amz-checksum-sha256, content-type"}, ""),
    ],
)
def test_what_a_server_does_not_allow_is_said(allowed, lacking):
    headers = {f"access-control-allow-{name}": value for name, value in allowed.items()}
    assert lacking_of(headers, PAGE, ["x-amz-checksum-sha256"]) == lacking
