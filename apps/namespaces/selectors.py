"""What a user may see of namespaces, and with which role. A foreign namespace and an unknown one are the same 404."""

from __future__ import annotations

from collections.abc import Sequence
from uuid import UUID

from django.db.models import OuterRef, QuerySet, Subquery

from apps.accounts.models import User
from apps.audit.services import reading_record
from apps.errors import Conflict, Forbidden, NotFound
from apps.namespaces.models import Membership, Namespace, Quota, Role, default_quota_create, is_slug, is_uuid
from apps.namespaces.personal import personal_namespace_create


def reading_note(reader: User, noun: str, subject_id: UUID, namespace: Namespace) -> None:
    """Record that this user has read something of the namespace, where they may only as an administrator. One row per
    thing and hour; may be repeated."""
    if not reader.is_staff or namespace.owner_id == reader.pk:
        return
    members = Membership.objects.filter(user=reader, namespace=namespace)
    reading_record(reader, noun, subject_id, namespace, namespace.slug, unless=members.exists)


_RANK = {Role.VIEWER: 0, Role.MEMBER: 1, Role.MANAGER: 2}


def namespaces_visible(user: User) -> QuerySet[Namespace]:
    """Those the user is a member of; all for administrators."""
    if user.is_staff:
        return Namespace.objects.all()
    # A subquery, not a join: a join could show a namespace twice, and spoils the order by primary key.
    return Namespace.objects.filter(pk__in=Membership.objects.filter(user=user).values("namespace_id"))


def namespaces_with_role(user: User) -> QuerySet[Namespace]:
    """The visible ones, each with the user's role in it as `my_role` (None: seen as an administrator)."""
    mine = Membership.objects.filter(namespace=OuterRef("pk"), user=user).values("role")[:1]
    return namespaces_visible(user).annotate(my_role=Subquery(mine))


def shares_of(user: User, most: int = 100) -> list[Namespace]:
    """The namespaces the user is a member of, newest first, with `my_role` and quota; not those an administrator merely
    sees."""
    mine = Membership.objects.filter(user=user).values("namespace_id")
    return list(namespaces_with_role(user).select_related("quota").filter(pk__in=mine).order_by("-pk")[:most])


def members_of(namespace: Namespace) -> QuerySet[Membership]:
    """People: accounts of programs are no members (`service_accounts.service_accounts_of`)."""
    return Membership.objects.filter(namespace=namespace, user__is_service=False).select_related("user")


def namespace_for(user: User, ref: str | UUID | None, *, at_least: Role = Role.VIEWER) -> Namespace:
    """The namespace by id or slug (None: the user's own, or that of a program's account). 404 where it is unknown or
    foreign, 403 where the user's role is too low."""
    if ref is None or ref == "":
        own = _own_of(user)
        if user.is_service:  # it may be no more than a viewer there
            require_role(user, own, at_least)
        return own
    text = str(ref)
    if is_uuid(text):
        found = namespaces_visible(user).filter(pk=UUID(text)).first()
    else:
        found = namespaces_visible(user).filter(slug=text).first() if is_slug(text) else None
    if found is None:
        raise NotFound(
            "There is no such namespace, or you are not a member of it.",
            remedy="`GET /api/v1/namespaces/` lists yours; omit the namespace to use your personal one.",
        )
    require_role(user, found, at_least)
    reading_note(user, "namespace", found.pk, found)
    return found


def _own_of(user: User) -> Namespace:
    """The user's own namespace; of a program's account the one that it works in."""
    if user.is_service:
        found = Namespace.objects.filter(memberships__user=user).first()
        if found is None:
            raise NotFound("This service account was deleted.")
        return found
    return Namespace.objects.filter(owner=user).first() or personal_namespace_create(user)


def role_of(user: User, namespace: Namespace) -> Role | None:
    """The user's role; administrators have the highest everywhere. None: not a member."""
    if user.is_staff:
        return Role.MANAGER
    role = Membership.objects.filter(user=user, namespace=namespace).values_list("role", flat=True).first()
    return Role(role) if role is not None else None


def role_in(user: User, namespace: Namespace, shares: Sequence[Namespace]) -> Role | None:
    """The user's role in a namespace that they may see, by the shares that were read already."""
    if user.is_staff:
        return Role.MANAGER
    mine = next((one for one in shares if one.pk == namespace.pk), None)
    return None if mine is None else Role(mine.my_role)  # type: ignore[attr-defined]  # an annotation


def require_role(user: User, namespace: Namespace, at_least: Role) -> None:
    """404 for a stranger, 403 for a member whose role is too low, 409 where the namespace is closed and this takes more
    than reading, else nothing. Administrators may still clear up in a closed one."""
    require_known_role(user, role_of(user, namespace), namespace, at_least)


def require_known_role(user: User, role: Role | None, namespace: Namespace, at_least: Role) -> None:
    """The same where the user's role was read already."""
    if role is None:
        raise NotFound()
    if _RANK[role] < _RANK[at_least]:
        raise Forbidden(
            f"This needs the role {at_least.value} in {namespace.slug}. You have the role {role.value}.",
            f"Ask a manager of {namespace.slug} for the role {at_least.value}.",
        )
    if at_least != Role.VIEWER and not user.is_staff:
        refuse_closed(namespace)


def refuse_closed(namespace: Namespace) -> None:
    """409 for a namespace that is being removed, or of which only the data were kept: nothing new begins there."""
    if namespace.closed_at is not None:
        raise Conflict(
            f"The namespace {namespace.slug} is closed: it was removed, or is being removed.",
            "namespace_closed",
            remedy="Use another namespace.",
        )


def may(user: User, namespace: Namespace, at_least: Role) -> bool:
    """Whether the user's role is this one or a higher one."""
    role = role_of(user, namespace)
    return role is not None and _RANK[role] >= _RANK[at_least]


def quota_of(namespace: Namespace) -> Quota:
    """The namespace's quota; made with the defaults where it is absent."""
    return default_quota_create(namespace)


def quota_shown(namespace: Namespace) -> Quota:
    """The same, as `shares_of` or an earlier call has read it a moment ago: for pages, not for decisions."""
    known: Quota | None = namespace._state.fields_cache.get("quota")
    if known is None:
        known = namespace._state.fields_cache["quota"] = quota_of(namespace)
    return known
