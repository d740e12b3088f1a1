"""Which addresses a message may be sent to, as they are written."""

from __future__ import annotations

import ipaddress

import pytest

from yardmaster.errors import SpecRejected
from yardmaster.outgoing.targets import Policy, policy_of, shown, target_of

PUBLIC = Policy()


@pytest.mark.parametrize(
    "url",
    [
        "http://hooks.example.org/a",
        "ftp://hooks.example.org/a",
        "https://user:password@hooks.example.org/",
        "https://hooks.example.org@169.254.169.254/",
        "https://169.254.169.254/latest/meta-data",
        "https://127.0.0.1/",
        "https://127.1/",
        "https://0177.0.0.1/",
        "https://2130706433/",
        "https://0x7f000001/",
        "https://0x7f.0.0.1/",
        "https://127.0.0.1./",
        "https://localhost/",
        "https://localhost./",
        "https://hooks.example.org./",
        "https://service/",
        "https://db.internal/",
        "https://10.0.0.7/",
        "https://100.64.0.1/",
        "https://[::1]/",
        "https://[::ffff:127.0.0.1]/",
        "https://[64:ff9b::7f00:1]/",
        "https://[fe80::1%25eth0]/",
        "https://[fd00:ec2::254]/",
        "https://hooks.example.org:22/",
        "https://hooks.example.org:99999/",
        "https://hooks.example.org/a\r\nX-Other: 1",
        "https://hooks.example.org/a b",
        "https://hooks.example.org\\@127.0.0.1/",
        "https://hooks.example.org/#part",
        "https://höoks.example.org/",
        "https://",
        "",
        "https://hooks.example.org/" + "a" * 2_000,
    ],
)
def test_where_nothing_is_sent(url: str) -> None:
    with pytest.raises(SpecRejected) as caught:
        target_of(url, PUBLIC)
    (problem,) = caught.value.problems
    assert (problem.field, problem.code) == ("url", "address_not_allowed")
    assert problem.remedy
    assert "/a" not in problem.value, "a path may be a secret"


@pytest.mark.parametrize(
    "url", ["https://hooks.example.org", "https://Hooks.Example.org:8443/a?b=c", "https://8.8.8.8/"]
)
def test_where_it_may_be_sent(url: str) -> None:
    found = target_of(url, PUBLIC)
    assert found.host == found.host.lower()
    assert found.path.startswith("/")


def test_the_operator_names_hosts_and_networks() -> None:
    policy = policy_of(["hooks.lan", "other.lan:9000", "10.1.0.0/16"], allow_http=True, ports=frozenset({443, 80}))
    assert target_of("http://hooks.lan/", policy).port == 80
    assert target_of("https://other.lan:9000/", policy).host_header == "other.lan:9000"
    assert target_of("https://10.1.2.3/", policy).host == "10.1.2.3"
    for url in ("https://hooks.lan:9000/", "https://10.2.0.1/", "https://169.254.169.254/"):
        with pytest.raises(SpecRejected):
            target_of(url, policy)
    assert policy.may_connect("hooks.lan", 443, ipaddress.ip_address("192.168.1.1"))
    assert policy.may_connect("a.example.org", 443, ipaddress.ip_address("::ffff:10.1.0.1"))
    assert not policy.may_connect("a.example.org", 443, ipaddress.ip_address("192.168.1.1"))
    assert not policy.may_connect("hooks.lan", 443, ipaddress.ip_address("169.254.169.254"))
    with pytest.raises(ValueError, match="neither a host"):
        policy_of(["https://hooks.lan"])


def test_a_secret_address_is_masked() -> None:
    url = "https://hooks.slack.com/services/T000/B000/secretsecret"
    assert shown(url, is_secret=True) == "https://hooks.slack.com/…cret"
    assert shown("https://ci.example.org/in?token=abc", is_secret=False) == "https://ci.example.org/in?…"
