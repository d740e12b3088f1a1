"""Memberships that come from the groups of an OpenID provider follow them at each sign-in; those that people have set
are left as they are. Not here: which role a group gives (`yardmaster.provider_groups`).
"""

from __future__ import annotations

import logging
from typing import Any

from django.dispatch import receiver

from apps.accounts.models import User, groups_claimed
from apps.audit.services import record
from apps.errors import Conflict
from apps.namespaces.membership_events import ADDED, membership_changed
from apps.namespaces.models import Membership, Namespace, Role
from apps.namespaces.services import member_change, member_remove
from yardmaster.provider_groups import wanted_roles

log = logging.getLogger(__name__)


@receiver(groups_claimed)
def _follow_groups(*, user: User, source: str, groups: frozenset[str], mapping: Any, **_: Any) -> None:
    """The last manager of a team stays one. Teams that do not exist, or are closed, give nothing."""
    wanted = wanted_roles(groups, mapping)
    mine = {one.namespace_id: one for one in Membership.objects.filter(user=user).select_related("namespace")}
    teams = Namespace.objects.filter(slug__in=wanted, owner=None, closed_at=None)
    for team in teams.order_by("pk"):
        role, member = Role(wanted[team.slug]), mine.get(team.pk)
        if member is None:
            Membership.objects.create(namespace=team, user=user, role=role, source=source)
            facts = {"user": user.username, "role": role.value, "source": source}
            record(None, "member.add", f"namespace:{team.pk}", namespace=team, **facts)
            membership_changed(ADDED, team, user, actor=None, source=source, role=role)
        elif member.source == source and member.role != role:
            _try(
                lambda team=team, role=role: member_change(
                    namespace=team, user=user, role=role, actor=None, source=source
                )
            )
    for member in mine.values():
        if member.source == source and member.namespace.slug not in wanted:
            _try(lambda member=member: member_remove(namespace=member.namespace, user=user, actor=None, source=source))


def _try(change: Any) -> None:
    try:
        change()
    except Conflict as problem:
        log.warning("A group was not followed: %s", problem.detail)
