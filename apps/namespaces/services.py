"""Changes of namespaces, members and quotas. Every verb writes its audit event in its own transaction.

Not here: who may call it (the views ask `selectors.require_role`).
"""

from __future__ import annotations

from decimal import Decimal
from typing import Any, NotRequired, TypedDict

from django.db import IntegrityError, transaction
from django.utils import timezone

from apps.accounts.models import User
from apps.api.problems import ApiProblem, Conflict, Invalid, NotFound
from apps.audit.services import record
from apps.jobs.services import quota_changed
from apps.namespaces.models import Membership, Namespace, Quota, Role
from apps.namespaces.places import place_changed
from apps.namespaces.quotas import default_quota_create
from apps.namespaces.slugs import LONGEST, is_slug
from yardmaster.errors import Problem


class Limits(TypedDict):
    """What a namespace may hold at once; None: unlimited."""

    cpu: Decimal | None
    memory: int | None
    gpus: int | None
    storage: int | None
    running_jobs: int | None
    extended: NotRequired[dict[str, int]]
    """Of other resources, by name: those that are not named have no limit of their own. Left out: stays as it is."""
    priority_ceiling: NotRequired[int]
    """Never unlimited; left out: stays as it is."""


def team_create(*, slug: str, title: str, manager: User, actor: User) -> Namespace:
    """Make a team namespace with its first manager and the default quota."""
    if not is_slug(slug):
        message = f"A slug is 1 to {LONGEST} of a to z, 0 to 9 and inner hyphens, and must not look like an id."
        raise Invalid([Problem("slug", "invalid", message, "Choose something like vision-team.", slug)])
    try:
        with transaction.atomic():
            namespace = Namespace.objects.create(slug=slug, title=title)
            Membership.objects.create(namespace=namespace, user=manager, role=Role.MANAGER)
            default_quota_create(namespace)
            facts = {"slug": slug, "manager": manager.username}
            record(actor, "namespace.create", _name(namespace), namespace=namespace, **facts)
            place_changed(namespace.pk, timezone.now())
    except IntegrityError as error:
        taken = Problem("slug", "unique", "There is a namespace of this name already.", "Choose another.", slug)
        raise Invalid([taken]) from error
    return namespace


def title_change(*, namespace: Namespace, title: str, actor: User) -> Namespace:
    """Change what people read. The slug stays: it is in addresses and scripts."""
    with transaction.atomic():
        Namespace.objects.filter(pk=namespace.pk).update(title=title)
        record(actor, "namespace.change", _name(namespace), namespace=namespace, title=title)
    namespace.title = title
    return namespace


def member_add(*, namespace: Namespace, user: User, role: Role, actor: User) -> Membership:
    """Let a user in. With the same role already in: success; with another: 409, as that is a change."""
    _refuse_personal(namespace)
    with transaction.atomic():
        member, made = Membership.objects.get_or_create(namespace=namespace, user=user, defaults={"role": role})
        if made:
            record(actor, "member.add", _name(namespace), namespace=namespace, user=user.username, role=role.value)
        elif member.role != role:
            raise Conflict(f"{user.username} is a {member.role} already.", remedy="Change that role instead.")
    return member


def member_change(*, namespace: Namespace, user: User, role: Role, actor: User) -> Membership:
    """Give a member another role. The last manager stays one."""
    _refuse_personal(namespace)
    with transaction.atomic():
        member = _locked_member(namespace, user, goes=role != Role.MANAGER)
        if member.role != role:
            member.role = role
            member.save(update_fields=["role"])
            record(actor, "member.change", _name(namespace), namespace=namespace, user=user.username, role=role.value)
    return member


def member_remove(*, namespace: Namespace, user: User, actor: User) -> None:
    """Take a member out, who loses sight of the namespace at once. The last manager stays."""
    _refuse_personal(namespace)
    with transaction.atomic():
        _locked_member(namespace, user, goes=True).delete()
        record(actor, "member.remove", _name(namespace), namespace=namespace, user=user.username)


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
        raise Conflict(alone, remedy="Make another manager first.")
    return member


def _refuse_personal(namespace: Namespace) -> None:
    if namespace.owner_id is not None:
        raise ApiProblem(
            409,
            "personal_namespace",
            "A personal namespace has exactly its owner.",
            remedy="Work together in a team namespace: an administrator makes one.",
        )


def quota_set(*, namespace: Namespace, limits: Limits, actor: User, seen: Limits | None = None) -> Quota:
    """Set every limit. One below what is held now takes nothing away: it only admits nothing new.

    `seen` is what the actor had before their eyes: where it was changed since, 409 instead of undoing that.
    """
    with transaction.atomic():
        default_quota_create(namespace)
        quota = Quota.objects.select_for_update().get(pk=namespace.pk)
        if seen is not None and any(getattr(quota, name) != value for name, value in seen.items()):
            raise Conflict(
                "These limits were changed while you changed them. Nothing of yours is saved yet.",
                remedy="Look at what holds now, and set yours again.",
            )
        before = _facts(quota)
        for name, value in limits.items():
            setattr(quota, name, value)
        quota._history_user = actor  # type: ignore[attr-defined]  # where django-simple-history looks for it
        quota.save()
        record(actor, "quota.set", _name(namespace), namespace=namespace, before=before, after=_facts(quota))
        quota_changed(namespace)
        place_changed(namespace.pk, timezone.now())
    return quota


def _facts(quota: Quota) -> dict[str, Any]:
    amounts = {name: getattr(quota, name) for name in Limits.__annotations__}
    return {name: float(value) if isinstance(value, Decimal) else value for name, value in amounts.items()}


def _name(namespace: Namespace) -> str:
    return f"namespace:{namespace.pk}"
