"""Which teams a user belongs to by the groups that an OpenID provider names. Pure.

Not here: reading groups (`apps.accounts.openid`), and applying what is decided (`apps.namespaces.provider_teams`).
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any

_RANK = {"viewer": 0, "member": 1, "manager": 2}
MOST_GROUPS = 1_000
LONGEST_GROUP = 200


@dataclass(frozen=True)
class TeamRole:
    """What a group gives: a role in a team, by its short name."""

    team: str
    role: str


def groups_in(claim: Any) -> frozenset[str]:
    """The groups that a claim names; whatever is no list of names is none."""
    names = [claim] if isinstance(claim, str) else claim if isinstance(claim, list) else []
    return frozenset(one for one in names[:MOST_GROUPS] if isinstance(one, str) and 0 < len(one) <= LONGEST_GROUP)


def wanted_roles(groups: Collection[str], mapping: Mapping[str, Collection[TeamRole]]) -> dict[str, str]:
    """The role in each team by its short name: the highest that any of the groups gives."""
    found: dict[str, str] = {}
    for group in groups:
        for one in mapping.get(group, ()):
            if one.team not in found or _RANK[one.role] > _RANK[found[one.team]]:
                found[one.team] = one.role
    return found
