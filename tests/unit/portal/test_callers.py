"""Which credential of a request is asked about: the one that the address takes, whatever else is sent."""

from __future__ import annotations

import pytest

from portal.bounded_head import plain_cookies
from portal.callers import _credentials

KEY = "0123456789abcdefghijklmnopqrstuv"
COOKIE = (b"cookie", f"a=1; yardmaster_session={KEY}; b=2".encode())
SESSION = ("session", KEY)
TASK, PERSON = "ymt.00.1.x", "ym_person"


def bearer(token: str) -> tuple[bytes, bytes]:
    return (b"authorization", f"Bearer {token}".encode())


@pytest.mark.parametrize(
    ("path", "headers", "expected"),
    [
        ("/jobs/", [COOKIE], [SESSION]),
        ("/jobs/", [COOKIE, bearer(PERSON)], [SESSION]),
        ("/jobs/", [COOKIE, bearer(TASK)], [SESSION]),
        ("/jobs/", [bearer(PERSON)], []),
        ("/api/v1/jobs/", [bearer(PERSON)], [("bearer", PERSON)]),
        ("/api/v1/jobs/", [bearer(PERSON), COOKIE], [("bearer", PERSON), SESSION]),
        ("/api/v1/jobs/", [bearer(TASK), COOKIE], [SESSION]),
        ("/api/v1/jobs/", [(b"authorization", b"Basic x"), COOKIE], [SESSION]),
        ("/api/v1/jobs/", [(b"authorization", b"bearer\t ym_person")], [("bearer", PERSON)]),
        ("/api/v1/jobs/", [(b"authorization", b"Bearer\xa0ym_person")], []),
        ("/api/v1/jobs/", [bearer(PERSON), bearer("x y")], []),
        ("/api/v1/jobs/", [bearer("x" * 500)], []),
        ("/ws/jobs/", [bearer(PERSON)], [("bearer", PERSON)]),
        ("/api/v1/task/log/", [bearer(TASK), COOKIE], [("bearer", TASK)]),
        ("/api/v1/task/log/", [bearer(PERSON), COOKIE], []),
        ("/jobs/", [COOKIE, (b"cookie", b"c=3")], [SESSION]),
        ("/jobs/", [(b"cookie", b"c=3"), COOKIE], [SESSION]),
        ("/jobs/", [COOKIE, (b"cookie", b"yardmaster_session=another.one")], []),
        ("/jobs/", [(b"cookie", f'yardmaster_session="{KEY}"'.encode())], [SESSION]),
        ("/jobs/", [(b"cookie", b'yardmaster_session="aaaaaaaaa\\000"')], []),
        ("/jobs/", [(b"cookie", b"yardmaster_session=shorter")], []),
        ("/jobs/", [(b"cookie", b"yardmaster_session=" + b"a" * 65)], []),
        ("/jobs/", [(b"cookie", b"not_yardmaster_session=" + KEY.encode())], []),
        ("/jobs/", [], []),
    ],
)
def test_what_is_asked_about(path, headers, expected):
    assert _credentials({"path": path, "headers": headers}) == expected


@pytest.mark.parametrize(
    ("header", "expected"),
    [
        (b"a=1; b=2", b"a=1; b=2"),
        (b'a=1; b="\\000"; c="3"', b'a=1; c="3"'),
        (b'a="\\\\\\', b""),
    ],
)
def test_cookies_with_escapes_are_dropped(header, expected):
    assert plain_cookies(header) == expected
