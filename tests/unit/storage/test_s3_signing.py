"""Presigned S3 addresses, compared with those that `minio` makes."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from urllib.parse import parse_qs, urlsplit

import pytest
from minio import Minio

from yardmaster.storage.s3_signing import Call, Credentials, presigned_url

NOW = datetime(2026, 11, 23, 12, 0, tzinfo=UTC)
KEYS = Credentials("access", "secret", "eu-north-1")
QUARTER = timedelta(minutes=15)


@pytest.mark.parametrize("endpoint", ["http://store.test:9000", "http://store.test", "https://store.test:443"])
@pytest.mark.parametrize("key", ["a/b.txt", "ü ä/名前", "a+b&c=d#e?f%2F", "~x/-_."])
@pytest.mark.parametrize("query", [{}, {"partNumber": "3", "uploadId": "a/b+c=="}, {"uploads": ""}])
def test_it_is_the_address_that_minio_makes(endpoint, key, query):
    parts = urlsplit(endpoint)
    theirs = Minio(parts.netloc, "access", "secret", secure=parts.scheme == "https", region="eu-north-1")
    expected = theirs.get_presigned_url(
        "PUT", "bucket", key, expires=QUARTER, request_date=NOW, extra_query_params=query or None
    )
    found = presigned_url(endpoint, Call("PUT", "bucket", key, query), KEYS, QUARTER, NOW)
    assert urlsplit(found).path == urlsplit(expected).path
    assert parse_qs(urlsplit(found).query, keep_blank_values=True) == parse_qs(
        urlsplit(expected).query, keep_blank_values=True
    )


def test_headers_are_under_the_signature():
    def signature(**headers: str) -> str:
        call = Call("PUT", "bucket", "k", headers=headers)
        return presigned_url("http://store.test", call, KEYS, QUARTER, NOW).rpartition("=")[2]

    assert len({signature(), signature(a="1"), signature(a="2"), signature(b="1")}) == 4


@pytest.mark.parametrize("expires", [timedelta(), timedelta(seconds=-1), timedelta(minutes=15, seconds=1)])
def test_an_expiry_that_s3_does_not_allow_is_refused(expires):
    with pytest.raises(ValueError, match="lives more than 0 seconds"):
        presigned_url("http://store.test", Call("GET", "bucket", "k"), KEYS, expires, NOW)


def test_the_secret_is_not_shown():
    assert "secret" not in repr(KEYS).replace("secret_key", "")
