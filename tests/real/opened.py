"""A session of the workbench, opened as a browser opens it: signed in at the portal, by a ticket, with a cookie."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

import httpx2

PASSWORD = "correct horse battery"


def signed_in(url: str, name: str) -> str:
    """The cookies of this user's sign-in at the portal, as a header."""
    with httpx2.Client(base_url=url, follow_redirects=True, timeout=60) as client:
        page = client.get("/accounts/login/").text
        secret = page.partition('name="csrfmiddlewaretoken" value="')[2].partition('"')[0]
        form = {"login": name, "password": PASSWORD, "csrfmiddlewaretoken": secret}
        client.post("/accounts/login/", data=form, headers={"Referer": f"{url}/accounts/login/"})
        return "; ".join(f"{cookie.name}={cookie.value}" for cookie in client.cookies.jar)


@dataclass(frozen=True)
class Opened:
    """Where the session is reached by the cookie that was given for it."""

    at: str
    """The address of its port: what browsers make of a host below localhost."""
    host: str
    cookie: str
    session: str

    @property
    def prefix(self) -> str:
        return f"/w/{self.session}/"

    @property
    def headers(self) -> dict[str, str]:
        return {"Host": self.host, "Cookie": self.cookie}

    @contextmanager
    def client(self) -> Iterator[httpx2.Client]:
        """Paths are relative to the session's own."""
        address = f"{self.at}{self.prefix}"
        with httpx2.Client(base_url=address, headers=self.headers, timeout=120) as client:
            yield client


def opened(url: str, sign_in: str, session: str) -> Opened:
    """Open a session that is ready. `sign_in`: what `signed_in` gave."""
    with httpx2.Client(base_url=url, headers={"Cookie": sign_in}, timeout=60) as portal:
        place = urlsplit(portal.get(f"/sessions/{session}/open/").headers["Location"])
        begun = _at(place.geturl(), "")
        place = urlsplit(portal.get(begun.headers["Location"].removeprefix(url)).headers["Location"])
    entered = _at(place.geturl(), _cookie_of(begun))
    return Opened(f"http://127.0.0.1:{place.port}", place.netloc, _cookie_of(entered), session)


def _at(address: str, cookie: str) -> httpx2.Response:
    """Browsers find hosts below localhost themselves; other programs may not."""
    place = urlsplit(address)
    path = f"http://127.0.0.1:{place.port}{place.path}?{place.query}"
    return httpx2.get(path, headers={"Host": place.netloc, "Cookie": cookie}, timeout=60)


def _cookie_of(answer: httpx2.Response) -> str:
    return answer.headers["Set-Cookie"].partition(";")[0]


def socket_of(session: str) -> Path:
    """The unix socket on which the program of this session listens, behind its gate (Linux)."""
    wanted = f'"session": "{session}"'.encode()
    for process in Path("/proc").iterdir():
        if process.name.isdigit():
            try:
                told = (process / "environ").read_bytes()
            except OSError:
                continue
            names = dict(one.partition(b"=")[::2] for one in told.split(b"\0"))
            if wanted in names.get(b"YARDMASTER_PROGRAM", b"") and b"YARDMASTER_SERVICE_SOCKET" in names:
                return Path(os.fsdecode(names[b"YARDMASTER_SERVICE_SOCKET"]))
    raise LookupError(f"no process serves session {session}")
