"""What happens to namespaces when something happens to a user: every user has a personal one from the first moment, and
a team always has a manager.
"""

from __future__ import annotations

import secrets
from typing import Any

from django.db import IntegrityError, transaction
from django.db.models import Exists, OuterRef
from django.db.models.signals import post_save
from django.dispatch import receiver
from django.utils import timezone

from apps.accounts.models import User, user_activated, user_deleting, user_leaving
from apps.dispatch.messages import KEEP_NAMESPACE, enqueue
from apps.errors import Conflict
from apps.namespaces.models import Membership, Namespace, Role, default_quota_create, slug_of
from apps.namespaces.services import engine_namespaces_give_up, namespaces_open


def personal_namespace_create(user: User) -> Namespace:
    """Make the user's namespace with its membership and quota; where it is already there, return it."""
    if user.is_service:
        raise Conflict("A service account has no namespace of its own.", "service_account")
    existing = Namespace.objects.filter(owner=user).first()
    if existing is not None:
        return existing
    with transaction.atomic():
        namespace = _namespace_with_free_slug(user)
        Membership.objects.create(namespace=namespace, user=user, role=Role.MANAGER)
        default_quota_create(namespace)
        enqueue(KEEP_NAMESPACE, namespace.pk)
    return namespace


def _namespace_with_free_slug(user: User) -> Namespace:
    """The plain slug if it is free, then numbered ones, then random ones: ends also where many ask at once."""
    wanted = slug_of(user.username)
    candidates = [wanted, *(f"{wanted}-{n}" for n in range(2, 10)), *(f"{wanted}-{secrets.token_hex(5)}" for _ in "ab")]
    taken = set(Namespace.objects.filter(slug__in=candidates).values_list("slug", flat=True))
    for slug in (candidate for candidate in candidates if candidate not in taken):
        try:
            with transaction.atomic():  # a savepoint: another process may take the slug between the look and the insert
                return Namespace.objects.create(slug=slug, owner=user)
        except IntegrityError:
            continue
    raise IntegrityError(f"No slug is free for {wanted!r}.")


@receiver(post_save, sender=User)
def _make_personal_namespace(*, instance: User, created: bool, raw: bool = False, **_: Any) -> None:
    if created and not raw and not instance.is_service:
        personal_namespace_create(instance)


@receiver(user_activated)
def _open_personal_namespace(*, user: User, **_: Any) -> None:
    namespaces_open(Namespace.objects.filter(owner=user, closed_at__isnull=False), timezone.now())


@receiver(user_leaving)
def _refuse_only_manager(*, user: User, **_: Any) -> None:
    teams = Namespace.objects.filter(owner=None, memberships__user=user, memberships__role=Role.MANAGER)
    for team in teams.order_by("pk"):  # locked in one order: two managers who go at once must not both find the other
        Namespace.objects.select_for_update().get(pk=team.pk)
    managers = Membership.objects.filter(namespace=OuterRef("pk"), role=Role.MANAGER, user__is_active=True)
    others = managers.exclude(user=user)
    if orphan := teams.exclude(Exists(others)).first():
        raise Conflict(
            f"{user.username} is the only manager of {orphan.slug}.", remedy="Make another user its manager first."
        )


@receiver(user_deleting)
def _delete_personal_namespace(*, user: User, **_: Any) -> None:
    own = Namespace.objects.filter(owner=user)
    engine_namespaces_give_up(own.values_list("pk", flat=True), timezone.now())
    own.delete()
