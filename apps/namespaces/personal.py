"""The namespace that every user has from the first moment."""

from __future__ import annotations

import secrets

from django.db import IntegrityError, transaction

from apps.accounts.models import User
from apps.dispatch.messages import KEEP_NAMESPACE, enqueue
from apps.namespaces.models import Membership, Namespace, Role
from apps.namespaces.quotas import default_quota_create
from apps.namespaces.slugs import slug_of


def personal_namespace_create(user: User) -> Namespace:
    """Make the user's namespace with its membership and quota; where it is already there, return it."""
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
            with transaction.atomic():  # a savepoint: somebody may take the slug between the look and the insert
                return Namespace.objects.create(slug=slug, owner=user)
        except IntegrityError:
            continue
    raise IntegrityError(f"No slug is free for {wanted!r}.")
