"""What passes of headers, and what the proxy's own answers look like."""

from __future__ import annotations

import base64
import hashlib
import json
import re
import uuid

import pytest

from apps.workbench.proxy import answers, headers
from apps.workbench.proxy.contract import Refusal
from apps.workbench.proxy.limits import Limits

PREFIX = "/w/x/"


@pytest.mark.parametrize(
    ("sent", "passed"),
    [
        (b"a=1; Domain=example.com; Path=/", b"a=1; Path=/w/x/"),
        (b"a=1;domain=.example.com", b"a=1; Path=/w/x/"),
        (b"a=domain; DOMAIN ; HttpOnly", b"a=domain; HttpOnly; Path=/w/x/"),
        (b"a=1; Path=/; Domain=x; Domain=y; Secure", b"a=1; Secure; Path=/w/x/"),
        (b"a=1; DomainX=1; path=/w/x/api; Secure", b"a=1; DomainX=1; path=/w/x/api; Secure"),
        (b"a=1; Path=/w/x/; Path=/", b"a=1; Path=/w/x/"),
        (b"YardMaster_session=1", None),
        (b"__Host-yardmaster_csrf=1; Path=/", None),
        (b"=yardmaster_session=1", None),
    ],
)
def test_cookies_that_programs_set(sent: bytes, passed: bytes | None):
    found = [value for name, value in headers.to_browser([(b"set-cookie", sent)], PREFIX) if name == b"set-cookie"]
    assert found == ([] if passed is None else [passed])


def test_a_program_cannot_have_headers_of_the_proxy_left_out():
    sent = [
        (b"connection", b"content-security-policy, x-hop"),
        (b"x-hop", b"1"),
        (b"cross-origin-opener-policy", b"unsafe-none"),
    ]
    passed = headers.to_browser(sent, PREFIX)
    assert (b"content-security-policy", b"frame-ancestors 'self'") in passed
    assert (b"cross-origin-opener-policy", b"unsafe-none") in passed
    assert not {b"x-hop", b"connection"} & {name for name, _ in passed}


def test_the_scope_of_service_workers_stays_below_the_prefix():
    for scope, passes in ((b"/", False), (b"/w/", False), (b"/w/x/", True), (b"/w/x/static/", True)):
        sent = (b"service-worker-allowed", scope)
        assert (sent in headers.to_browser([sent], PREFIX)) is passes


def test_a_request_is_framed_once():
    assert headers.framing([(b"content-length", b"5"), (b"transfer-encoding", b"chunked")]) == [
        (b"transfer-encoding", b"chunked")
    ]
    assert headers.framing([(b"content-length", b"5")]) == [(b"content-length", b"5")]
    assert headers.framing([(b"x", b"y")]) == []


def test_a_refusal_is_a_page_for_people_and_json_for_programs():
    refusal = Refusal(
        503,
        "not_running",
        "<b>Stopped",
        "The session <s> does not run.",
        "Start it.",
        "https://yard/s/?a=1&b",
        "Its page",
    )
    sent, body = answers.answer(refusal, as_page=True)
    page, policy = body.decode(), dict(sent)[b"content-security-policy"].decode()
    assert "<b>" not in page.replace("<body>", "")
    assert "&lt;b&gt;Stopped" in page
    assert '<a href="https://yard/s/?a=1&amp;b">Its page</a>' in page
    (style,) = re.findall("<style>(.*?)</style>", page)
    assert f"'sha256-{base64.b64encode(hashlib.sha256(style.encode()).digest()).decode()}'" in policy
    assert "default-src 'none'" in policy
    assert dict(sent)[b"cache-control"] == b"no-store"
    sent, body = answers.answer(refusal, as_page=False)
    assert json.loads(body) == {
        "code": "not_running", "message": refusal.message, "remedy": "Start it.", "link": "https://yard/s/?a=1&b",
        "link_text": "Its page",
    }  # fmt: skip
    assert (
        "javascript" not in answers.answer(Refusal(503, "x", "x", "x", link="javascript:x"), as_page=True)[1].decode()
    )


@pytest.mark.parametrize(
    ("method", "sent", "is_page"),
    [
        ("GET", {b"accept": b"text/html,*/*"}, True),
        ("GET", {b"sec-fetch-mode": b"navigate"}, True),
        ("GET", {b"accept": b"*/*"}, False),
        ("POST", {b"accept": b"text/html"}, False),
    ],
)
def test_who_gets_a_page(method: str, sent: dict[bytes, bytes], is_page: bool):
    assert answers.wants_page(method, sent) is is_page


def test_counts_are_given_back():
    limits, user, others = Limits(of_user=2, of_session=3), uuid.uuid4(), [uuid.uuid4() for _ in range(3)]
    one, two = uuid.uuid4(), uuid.uuid4()
    with limits.hold(user, one), limits.hold(user, two):
        with pytest.raises(Refusal, match="You have 2"), limits.hold(user, one):
            pass
        with (
            limits.hold(others[0], one),
            limits.hold(others[1], one),
            pytest.raises(Refusal, match="The session has 3"),
            limits.hold(others[2], one),
        ):
            pass
    with limits.hold(user, one), limits.hold(user, one):
        pass
    assert not limits._open


def test_the_entrance_puts_preferences_where_there_are_none_and_leads_on():
    sent, body = answers.entrance("/w/x/?a=<b>", {"settings": {"autoReload": True}})
    policy = dict(sent)[b"content-security-policy"].decode()
    script = body.decode().partition("<script>")[2].partition("</script>")[0]
    digest = hashlib.sha256(script.encode()).digest()
    assert f"sha256-{base64.b64encode(digest).decode()}" in policy
    assert "<b>" not in script
    assert '"autoReload": true' in script
    assert [name for name, _ in sent].count(b"content-security-policy") == 1
