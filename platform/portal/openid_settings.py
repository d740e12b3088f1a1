"""OpenID providers, from the JSON file that `YARDMASTER_OIDC_FILE` names. What is wrong in it stops the start.

Not here: signing in (`apps.accounts.openid`).
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from django.core.exceptions import ImproperlyConfigured

from yardmaster.provider_groups import TeamRole

_ID = re.compile(r"[a-z0-9](?:[a-z0-9-]{0,30}[a-z0-9])?")
_ROLES = ("viewer", "member", "manager")


@dataclass(frozen=True)
class OpenIdProvider:
    """One provider, as the operator describes it."""

    id: str
    issuer: str
    client_id: str
    secret: str
    title: str
    scopes: tuple[str, ...] = ("openid", "profile", "email")
    trust_email: bool = False
    """A confirmed address of this provider signs in to the account that has it already."""
    create_users: bool = True
    sends_auth_time: bool = True
    """Its ID tokens say when the user signed in. False: that it asks again is taken for granted when a change has to be
    confirmed."""
    groups_claim: str = "groups"
    teams: Mapping[str, tuple[TeamRole, ...]] = field(default_factory=dict)
    administrators: tuple[str, ...] = ()
    allowed_groups: tuple[str, ...] = ()
    allowed_domains: tuple[str, ...] = ()


def providers(path: str) -> dict[str, OpenIdProvider]:
    """By id. No path: none."""
    if not path:
        return {}
    try:
        read = json.loads(Path(path).read_text())
    except (OSError, ValueError) as error:
        raise ImproperlyConfigured(f"YARDMASTER_OIDC_FILE={path!r} cannot be read as JSON: {error}") from error
    if not isinstance(read, dict):
        raise ImproperlyConfigured(f"YARDMASTER_OIDC_FILE={path!r} must be an object of providers by their id.")
    return {name: _provider(name, one, Path(path).parent) for name, one in read.items()}


def as_allauth(found: Mapping[str, OpenIdProvider]) -> dict[str, Any]:
    """`SOCIALACCOUNT_PROVIDERS`."""
    apps = [
        {
            "provider_id": one.id, "name": one.title, "client_id": one.client_id, "secret": one.secret,
            "settings": {"server_url": one.issuer, "scope": list(one.scopes), "oauth_pkce_enabled": True},
        }
        for one in found.values()
    ]  # fmt: skip
    return {"openid_connect": {"APPS": apps}}


def _provider(name: str, said: Any, folder: Path) -> OpenIdProvider:
    if not _ID.fullmatch(name) or not isinstance(said, dict):
        raise _wrong(name, "an id has a to z, 0 to 9 and inner hyphens, and its value is an object")
    known = {*OpenIdProvider.__dataclass_fields__, "secret_file"} - {"id"}
    if unknown := sorted(said.keys() - known):
        raise _wrong(name, f"there is no {unknown[0]!r}; known are {', '.join(sorted(known))}")
    issuer = str(said.get("issuer", "")).rstrip("/")
    if not re.fullmatch(r"https?://\S+", issuer) or not said.get("client_id"):
        raise _wrong(name, "it needs an issuer (https://…) and a client_id")
    lists = ("scopes", "administrators", "allowed_groups", "allowed_domains")
    values: dict[str, Any] = {key: tuple(map(str, said[key])) for key in lists if key in said}
    values |= {key: said[key] is True for key in ("trust_email", "create_users", "sends_auth_time") if key in said}
    if "groups_claim" in said:
        values["groups_claim"] = str(said["groups_claim"])
    return OpenIdProvider(
        id=name, issuer=issuer, client_id=str(said["client_id"]), secret=_secret(name, said, folder),
        title=str(said.get("title", name)), teams=_teams(name, said.get("teams", {})), **values,
    )  # fmt: skip


def _secret(name: str, said: Mapping[str, Any], folder: Path) -> str:
    if "secret_file" not in said:
        return str(said.get("secret", ""))
    try:
        return (folder / str(said["secret_file"])).read_text().strip()
    except OSError as error:
        raise _wrong(name, f"secret_file cannot be read: {error}") from error


def _teams(name: str, said: Any) -> dict[str, tuple[TeamRole, ...]]:
    """`{"ml": {"team": "vision", "role": "member"}}`; a group may give several."""
    found: dict[str, tuple[TeamRole, ...]] = {}
    for group, roles in said.items() if isinstance(said, dict) else ():
        every = roles if isinstance(roles, list) else [roles]
        for one in every:
            if not isinstance(one, dict) or not one.get("team") or one.get("role", "member") not in _ROLES:
                raise _wrong(name, f"teams: {group!r} gives a team and a role of {', '.join(_ROLES)}")
        found[group] = tuple(TeamRole(str(one["team"]), str(one.get("role", "member"))) for one in every)
    return found


def _wrong(name: str, why: str) -> ImproperlyConfigured:
    return ImproperlyConfigured(f"YARDMASTER_OIDC_FILE: the provider {name!r}: {why}.")
