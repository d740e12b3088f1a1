"""What a removal would do, before it is asked for: what goes and what is kept, for both choices, and what speaks
against it. Reads rows; changes nothing.

A preview is of its moment: the removal counts again (`worker`), and its report says what became of everything. Not
here: counting (`contents`).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from django.db.models import Exists, OuterRef

from apps.accounts.models import User
from apps.errors import Conflict
from apps.jobs.models import Job
from apps.namespaces.models import Membership, Namespace, Role
from apps.removals.contents import (
    KINDS,
    jobs_by_phase,
    namespace_contents,
    of_account,
    removed_of,
    volume_bytes,
)
from apps.removals.models import Data

MOST_TEAMS = 50
KEPT = ("jobs", "datasets", "code", "models", "uploads", "bytes")
"""Kinds that stay in the closed namespace where data are to be kept; homes of Jupyters do so in a team's."""
WITH_THE_NAMESPACE = ("environments", "templates", "schedules", "sessions", "members")
"""Kinds that stay as long as their namespace does."""
OF_THE_ACCOUNT = ("memberships", "invitations")
"""Kinds that stay as long as the account does, locked. Its tokens and browsers end in any case."""


@dataclass(frozen=True)
class Fate:
    """What becomes of everything under one choice, by kind. `account_stays`: why the account stays locked, or empty."""

    data: str
    removed: Mapping[str, int]
    kept: Mapping[str, int]
    account_stays: str = ""


@dataclass(frozen=True)
class Preview:
    """`name` must be typed to confirm. `blockers` say why it would be refused now; empty: nothing speaks against it."""

    name: str
    is_user: bool
    namespace: Namespace
    jobs_by_phase: Mapping[str, int]
    found: Mapping[str, int]
    volume_bytes: int
    jobs_in_teams: int
    """Jobs that the user launched in teams: they stay, and so does their owner's name."""
    orphaned_teams: tuple[str, ...]
    """Teams that would be without a manager."""
    blockers: tuple[str, ...]
    fates: tuple[Fate, Fate]
    """Under `keep` and under `delete`."""


def user_preview(user: User, actor: User) -> Preview:
    """What removing the user would do. Raises Conflict for a user without a namespace, whom one deletes instead."""
    own = Namespace.objects.filter(owner=user).first()
    if own is None:
        raise Conflict(f"{user.username} has no namespace.", remedy="Delete the user.")
    phases = jobs_by_phase(own)
    jobs_in_teams = Job.objects.filter(owner=user).exclude(namespace=own)
    found = namespace_contents(own, phases, {**of_account(user), "jobs_in_teams": jobs_in_teams})
    in_teams = found.pop("jobs_in_teams")
    orphaned = teams_without_manager(user)
    return Preview(
        name=user.username, is_user=True, namespace=own, jobs_by_phase=phases, found=found,
        volume_bytes=volume_bytes(own), jobs_in_teams=in_teams, orphaned_teams=orphaned,
        blockers=_blockers(user, actor, orphaned),
        fates=(fate_of(found, Data.KEEP, jobs_in_teams=in_teams), fate_of(found, Data.DELETE, jobs_in_teams=in_teams)),
    )  # fmt: skip


def team_preview(namespace: Namespace) -> Preview:
    """What removing the team would do. Raises Conflict for a personal namespace."""
    if namespace.owner_id is not None:
        raise Conflict("This is a personal namespace.", "personal_namespace", remedy="Remove the user.")
    phases = jobs_by_phase(namespace)
    found = namespace_contents(namespace, phases)
    return Preview(
        name=namespace.slug, is_user=False, namespace=namespace, jobs_by_phase=phases, found=found,
        volume_bytes=volume_bytes(namespace), jobs_in_teams=0, orphaned_teams=(), blockers=(),
        fates=(fate_of(found, Data.KEEP, is_team=True), fate_of(found, Data.DELETE, is_team=True)),
    )  # fmt: skip


def fate_of(found: Mapping[str, int], data: str, *, is_team: bool = False, jobs_in_teams: int = 0) -> Fate:
    """What of this goes and what is kept. Pure. The namespace stays, closed, as long as data stay in it; the account
    stays, locked, as long as its namespace does or a team's job has its name."""
    kinds = (*KEPT, *(("homes",) if is_team else ()))
    kept = {kind: found[kind] for kind in kinds if found.get(kind)} if data == Data.KEEP else {}
    if kept:
        kept |= {kind: found[kind] for kind in WITH_THE_NAMESPACE if found.get(kind)}
    why = ""
    if not is_team and kept:
        why = "Its namespace keeps data."
    elif jobs_in_teams:
        has = "job in teams has it as its" if jobs_in_teams == 1 else "jobs in teams have it as their"
        why = f"{jobs_in_teams} {has} owner."
    if why:
        kept |= {kind: found[kind] for kind in OF_THE_ACCOUNT if found.get(kind)}
    return Fate(str(data), removed_of(found, kept), kept, why)


def teams_without_manager(user: User) -> tuple[str, ...]:
    """The teams of which the user is the only manager who can sign in, by slug."""
    mine = Membership.objects.filter(user=user, role=Role.MANAGER, namespace__owner=None)
    managers = Membership.objects.filter(namespace=OuterRef("namespace"), role=Role.MANAGER, user__is_active=True)
    alone = mine.exclude(Exists(managers.exclude(user=user)))
    return tuple(alone.order_by("namespace__slug").values_list("namespace__slug", flat=True)[:MOST_TEAMS])


def _blockers(user: User, actor: User, orphaned: tuple[str, ...]) -> tuple[str, ...]:
    found = [
        f"{user.username} is the only manager of {slug}. Make another user its manager first." for slug in orphaned
    ]
    if user.pk == actor.pk:
        found.append("You cannot remove yourself. Ask another administrator.")
    return tuple(found)


def preview_json(preview: Preview) -> dict[str, Any]:
    """The preview as the API gives it."""
    return {
        "name": preview.name,
        "namespace": preview.namespace.pk,
        "jobs_by_phase": dict(preview.jobs_by_phase),
        "found": {kind: preview.found[kind] for kind in KINDS if kind in preview.found},
        "volume_bytes": preview.volume_bytes,
        "jobs_in_teams": preview.jobs_in_teams,
        "orphaned_teams": list(preview.orphaned_teams),
        "blockers": list(preview.blockers),
        "keep": _fate_json(preview.fates[0]),
        "delete": _fate_json(preview.fates[1]),
    }


def _fate_json(fate: Fate) -> dict[str, Any]:
    return {"removed": dict(fate.removed), "kept": dict(fate.kept), "account_stays": fate.account_stays}
