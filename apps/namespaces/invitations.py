"""Invitations: links by which people make themselves an account, join a team, or both. Every verb writes its audit
event in its own transaction.

An invitation counts as long as its maker may still invite: an administrator, or a manager of its team. Not here:
its page and its mail (`apps.people`), and who may make an account without one (`apps.accounts.sign_up`).
"""

from __future__ import annotations

import secrets
from dataclasses import dataclass
from datetime import datetime, timedelta
from uuid import UUID

from django.conf import settings
from django.core.exceptions import ValidationError
from django.core.validators import validate_email
from django.db import transaction
from django.db.models import Exists, F, OuterRef, Q, QuerySet
from django.utils import timezone

from apps.accounts.models import User
from apps.accounts.services import token_digest, user_create
from apps.api.allowances import take
from apps.audit.services import record
from apps.errors import Conflict, Gone, Invalid, NotFound, TooMany
from apps.namespaces.models import Invitation, InvitationUse, Membership, Namespace, Role
from apps.namespaces.selectors import may, refuse_closed, require_role
from apps.namespaces.services import member_add
from yardmaster.allowances import Allowance, Taking
from yardmaster.errors import Problem

DEFAULT_LASTS = timedelta(days=7)
LONGEST_LASTS = timedelta(days=90)
MOST_USES = 100
LONGEST_EMAIL = 254
MOST_PER_HOUR = 60
"""Invitations that one user may make: each may be a mail to a stranger."""
STATES = ["open", "used", "expired", "revoked", "void"]
_OVER = "This invitation is unknown, used, expired or revoked."
_HOUR = 3_600


@dataclass(frozen=True)
class Wish:
    """What an invitation shall be. `namespace` None: an account alone; `email` empty: for anyone with the link."""

    namespace: Namespace | None = None
    role: Role = Role.MEMBER
    email: str = ""
    lasts: timedelta = DEFAULT_LASTS
    uses: int = 1


def invitation_create(*, wish: Wish, actor: User, is_counted: bool = False) -> tuple[Invitation, str]:
    """Make one. Returns it and its token, which is never to be had again. Raises Invalid for what is out of bounds, and
    Forbidden, NotFound or Conflict where the actor may not invite there, or sign-up is closed. `is_counted`: it was
    taken from the actor's allowance already."""
    may_invite(actor, wish.namespace)
    _check(wish)
    if not is_counted:
        take_allowance(actor)
    token, now = secrets.token_urlsafe(32), timezone.now()
    with transaction.atomic():
        made = Invitation.objects.create(
            digest=token_digest(token), email=wish.email, namespace=wish.namespace, role=wish.role, uses=wish.uses,
            created_by=actor, created_at=now, expires_at=now + wish.lasts,
        )  # fmt: skip
        facts = {"email": wish.email, "uses": wish.uses, "role": wish.role.value if wish.namespace else ""}
        record(actor, "invitation.create", f"invitation:{made.pk}", namespace=wish.namespace, **facts)
    return made, token


def may_invite(actor: User, namespace: Namespace | None) -> None:
    """Raises Forbidden, NotFound or Conflict where the actor may not invite there, or sign-up is closed."""
    _refuse_closed_sign_up()
    _require_inviter(actor, namespace)


def take_allowance(actor: User, count: int = 1) -> None:
    """Count so many invitations of the actor. Raises TooMany where that is more than an hour allows."""
    taken = take([Taking(Allowance("invitations", MOST_PER_HOUR, _HOUR), str(actor.pk), count)])
    if taken.over is not None:
        raise TooMany(f"You may make {MOST_PER_HOUR} invitations an hour.", "rate_limited", wait=_HOUR)


def address_problem(field: str, email: str) -> Problem | None:
    """What is wrong with an address; None: it will do."""
    try:
        validate_email(email)
    except ValidationError:
        remedy = "Enter an address such as ada@example.org."
        return Problem(field, "invalid", "This is not an e-mail address.", remedy, email[:254])
    if len(email) > LONGEST_EMAIL:
        message = f"An address has at most {LONGEST_EMAIL} characters."
        return Problem(field, "too_long", message, "Check the address.", email[:254])
    return None


def invitation_revoke(*, invitation: Invitation, actor: User) -> None:
    """Let it be used no more. Revoked already: success. Those who used it stay."""
    with transaction.atomic():
        changed = Invitation.objects.filter(pk=invitation.pk, revoked_at=None).update(revoked_at=timezone.now())
        if changed:
            facts = {"used": invitation.used, "uses": invitation.uses}
            subject = f"invitation:{invitation.pk}"
            record(actor, "invitation.revoke", subject, namespace=invitation.namespace, **facts)


def invitations_visible(user: User) -> QuerySet[Invitation]:
    """All for administrators; for others those of the teams that they manage."""
    managing = Membership.objects.filter(
        namespace=OuterRef("namespace"), user=OuterRef("created_by"), role=Role.MANAGER
    )
    rows = Invitation.objects.select_related("namespace", "created_by").prefetch_related("used_by")
    rows = rows.annotate(maker_manages=Exists(managing))
    if user.is_staff:
        return rows
    managed = Membership.objects.filter(user=user, role=Role.MANAGER).values("namespace_id")
    return rows.filter(namespace__in=managed)


def invitation_for(user: User, invitation_id: UUID) -> Invitation:
    """One of those; 404 for any other."""
    found = invitations_visible(user).filter(pk=invitation_id).first()
    if found is None:
        raise NotFound("There is no such invitation.")
    return found


def invitation_look(token: str, now: datetime) -> Invitation | None:
    """The invitation if it could be used now. None if it is unknown, used, expired or revoked, its maker may no longer
    invite, its team is closed, or sign-up is closed: all of these look the same from outside."""
    if settings.YARDMASTER_SIGN_UP == "closed":
        return None
    rows = Invitation.objects.select_related("namespace", "created_by")
    found = rows.filter(_unspent(now), digest=token_digest(token)).first()
    return found if found is not None and _still_counts(found) else None


def invitation_accept(*, token: str, username: str, password: str, email: str = "") -> User:
    """Make an account, which joins the invitation's team. Of two at once for the last place exactly one gets it.

    Raises Gone where the invitation cannot be used, Conflict where it makes no accounts, Invalid for a name, address or
    password that will not do; then no place is used up.
    """
    now = timezone.now()
    with transaction.atomic():
        invitation = _claim(token, now)
        if not makes_accounts(invitation):
            raise Conflict(
                "This invitation is for people who have an account.", "needs_account", remedy="Sign in first."
            )
        user = user_create(username=username, password=password, email=email)
        _used(invitation, user, now)
    return user


def invitation_join(*, token: str, user: User) -> Namespace:
    """Join the invitation's team with an account that is there already. Raises Gone as above, Conflict where there is
    nothing to join or the user is a member already; then no place is used up."""
    now = timezone.now()
    with transaction.atomic():
        invitation = _claim(token, now)
        team = invitation.namespace
        if team is None:
            raise Conflict("You have an account already.", "has_account", remedy="Give the link to someone else.")
        if Membership.objects.filter(namespace=team, user=user).exists():
            raise Conflict(f"You are a member of {team.slug} already.", "is_member")
        _used(invitation, user, now)
    return team


def makes_accounts(invitation: Invitation) -> bool:
    """Whether people without an account may make one with it. Each account has a namespace with a quota of its own:
    where not everyone may sign up, a manager must not hand out quotas in the place of the administrators."""
    return invitation.created_by.is_staff or settings.YARDMASTER_SIGN_UP == "open"


def address_is_vouched_for(invitation: Invitation, email: str) -> bool:
    """Whether an administrator has given this address, so that its reader need not confirm it."""
    return bool(email) and invitation.created_by.is_staff and invitation.email.casefold() == email.casefold()


def state_of(invitation: Invitation, now: datetime) -> str:
    """`open`, `used`, `revoked`, `expired`, or `void`: its maker may no longer invite."""
    if invitation.revoked_at is not None:
        return "revoked"
    if invitation.used >= invitation.uses:
        return "used"
    if invitation.expires_at <= now:
        return "expired"
    return "open" if _still_counts(invitation) else "void"


def _claim(token: str, now: datetime) -> Invitation:
    """Take a place of the invitation, in the running transaction."""
    if settings.YARDMASTER_SIGN_UP == "closed":
        raise Gone(_OVER, "invitation_over")
    # Conditions on this row alone: PostgreSQL looks at them again when it has waited for another update of the row.
    mine = Invitation.objects.filter(_unspent(now), digest=token_digest(token))
    if not mine.update(used=F("used") + 1):
        raise Gone(_OVER, "invitation_over")
    rows = Invitation.objects.select_related("namespace", "created_by")
    invitation = rows.get(digest=token_digest(token))
    if not _still_counts(invitation):
        raise Gone(_OVER, "invitation_over")
    return invitation


def _used(invitation: Invitation, user: User, now: datetime) -> None:
    InvitationUse.objects.create(invitation=invitation, user=user, username=user.username, at=now)
    record(user, "invitation.use", f"invitation:{invitation.pk}", namespace=invitation.namespace, name=user.username)
    if invitation.namespace is not None:
        if Membership.objects.filter(namespace=invitation.namespace, user=user).exists():
            raise Conflict(f"You are a member of {invitation.namespace.slug} already.", "is_member")
        role = Role(invitation.role)
        member_add(namespace=invitation.namespace, user=user, role=role, actor=invitation.created_by, is_notified=False)


def _still_counts(invitation: Invitation) -> bool:
    maker, team = invitation.created_by, invitation.namespace
    if not maker.is_active or (team is not None and team.closed_at is not None):
        return False
    if maker.is_staff or team is None:
        return maker.is_staff
    known: bool | None = getattr(invitation, "maker_manages", None)  # lists have asked for all at once
    return may(maker, team, Role.MANAGER) if known is None else known


def _unspent(now: datetime) -> Q:
    return Q(revoked_at=None, expires_at__gt=now, used__lt=F("uses"))


def _refuse_closed_sign_up() -> None:
    if settings.YARDMASTER_SIGN_UP == "closed":
        raise Conflict(
            "Invitations are switched off on this portal.",
            "sign_up_closed",
            remedy="Create the user as an administrator, or set YARDMASTER_SIGN_UP=invitation.",
        )


def _require_inviter(actor: User, namespace: Namespace | None) -> None:
    """404 or 403 for those who may not. Administrators invite to any team, managers to their own."""
    if namespace is None:
        if not actor.is_staff:
            problem = Problem("namespace", "required", "Choose the team to join.", "Choose a team that you manage.")
            raise Invalid([problem])
        return
    require_role(actor, namespace, Role.MANAGER)
    refuse_closed(namespace)
    if namespace.owner_id is not None:
        raise Conflict("A personal namespace has one member, its owner.", "personal_namespace", remedy="Choose a team.")


def _check(wish: Wish) -> None:
    problems = []
    if not timedelta(hours=1) <= wish.lasts <= LONGEST_LASTS:
        message = f"An invitation lasts an hour to {LONGEST_LASTS.days} days."
        problems.append(Problem("expires_in", "invalid", message, "Choose a time in between.", str(wish.lasts)))
    if not 1 <= wish.uses <= MOST_USES:
        message = f"An invitation has 1 to {MOST_USES} uses."
        problems.append(Problem("uses", "invalid", message, "Choose a number in between.", str(wish.uses)))
    elif wish.email and wish.uses != 1:
        message = "An invitation to one address has one use."
        problems.append(Problem("uses", "one_address", message, "Set 1, or leave the address empty.", str(wish.uses)))
    if wish.email and (wrong := address_problem("email", wish.email)) is not None:
        problems.append(wrong)
    if problems:
        raise Invalid(problems)
