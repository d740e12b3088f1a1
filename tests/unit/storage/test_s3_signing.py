"""Signed S3 requests, compared with those that `minio` makes."""

from __future__ import annotations

import hashlib
from datetime import UTC, datetime, timedelta
from urllib.parse import parse_qs, urlsplit

import pytest
from minio import Minio
from minio.credentials import Credentials as TheirKeys
from minio.signer import sign_v4_s3

from yardmaster.storage.s3_signing import Call, Credentials, presigned_url, signed_request

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


@pytest.mark.parametrize("endpoint", ["http://store.test:9000", "https://store.test:443"])
@pytest.mark.parametrize("query", [{}, {"partNumber": "3", "uploadId": "a/b+c=="}, {"uploads": ""}])
@pytest.mark.parametrize("body", [b"", b"<Complete/>"])
def test_what_the_portal_sends_itself_is_signed_in_its_headers_alone(endpoint, query, body):
    call = Call("POST", "bucket", "ü ä/a+b", query, {"x-amz-checksum-algorithm": "SHA256"})
    url, headers = signed_request(endpoint, call, KEYS, body, NOW)
    assert "X-Amz-" not in url
    assert parse_qs(urlsplit(url).query, keep_blank_values=True) == {name: [value] for name, value in query.items()}
    unsigned = {name: value for name, value in headers.items() if name != "Authorization"}
    expected = sign_v4_s3(
        method="POST", url=urlsplit(url), region="eu-north-1",
        headers={**unsigned, "Host": urlsplit(url).netloc.removesuffix(":443")},
        credentials=TheirKeys("access", "secret"), content_sha256=hashlib.sha256(body).hexdigest(), date=NOW,
    )  # fmt: skip
    assert headers["Authorization"] == expected["Authorization"]


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
