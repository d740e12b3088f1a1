"""Accounts of programs: who may be one, what it may do, and the tokens that it works with.

A service account is a user whose one membership is that in the namespace that it belongs to, as viewer or member: every
check of the portal that asks for a role holds for it without a rule of its own. It has no password, address or session,
and its tokens always have scopes, of which none reaches administration: so it can make itself no token, and change
nothing of itself. Not here: who may call this (the views ask for the role of a manager).
"""

from __future__ import annotations

import re
from datetime import datetime, timedelta
from uuid import UUID

from django.conf import settings
from django.db import IntegrityError, transaction
from django.db.models import ProtectedError, QuerySet
from django.db.models.signals import post_delete
from django.dispatch import receiver
from django.utils import timezone

from apps.accounts.models import PersonalToken, User
from apps.accounts.services import token_create, token_lifetime, token_revoke, tokens_revoke_all
from apps.audit.services import record
from apps.errors import Conflict, Invalid, NotFound
from apps.namespaces.models import Membership, Namespace, Role, ServiceAccount
from yardmaster.errors import Problem

ROLES = (Role.VIEWER, Role.MEMBER)
SCOPES = ("read", "jobs", "data")
LONGEST_OVERLAP = timedelta(days=7)
OVERLAP = timedelta(days=1)
"""How long the old token stays valid beside the one that replaces it."""
_NAME = re.compile(r"[a-z0-9](?:[a-z0-9-]{0,38}[a-z0-9])?")


def service_accounts_of(namespace: Namespace) -> QuerySet[ServiceAccount]:
    """Those that are not deleted, with their users."""
    live = ServiceAccount.objects.filter(namespace=namespace, ended_at__isnull=True)
    return live.select_related("user", "made_by")


def service_account_in(namespace: Namespace, account_id: UUID) -> ServiceAccount:
    """404 for one of another namespace, and for one that was deleted."""
    found = service_accounts_of(namespace).filter(pk=account_id).first()
    if found is None:
        raise NotFound("There is no such service account in this namespace.")
    return found


def role_of_service(account: ServiceAccount) -> Role:
    """Its role in its namespace."""
    return Role(Membership.objects.get(user_id=account.user_id, namespace_id=account.namespace_id).role)


def roles_of(namespace: Namespace) -> dict[UUID, str]:
    """The roles of all service accounts of the namespace, by the id of their users."""
    rows = Membership.objects.filter(namespace=namespace, user__is_service=True)
    return dict(rows.values_list("user_id", "role"))


def service_account_create(
    *, namespace: Namespace, name: str, role: Role, description: str, actor: User
) -> ServiceAccount:
    """Make the account of a program. Raises Invalid for a name or role that will not do, Conflict in a personal
    namespace and where the namespace has as many as it may."""
    _refuse_personal(namespace)
    _refuse_wrong(name, role)
    username = f"{name}@{namespace.slug}"
    try:
        with transaction.atomic():
            _refuse_many(namespace)
            user = User(username=username, is_service=True, service_made_by=actor.username)
            user.set_unusable_password()
            user.save(force_insert=True)
            Membership.objects.create(namespace=namespace, user=user, role=role)
            account = ServiceAccount.objects.create(
                user=user, namespace=namespace, name=name, description=description, made_by=actor
            )
            _record(actor, "create", account, role=role.value)
    except IntegrityError as error:
        taken = Problem(
            "name", "unique", "A service account with this name exists, or existed.", "Choose another.", name
        )
        raise Invalid([taken]) from error
    return account


def service_account_change(*, account: ServiceAccount, role: Role, actor: User) -> None:
    """Give it another role: viewer or member."""
    if role not in ROLES:
        raise Invalid([_role_problem(role)])
    with transaction.atomic():
        member = Membership.objects.select_for_update().get(user_id=account.user_id, namespace_id=account.namespace_id)
        before = member.role
        if before != role:
            Membership.objects.filter(pk=member.pk).update(role=role)
            _record(actor, "change", account, role=role.value, role_before=before)


def service_account_delete(*, account: ServiceAccount, actor: User | None) -> None:
    """End its tokens and its access at once. Jobs that it launched continue, and keep its name: while there are any,
    the account stays, locked, and its name is taken. May be repeated."""
    with transaction.atomic():
        locked = ServiceAccount.objects.select_for_update().filter(pk=account.pk, ended_at__isnull=True).first()
        if locked is None:
            return
        tokens_revoke_all(user=account.user, actor=actor)
        Membership.objects.filter(user_id=account.user_id).delete()
        User.objects.filter(pk=account.user_id).update(is_active=False)
        _record(actor, "delete", account)
        try:
            with transaction.atomic():
                account.user.delete()
        except ProtectedError:
            ServiceAccount.objects.filter(pk=account.pk).update(ended_at=timezone.now())


def service_accounts_end(namespace: Namespace, actor: User | None) -> None:
    """Delete all of a namespace that is being removed."""
    for account in service_accounts_of(namespace):
        service_account_delete(account=account, actor=actor)


@receiver(post_delete, sender=ServiceAccount)
def _delete_user(instance: ServiceAccount, **facts: object) -> None:
    """It went with its namespace: nothing may work under its name any more."""
    User.objects.filter(pk=instance.user_id, is_service=True).delete()


# --- Tokens ----------------------------------------------------------------------------------------------------------


def service_tokens_of(account: ServiceAccount) -> QuerySet[PersonalToken]:
    """Its tokens, expired ones too."""
    tokens: QuerySet[PersonalToken] = PersonalToken.objects.filter(user_id=account.user_id)
    return tokens


def service_token_in(account: ServiceAccount, token_id: UUID) -> PersonalToken:
    """404 for any that is not one of this account's."""
    token = service_tokens_of(account).filter(pk=token_id).first()
    if token is None:
        raise NotFound("This service account has no such token.")
    return token


def service_token_create(
    *, account: ServiceAccount, name: str, scopes: list[str], expires_in: timedelta | None, actor: User
) -> tuple[PersonalToken, str]:
    """A new token and its secret, which is never to be had again. At least one scope, of read, jobs and data."""
    wrong = [scope for scope in scopes if scope not in SCOPES]
    if wrong or not scopes:
        message = "A token of a service account has scopes, and none of them is admin."
        raise Invalid([Problem("scopes", "scopes", message, f"Choose of {', '.join(SCOPES)}.", ", ".join(wrong))])
    with transaction.atomic():
        made = token_create(
            user=account.user, name=name, scopes=scopes, expires_in=token_lifetime(expires_in), maker=actor
        )
        _record(actor, "token", account, token=name, scopes=made[0].scopes)
    return made


def service_token_rotate(
    *, account: ServiceAccount, token: PersonalToken, overlap: timedelta, actor: User, now: datetime
) -> tuple[PersonalToken, str]:
    """A token like this one that lasts as long from now on; this one ends after the overlap, or at its own end where
    that is sooner. Raises Invalid for an overlap below zero or above a week."""
    if not timedelta(0) <= overlap <= LONGEST_OVERLAP:
        most = int(LONGEST_OVERLAP.total_seconds())
        said = str(int(overlap.total_seconds()))
        problem = Problem("overlap", "range", "The overlap is out of range.", f"Choose 0 to {most} seconds.", said)
        raise Invalid([problem])
    lasts = token.expiry - token.created if token.expiry is not None else None
    with transaction.atomic():
        locked = service_tokens_of(account).select_for_update().filter(pk=token.pk).first()
        if locked is None or (locked.expiry is not None and locked.expiry <= now):
            raise Conflict("This token has expired or was revoked.", "token_over", remedy="Create a new token.")
        made = service_token_create(
            account=account, name=token.name, scopes=token.scopes, expires_in=lasts, actor=actor
        )
        ends = now + overlap
        if locked.expiry is None or locked.expiry > ends:
            PersonalToken.objects.filter(pk=token.pk).update(expiry=ends)
        _record(actor, "rotate", account, token=token.name, overlap=int(overlap.total_seconds()))
    return made


def service_token_revoke(*, token: PersonalToken, actor: User, namespace: Namespace) -> None:
    """End it at once. May be repeated."""
    token_revoke(token=token, actor=actor, namespace=namespace)


def _refuse_personal(namespace: Namespace) -> None:
    if namespace.owner_id is not None:
        remedy = "Use a personal token there, or create the account in a team."
        raise Conflict("Service accounts belong to teams.", "personal_namespace", remedy=remedy)


def _refuse_wrong(name: str, role: Role) -> None:
    problems = []
    if not _NAME.fullmatch(name):
        message = "A name is 1 to 40 of a to z, 0 to 9 and inner hyphens."
        problems.append(Problem("name", "invalid", message, "Choose something like nightly-training.", name))
    if role not in ROLES:
        problems.append(_role_problem(role))
    if problems:
        raise Invalid(problems)


def _role_problem(role: Role) -> Problem:
    message = "A service account is a viewer or a member, never a manager."
    return Problem("role", "invalid", message, "Choose viewer or member.", str(role.value))


def _refuse_many(namespace: Namespace) -> None:
    """With the namespace locked: of two at once the second sees the first one's."""
    Namespace.objects.select_for_update().get(pk=namespace.pk)
    most: int = settings.YARDMASTER_SERVICE_ACCOUNTS_PER_NAMESPACE
    if service_accounts_of(namespace).count() >= most:
        raise Conflict(
            f"{namespace.slug} has {most} service accounts, as many as are allowed.",
            "too_many_service_accounts",
            remedy="Delete one that is no longer used.",
        )


def _record(actor: User | None, verb: str, account: ServiceAccount, **facts: object) -> None:
    subject = f"user:{account.user_id}"
    record(actor, f"service_account.{verb}", subject, namespace=account.namespace, name=account.user.username, **facts)
