"""Who may do what: every address of the portal, asked with every method by everyone. What came out is kept in
`authorisation.txt`, a line per address and method, and read by people; the test compares, and checks what must always
hold. A new address has no line there, so that the build fails until someone has looked at it.

    YARDMASTER_MATRIX=new pytest tests/integration/security/test_authorisation.py -k everyone

adds the lines of new addresses, and drops those of old ones; with `write` every line is asked and written again, in
minutes. Read the difference before it is committed.

A letter per person: `A` allowed, `B` allowed so far, and refused for what the request says (400, 409, …), `F`
forbidden, `H` hidden (404, as if it were not there), `L` sent to sign in (401), `-` not this method.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from django.conf import settings
from django.shortcuts import resolve_url
from django.urls import URLPattern, get_resolver

FILE = Path(__file__).with_name("authorisation.txt")
PEOPLE = ("anonymous", "stranger", "viewer", "member", "manager", "administrator")
SCOPES = ("read", "jobs", "data", "admin")
"""Tokens of the administrator, each with this one scope. `service`: a service account that is a member of the team; its
token has every scope that such an account may have."""
WHO = (*PEOPLE, "service", *SCOPES)

OTHERS = {
    "api/<path:rest>": "no address at all: always 404",
    "storage/objects/<path:key>": "the signature in the address decides: test_delivery",
    "storage/parts/<str:upload_id>/<int:part>": "the signature in the address decides: test_delivery",
    "healthz": "no answer depends on who asks",
    "readyz": "no answer depends on who asks",
}
"""Addresses that do not ask who calls, and what decides there."""


@dataclass(frozen=True)
class Route:
    """An address with `{…}` for ids, and a method."""

    pattern: str
    method: str

    def __str__(self) -> str:
        return f"{self.method:6} /{self.pattern}"

    @property
    def is_api(self) -> bool:
        return self.pattern.startswith("api/")

    @property
    def is_safe(self) -> bool:
        return self.method == "GET"

    @property
    def is_task(self) -> bool:
        return self.pattern.startswith("api/v1/task/")


def patterns(resolver: object = None, prefix: str = "") -> Iterator[tuple[str, URLPattern]]:
    """Every address of the portal."""
    for one in (resolver or get_resolver()).url_patterns:  # type: ignore[attr-defined]
        text = f"{prefix}{str(one.pattern).removeprefix('^').removesuffix('$')}"
        if isinstance(one, URLPattern):
            yield text, one
        else:
            yield from patterns(one, text)


def routes() -> list[Route]:
    """Every address with every method that its view may have, in order."""
    found = []
    for text, pattern in patterns():
        if text in OTHERS:
            continue
        view = getattr(pattern.callback, "view_class", None) or getattr(pattern.callback, "cls", None)
        methods = [one for one in ("get", "post", "put", "patch", "delete") if hasattr(view, one)]
        if view is None or not text.startswith("api/"):
            methods = ["get", "post"]
        found += [Route(text, one.upper()) for one in methods]
    return sorted(set(found), key=lambda one: (one.pattern, one.method))


def letter(status: int, location: str) -> str:
    """What an answer says of who asked."""
    if status == 401 or (status == 302 and location.startswith(resolve_url(settings.LOGIN_URL))):
        return "L"
    if status == 405:
        return "-"
    return {403: "F", 404: "H"}.get(status, "A" if status < 400 else "B")


def table_read(file: Path = FILE) -> dict[str, dict[str, str]]:
    """The kept answers: for each route a letter per person."""
    found = {}
    for line in file.read_text().splitlines():
        if line and not line.startswith("#"):
            name, _, letters = line.rpartition("  ")
            found[name.rstrip()] = dict(zip(WHO, letters.split(), strict=True))
    return found


def table_write(rows: dict[str, dict[str, str]], file: Path = FILE) -> None:
    widest = max(map(len, rows), default=0)
    head = f"# {'':{max(widest - 2, 0)}}  {' '.join(WHO)}"
    lines = [f"{name:{widest}}  {' '.join(rows[name][who] for who in WHO)}" for name in rows]
    file.write_text("\n".join([head, *lines]) + "\n")
