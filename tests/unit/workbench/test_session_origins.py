"""Which address is whose."""

from __future__ import annotations

import uuid

import pytest
from django.core.exceptions import ImproperlyConfigured

from apps.workbench.proxy.origins import default, origins, prefix_of, session_in
from portal import env

PORTAL = "http://127.0.0.1:8080"
ID = uuid.UUID("01234567-89ab-cdef-0123-456789abcdef")
OTHER = uuid.UUID("fedcba98-7654-3210-fedc-ba9876543210")


@pytest.mark.parametrize(
    ("setting", "origin", "cookie"),
    [
        ("http://*.localhost:8081", f"http://{ID.hex}.localhost:8081", "yardmaster_workbench=v; Path=/; "),
        (
            "https://*.Workbench.example.com/",
            f"https://{ID.hex}.workbench.example.com",
            "__Host-yardmaster_workbench=v; Path=/; ",
        ),
        ("https://*.w.example.com:443", f"https://{ID.hex}.w.example.com", "__Host-yardmaster_workbench=v; Path=/; "),
        ("http://10.0.0.5:8081", "http://10.0.0.5:8081", f"yardmaster_workbench_{ID.hex}=v; Path=/w/{ID}/; "),
        ("http://[fd00::5]:8081", "http://[fd00::5]:8081", f"yardmaster_workbench_{ID.hex}=v; Path=/w/{ID}/; "),
        ("http://127.0.0.1:8081", "http://127.0.0.1:8081", f"yardmaster_workbench_{ID.hex}=v; Path=/w/{ID}/; "),
    ],
)
def test_where_a_session_is_and_what_its_cookie_is_called(setting: str, origin: str, cookie: str):
    places = origins(setting, PORTAL)
    assert places.of(ID) == origin
    assert places.url(ID) == f"{origin}/w/{ID}/"
    secure = "; Secure" if origin.startswith("https") else ""
    assert places.cookie(ID).header("v") == f"{cookie}HttpOnly; SameSite=Lax{secure}"
    host = origin.partition("://")[2]
    assert places.is_ours(host)
    assert places.is_ours(host.upper())
    assert places.session_at(host, f"/w/{ID}/x") == ID
    assert places.session_at(host, f"/w/{OTHER}/x") == (None if places.each_its_own else OTHER)


@pytest.mark.parametrize(
    ("setting", "host"),
    [
        ("http://*.localhost:8081", "localhost:8081"),
        ("http://*.localhost:8081", "*.localhost:8081"),
        ("http://*.localhost:8081", f"{ID.hex}.localhost"),
        ("http://*.localhost:8081", f"{ID.hex}.localhost:8080"),
        ("http://*.localhost:8081", f"{ID}.localhost:8081"),
        ("http://*.localhost:8081", f"x.{ID.hex}.localhost:8081"),
        ("http://*.localhost:8081", f"{ID.hex}.localhost:8081@evil.example"),
        ("http://*.localhost:8081", f"{ID.hex}.localhost.:8081"),
        ("http://*.localhost:8081", ""),
        ("http://10.0.0.5:8081", "10.0.0.5"),
        ("http://10.0.0.5:8081", "10.0.0.5:8080"),
        ("http://10.0.0.5:8081", "evil.example:8081"),
        ("http://10.0.0.5:80", "10.0.0.5:81"),
    ],
)
def test_hosts_of_others(setting: str, host: str):
    assert not origins(setting, PORTAL).is_ours(host)


def test_paths_of_sessions():
    assert session_in(prefix_of(ID)) == session_in(f"/w/{ID}") == session_in(f"/w/{ID}/a/../b") == ID
    for path in (
        "/",
        "/w/",
        f"/W/{ID}/",
        f"/w/{ID.hex}/",
        f"/w/{str(ID).upper()}/",
        f"//w/{ID}/",
        f"/w/{ID}x",
        f"/w/{ID}%2f",
    ):
        assert session_in(path) is None, path


def test_the_cookie_is_found_among_others():
    cookie = origins("http://*.localhost:8081", PORTAL).cookie(ID)
    assert cookie.found_in("a=b; yardmaster_workbench=x.y=; c=d") == ["x.y="]
    assert cookie.found_in("yardmaster_workbench=of a script; yardmaster_workbench=ours") == ["of a script", "ours"]
    assert cookie.found_in("yardmaster_workbench_x=1; xyardmaster_workbench=2") == []


@pytest.mark.parametrize(
    "wrong",
    [
        "localhost:8081",
        "ftp://*.localhost",
        "http://",
        "http://*.localhost:8081/w",
        "http://user@localhost:8081",
        "http://a*.localhost",
        "http://a.*.localhost",
        "http://*",
        "http://*.localhost:99999",
        "http://b ad:8081",
        "http://127.0.0.1:8080",
    ],
)
def test_what_is_no_setting(wrong: str, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("YARDMASTER_WORKBENCH_URL", wrong)
    with pytest.raises(ImproperlyConfigured, match=r"YARDMASTER_WORKBENCH_URL=.* cannot be used: .+"):
        env.workbench("YARDMASTER_WORKBENCH_URL", PORTAL)


def test_the_same_host_as_the_portal_needs_another_port():
    for setting, portal in (("https://yard.example.com", "https://yard.example.com:443/"), ("http://a", "http://A:80")):
        with pytest.raises(ValueError, match="the portal's own address"):
            origins(setting, portal)
    assert origins("http://a:8081", "http://a:8080").port == 8081


@pytest.mark.parametrize(
    ("portal", "expected"),
    [
        ("http://127.0.0.1:8080", "http://*.localhost:8081"),
        ("http://localhost:9000", "http://*.localhost:9001"),
        ("http://[::1]:8080", "http://*.localhost:8081"),
        ("http://10.0.0.5:8080", "http://10.0.0.5:8081"),
        ("https://yard.example.com", "https://yard.example.com:444"),
        ("http://[fd00::5]:8080", "http://[fd00::5]:8081"),
    ],
)
def test_where_nothing_is_set(portal: str, expected: str):
    assert default(portal) == expected
    assert origins(expected, portal).of(ID).startswith(expected.replace("*", ID.hex))


@pytest.mark.parametrize(
    ("setting", "portal", "can"),
    [
        ("http://*.localhost:8081", "http://127.0.0.1:8080", False),
        ("http://*.localhost:8081", "http://localhost:8080", False),
        ("http://127.0.0.1:8081", "http://127.0.0.1:8080", True),
        ("http://10.0.0.5:8081", "http://10.0.0.5:8080", True),
        ("http://10.0.0.6:8081", "http://10.0.0.5:8080", False),
        ("http://[fd00::5]:8081", "http://[fd00::5]:8080", True),
        ("http://portal:8081", "http://portal:8080", True),
        ("http://*.portal:8081", "http://portal:8080", False),
        ("http://*.portal.lan:8081", "http://portal.lan:8080", True),
        ("http://*.sessions.example.org", "http://portal.example.org", True),
        ("http://*.example.org", "http://a.b.example.org", True),
        ("http://*.example-sessions.org", "http://portal.example.org", False),
        ("https://*.sessions.example.org", "https://portal.example.org", False),
        ("https://portal.example.org:8443", "https://portal.example.org", False),
    ],
)
def test_who_can_set_cookies_of_the_portal(setting: str, portal: str, can: bool):
    assert origins(setting, portal).can_set_cookies_of_portal() is can
