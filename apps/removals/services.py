"""Locking a user out, with or without the jobs; and asking for a removal: the user is locked out and the namespace
closed at once; workers do the rest. Only administrators see removals.

Not here: the rest (`worker`).
"""

from __future__ import annotations

from collections.abc import Mapping
from uuid import UUID

from django.db import transaction
from django.db.models import QuerySet
from django.utils import timezone

from apps.accounts.models import User
from apps.accounts.services import user_change, user_lock_out
from apps.audit.services import record
from apps.dispatch.messages import CARRY_OUT_REMOVAL, enqueue
from apps.errors import Conflict, NotFound
from apps.jobs.services import jobs_stop_of
from apps.namespaces.models import Namespace
from apps.namespaces.service_accounts import service_accounts_end
from apps.removals.contents import account_contents, namespace_contents
from apps.removals.models import Data, Removal


def removals() -> QuerySet[Removal]:
    """All, also those that have ended. Whether the caller may see them is the caller's to check."""
    return Removal.objects.all()


def removal_by_id(removal_id: UUID) -> Removal:
    """404 where there is none."""
    removal = removals().filter(pk=removal_id).first()
    if removal is None:
        raise NotFound("There is no such removal.")
    return removal


def removal_under_way(namespace: Namespace) -> Removal | None:
    """The removal of this namespace that has not ended; None where there is none."""
    return removals().filter(namespace_id=namespace.pk, ended_at__isnull=True).first()


def user_lock(*, user: User, actor: User, stop_jobs: bool) -> int:
    """End every session, token and open WebSocket of the user, and let nothing in any more; `stop_jobs`: and stop the
    user's unfinished jobs in every namespace. Returns how many those were.

    The account is locked for good before the jobs are looked at: one that is being launched is refused, or found here.
    """
    if user.pk == actor.pk:
        raise Conflict("You cannot lock yourself out.", remedy="Ask another administrator.")
    if user.is_active:
        user_change(user=user, actor=actor, is_active=False)
    stopped = len(jobs_stop_of(user, actor)) if stop_jobs else 0
    record(actor, "user.lock", f"user:{user.pk}", name=user.username, stop_jobs=stop_jobs, stopped_jobs=stopped)
    return stopped


def user_remove(*, user: User, data: Data, actor: User) -> Removal:
    """Begin to remove a user with the personal namespace. Asked again while it is under way: the same removal; what was
    to be kept may then be asked to be deleted."""
    with transaction.atomic():
        account = account_contents(user)  # its sessions and tokens end with the next step
        user_lock_out(user=user, actor=actor)
        namespace = Namespace.objects.select_for_update().filter(owner=user).first()
        if namespace is None:
            raise Conflict(f"{user.username} has no namespace.", remedy="Delete the user.")
        return _begin(namespace, user, data, actor, account)


def namespace_remove(*, namespace: Namespace, data: Data, actor: User) -> Removal:
    """Begin to remove a team's namespace, in the same way."""
    if namespace.owner_id is not None:
        raise Conflict("This is a personal namespace.", "personal_namespace", remedy="Remove the user.")
    with transaction.atomic():
        return _begin(Namespace.objects.select_for_update().get(pk=namespace.pk), None, data, actor, {})


def _begin(namespace: Namespace, user: User | None, data: Data, actor: User, account: Mapping[str, int]) -> Removal:
    now = timezone.now()
    was_open = namespace.closed_at is None
    if was_open:
        Namespace.objects.filter(pk=namespace.pk).update(closed_at=now)
        service_accounts_end(namespace, actor)
    removal = Removal.objects.select_for_update().filter(namespace_id=namespace.pk, ended_at__isnull=True).first()
    if removal is None:
        removal = _made(namespace, user, data, actor, account)
    elif was_open or (data == Data.DELETE and removal.data != data):  # `was_open`: called off a moment ago
        Removal.objects.filter(pk=removal.pk).update(data=data, next_look_at=now)
        removal.data = data
    else:
        return removal
    what = "user.remove" if user is not None else "namespace.remove"
    subject = f"user:{user.pk}" if user is not None else f"namespace:{namespace.pk}"
    facts = {"name": removal.username or removal.slug, "data": data.value, "found": removal.found}
    record(actor, what, subject, namespace=namespace, **facts)
    enqueue(CARRY_OUT_REMOVAL, removal.pk)
    return removal


def _made(namespace: Namespace, user: User | None, data: Data, actor: User, account: Mapping[str, int]) -> Removal:
    now = timezone.now()
    return Removal.objects.create(
        namespace_id=namespace.pk,
        slug=namespace.slug,
        user_id=user.pk if user is not None else None,
        username=user.username if user is not None else "",
        data=data,
        asked_by_id=actor.pk,
        asked_by_name=actor.username,
        asked_at=now,
        next_look_at=now,
        found={**namespace_contents(namespace), **account},
    )
