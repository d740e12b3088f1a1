"""The settings in force: each variable with its value, what counts without it, where it comes from, and what it is for;
and what of them is risky.

The words are those of `docs/settings.md`; which variables are read, and their defaults, the process noted at its start.
Not here: what of a value may be shown (`setting_values`).
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from urllib.parse import urlsplit

from django.conf import settings

from apps.administration.setting_values import NOT_SET, SET, is_secret, shown_value

ENVIRONMENT, DEFAULT, FILE = "environment", "default", "file"
_LOOPBACK = ("localhost", "127.0.0.1", "::1")
_NAMES = re.compile(r"`(YARDMASTER_[A-Z0-9_]+|…_[A-Z0-9_]+)`")


@dataclass(frozen=True)
class Described:
    """What the documentation says of a variable: its part of the page, what is so without it, and what it is for."""

    name: str
    part: str
    without: str
    purpose: str


@dataclass(frozen=True)
class SettingShown:
    """`value`: what is in force, as far as it may be shown. `source`: `environment`, `default` or `file`."""

    name: str
    part: str
    value: str
    default: str
    source: str
    is_secret: bool
    purpose: str


@dataclass(frozen=True)
class Risk:
    """`name`: the variable to change."""

    name: str
    message: str
    remedy: str


def settings_shown(search: str = "", changed: bool = False) -> list[SettingShown]:
    """In the order of the documentation; those that have `search` in their name or words, and with `changed` only those
    that the environment sets."""
    found = [_shown(one, os.environ) for one in described()]
    wanted = search.casefold().split()
    return [
        one
        for one in found
        if (not changed or one.source != DEFAULT)
        and all(word in f"{one.name} {one.part} {one.purpose}".casefold() for word in wanted)
    ]


def _shown(one: Described, environment: Mapping[str, str]) -> SettingShown:
    value, default = environment.get(one.name, ""), settings.YARDMASTER_DEFAULTS.get(one.name, "")
    source = ENVIRONMENT if value else DEFAULT
    if one.name == "YARDMASTER_SECRET_KEY" and not value:
        source, default = FILE, settings.SECRET_KEY
    shown = shown_value(one.name, value or default)
    if shown in (SET, NOT_SET) and source == DEFAULT:
        shown = one.without or NOT_SET
    return SettingShown(one.name, one.part, shown, one.without, source, is_secret(one.name), one.purpose)


@cache
def described() -> tuple[Described, ...]:
    """Every variable of the documentation, in its order."""
    return described_in(_page())


def _page() -> str:
    page = Path(settings.BASE_DIR) / "docs" / "settings.md"
    return page.read_text() if page.is_file() else ""


def described_in(text: str) -> tuple[Described, ...]:
    """The rows of the page's tables. A row may have several variables: `…_MEMORY` is like the first.
    Each has its own default where as many are given. Pure."""
    part, found = "", list[Described]()
    for line in text.splitlines():
        if line.startswith("## "):
            part = line.removeprefix("## ").strip()
        cells = [cell.strip() for cell in re.split(r"(?<!\\)\|", line)[1:-1]]
        if len(cells) != 3:
            continue
        names = _NAMES.findall(cells[0])
        stem = names[0].rsplit("_", 1)[0] if names else ""
        whole = [f"{stem}{one.removeprefix('…')}" if one.startswith("…") else one for one in names]
        own = [one.strip() for one in cells[1].split(",")]
        without = own if len(own) == len(whole) else [cells[1]] * len(whole)
        found += [
            Described(one, part or "General", _plain(default), _plain(cells[2]))
            for one, default in zip(whole, without, strict=True)
        ]
    return tuple(found)


def _plain(text: str) -> str:
    """Without the marks of links and code."""
    return re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", text).replace("`", "").replace("\\|", "|")


def risks() -> list[Risk]:
    """What an operator should know of the settings in force, the worst first."""
    url = urlsplit(settings.PUBLIC_URL)
    is_open = settings.YARDMASTER_SIGN_UP == "open"
    every = (
        (settings.DEBUG, "DEBUG", "Error pages show code and settings to everyone.", "Set it to 0."),
        (url.scheme == "http" and url.hostname not in _LOOPBACK, "PUBLIC_URL",
         "Passwords and cookies go over the network in the clear.", "Put TLS in front and write https://."),
        ("*" in settings.ALLOWED_HOSTS, "ALLOWED_HOSTS", "The portal answers to every host name, and may put a foreign "
         "one into links.", "Name the hosts."),
        (settings.YARDMASTER_LOCAL_ENGINE_FOR_ALL, "LOCAL_ENGINE_FOR_ALL",
         "Every user's scripts run as the portal's own user, and can read what it can.", "Use a cluster, or set 0."),
        (settings.YARDMASTER_WORKBENCH_SHARED_ORIGIN, "WORKBENCH_SHARED_ORIGIN",
         "What one Jupyter shows can act in the sessions of others.",
         "Set YARDMASTER_WORKBENCH_URL to an address with a *."),
        (is_open and not settings.YARDMASTER_SENDS_MAIL, "SIGN_UP",
         "Anyone can create an account, and no address is confirmed.", "Set YARDMASTER_EMAIL_URL, or invitation."),
        (is_open and settings.YARDMASTER_SENDS_MAIL, "SIGN_UP", "Anyone can create an account.",
         "Set YARDMASTER_SIGN_UP to invitation unless the portal is for everyone."),
        (not settings.YARDMASTER_SENDS_MAIL, "EMAIL_URL",
         "The portal sends no mail: no password resets and no notifications.", "Name a mail server."),
        (settings.YARDMASTER_REQUIRE_SECOND_FACTOR == "none", "REQUIRE_SECOND_FACTOR",
         "Two-step sign-in is not required, not even for administrators.", "Set administrators or all."),
        (not settings.YARDMASTER_TOKEN_LONGEST_LIFETIME, "TOKEN_LONGEST_LIFETIME", "Tokens may never expire.",
         "Set a longest lifetime."),
    )  # fmt: skip
    return [Risk(f"YARDMASTER_{name}", message, remedy) for is_so, name, message, remedy in every if is_so]
