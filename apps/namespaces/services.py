"""Changes of namespaces, members and quotas, and marks that something has changed for what engines keep for them:
workers that look after it find those (`apps.jobs.engines.namespaces`). Every verb writes its audit event in its own
transaction.

Not here: who may call it (the views ask `selectors.require_role`).
"""

from __future__ import annotations

import uuid
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime

from django.db import IntegrityError, transaction
from django.db.models import Q, QuerySet
from django.db.models.functions import Lower
from django.utils import timezone

from apps.accounts.models import User
from apps.audit.services import record
from apps.dispatch.messages import KEEP_NAMESPACE, enqueue
from apps.errors import Conflict, Invalid, NotFound
from apps.namespaces.managers import manager_left
from apps.namespaces.membership_events import ADDED, CHANGED, REMOVED, membership_changed
from apps.namespaces.models import (
    LONGEST_SLUG,
    EngineNamespace,
    Membership,
    Namespace,
    Role,
    default_quota_create,
    is_slug,
)
from yardmaster.errors import Problem

MOST_AT_ONCE = 200
"""Members that are added in one go."""


def team_create(
    *, slug: str, title: str, manager: User, actor: User, members: Sequence[str] = (), role: Role = Role.MEMBER
) -> Namespace:
    """Make a team namespace with its first manager and the default quota; and with these members by name, all of them
    or none: Invalid names every one that will not do."""
    if not is_slug(slug):
        message = f"A slug is 1 to {LONGEST_SLUG} of a to z, 0 to 9 and inner hyphens, and must not look like an id."
        raise Invalid([Problem("slug", "invalid", message, "Choose something like vision-team.", slug)])
    try:
        with transaction.atomic():
            namespace = Namespace.objects.create(slug=slug, title=title)
            Membership.objects.create(namespace=namespace, user=manager, role=Role.MANAGER)
            default_quota_create(namespace)
            facts = {"slug": slug, "manager": manager.username}
            record(actor, "namespace.create", _name(namespace), namespace=namespace, **facts)
            engine_namespaces_changed(namespace.pk, timezone.now())
            others = [name for name in members if name.casefold() != manager.username.casefold()]
            members_add(namespace=namespace, usernames=others, role=role, actor=actor)
    except IntegrityError as error:
        taken = Problem("slug", "unique", "A namespace with this name already exists.", "Choose another.", slug)
        raise Invalid([taken]) from error
    return namespace


def title_change(*, namespace: Namespace, title: str, actor: User) -> Namespace:
    """Change what people read. The slug stays: it is in addresses and scripts."""
    with transaction.atomic():
        Namespace.objects.filter(pk=namespace.pk).update(title=title)
        facts = {"title": title, "title_before": namespace.title}
        record(actor, "namespace.change", _name(namespace), namespace=namespace, **facts)
    namespace.title = title
    return namespace


def member_add(
    *, namespace: Namespace, user: User, role: Role, actor: User, is_notified: bool = True
) -> Membership:  # fmt: skip
    """Let a user in, who is told of it unless they came by themselves. With the same role already in: success; with
    another: 409, as that is a change."""
    _refuse_personal(namespace)
    _refuse_service(user)
    with transaction.atomic():
        member, made = Membership.objects.get_or_create(namespace=namespace, user=user, defaults={"role": role})
        if made:
            record(actor, "member.add", _name(namespace), namespace=namespace, user=user.username, role=role.value)
            if is_notified:
                membership_changed(ADDED, namespace, user, actor=actor, role=role)
        elif member.role != role:
            raise Conflict(f"{user.username} is a {member.role} already.", remedy="Change the role instead.")
    return member


def members_add(*, namespace: Namespace, usernames: Sequence[str], role: Role, actor: User) -> list[Membership]:
    """Let several users in, by name in any capitals: all or none. Members with the same role already: success. Raises
    Invalid that names everyone who is unknown, locked, or a member with another role."""
    _refuse_personal(namespace)
    wanted = {name.strip().lower(): name.strip() for name in usernames if name.strip()}
    if len(wanted) > MOST_AT_ONCE:
        message = f"{len(wanted)} names are more than {MOST_AT_ONCE}, the most at once."
        raise Invalid([Problem("members", "too_many", message, "Add them in several steps.")])
    with transaction.atomic():
        known = _users_named(wanted)
        roles = dict(namespace.memberships.filter(user__in=known.values()).values_list("user_id", "role"))
        problems = [_why_not(text, known.get(name), roles, role) for name, text in wanted.items()]
        if any(problems):
            raise Invalid([one for one in problems if one is not None])
        return [member_add(namespace=namespace, user=user, role=role, actor=actor) for user in known.values()]


def _users_named(wanted: Mapping[str, str]) -> dict[str, User]:
    """As written, or in other capitals: SQLite knows those of ASCII letters alone."""
    names = {lower: text for lower, text in wanted.items() if "\0" not in lower}
    rows = User.objects.filter(is_service=False).annotate(lower_name=Lower("username"))
    found = rows.filter(Q(lower_name__in=names.keys()) | Q(username__in=names.values())).order_by("pk")
    return {user.username.lower(): user for user in found}


def _why_not(text: str, user: User | None, roles: Mapping[uuid.UUID, str], role: Role) -> Problem | None:
    shown = text[:150]
    if user is None:
        return Problem("members", "unknown", f"There is no user {shown}.", value=shown)
    if not user.is_active:
        return Problem("members", "locked", f"{shown} is locked.", value=shown)
    if roles.get(user.pk, role) != role:
        return Problem("members", "other_role", f"{shown} is a {roles[user.pk]} already.", value=shown)
    return None


def member_change(*, namespace: Namespace, user: User, role: Role, actor: User | None, source: str = "") -> Membership:
    """Give a member another role. The last manager stays one. `source`: the provider whose groups say so."""
    _refuse_personal(namespace)
    _refuse_service(user)
    with transaction.atomic():
        member = _locked_member(namespace, user, goes=role != Role.MANAGER)
        if member.role != role:
            facts = {"user": user.username, "role": role.value, "role_before": member.role, **_from(source)}
            if member.role == Role.MANAGER:
                manager_left(namespace.pk, user)
            member.role = role
            member.save(update_fields=["role"])
            record(actor, "member.change", _name(namespace), namespace=namespace, **facts)
            membership_changed(
                CHANGED, namespace, user, actor=actor, source=source, role=role, role_before=facts["role_before"]
            )
    return member


def member_remove(*, namespace: Namespace, user: User, actor: User | None, source: str = "") -> None:
    """Take a member out, who loses sight of the namespace at once. The last manager stays. `source` as above."""
    _refuse_personal(namespace)
    _refuse_service(user)
    with transaction.atomic():
        member = _locked_member(namespace, user, goes=True)
        if member.role == Role.MANAGER:
            manager_left(namespace.pk, user)
        member.delete()
        facts = {"user": user.username, "role_before": member.role, **_from(source)}
        record(actor, "member.remove", _name(namespace), namespace=namespace, **facts)
        membership_changed(REMOVED, namespace, user, actor=actor, source=source, role_before=facts["role_before"])


def _from(source: str) -> dict[str, str]:
    return {"source": source} if source else {}


def _locked_member(namespace: Namespace, user: User, *, goes: bool) -> Membership:
    """The user's membership, with the namespace locked so that two managers cannot leave at the same moment."""
    Namespace.objects.select_for_update().get(pk=namespace.pk)
    members = {one.user_id: one for one in namespace.memberships.select_related("user")}
    member = members.get(user.pk)
    if member is None:
        raise NotFound("This user is not a member of the namespace.")
    managers = [one for one in members.values() if one.role == Role.MANAGER and one.user.is_active]
    if goes and managers == [member]:
        alone = f"{user.username} is the only manager of {namespace.slug}."
        raise Conflict(alone, remedy="Appoint another manager first.")
    return member


def _refuse_personal(namespace: Namespace) -> None:
    if namespace.owner_id is not None:
        raise Conflict(
            "A personal namespace has one member, its owner.",
            "personal_namespace",
            remedy="Use a team namespace instead. An administrator can create one.",
        )


def _refuse_service(user: User) -> None:
    if user.is_service:
        raise Conflict(
            f"{user.username} is the service account of a namespace, and no member of any other.",
            "service_account",
            remedy="Change or delete it among the service accounts of its namespace.",
        )


def _name(namespace: Namespace) -> str:
    return f"namespace:{namespace.pk}"


def engine_namespaces_changed(namespace_id: uuid.UUID, now: datetime) -> None:
    """Something that the engine namespaces depend on has changed: have them checked after the running transaction."""
    EngineNamespace.objects.filter(namespace_id=namespace_id).update(next_look_at=now, shaped_at=None)
    enqueue(KEEP_NAMESPACE, namespace_id)


def engine_namespaces_give_up(namespace_ids: Iterable[uuid.UUID], now: datetime) -> None:
    """Have all that engines keep for these namespaces removed, once the running transaction is committed."""
    for namespace_id in namespace_ids:
        EngineNamespace.objects.filter(namespace_id=namespace_id).update(goes=True, setbacks=0)
        engine_namespaces_changed(namespace_id, now)


def namespaces_open(closed: QuerySet[Namespace], now: datetime) -> None:
    """Let things begin in these namespaces again, with new engine namespaces."""
    for namespace in closed:
        Namespace.objects.filter(pk=namespace.pk).update(closed_at=None)
        EngineNamespace.objects.filter(namespace_id=namespace.pk).update(goes=False, left=[], setbacks=0)
        engine_namespaces_changed(namespace.pk, now)
