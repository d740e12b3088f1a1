"""Making, ending and letting in people; their tokens and one-time sign-in links.

Every verb writes its audit event in its own transaction. Not here: who may call it (the API's permissions).
"""

from __future__ import annotations

import hashlib
import secrets
from datetime import datetime, timedelta
from typing import Any

from allauth.account.models import EmailAddress
from django.conf import settings
from django.contrib.auth.password_validation import validate_password
from django.core.exceptions import ValidationError
from django.db import IntegrityError, transaction
from django.db.models import F, Model, ProtectedError, Q
from django.urls import reverse
from django.utils import timezone

from apps.accounts import models
from apps.accounts.models import DeviceSignIn, PersonalToken, SignInLink, User
from apps.accounts.open_sockets import sign_ins_changed
from apps.api.permissions import SCOPES
from apps.audit.changes import changes
from apps.audit.services import password_failure_record, record
from apps.errors import Conflict, Forbidden, Invalid
from yardmaster.errors import Problem

LINK_LASTS = timedelta(minutes=15)
_TAKEN = "Another user has this {} already (case is ignored)."


def user_create(
    *,
    username: str,
    password: str | None = None,
    email: str = "",
    is_staff: bool = False,
    first_name: str = "",
    last_name: str = "",
    actor: User | None = None,
) -> User:
    """Make a user with a personal namespace. Without a password only a one-time link lets the user in.

    Raises Invalid for a name, address or password that will not do.
    """
    user = User(username=username, email=email, is_staff=is_staff, first_name=first_name, last_name=last_name)
    _check(user, password)
    try:
        with transaction.atomic():
            made = User.objects.create_user(
                username, email, password, is_staff=is_staff, first_name=first_name, last_name=last_name
            )
            record(actor, "user.create", f"user:{made.pk}", username=made.username, is_staff=is_staff)
    except IntegrityError as error:
        raise Invalid(_taken(user) or [Problem("username", "unique", _TAKEN.format("name"))]) from error
    return made


def _check(user: User, password: str | None) -> None:
    user.username = User.normalize_username(user.username)
    user.email = User.objects.normalize_email(user.email)
    problems: list[Problem] = []
    try:
        user.clean_fields(exclude=["password"])
    except ValidationError as error:
        problems = [
            Problem(field, one.code or "invalid", message, value=str(getattr(user, field)))
            for field, errors in error.error_dict.items()
            for one in errors
            for message in one.messages
        ]
    problems = problems or _taken(user)
    if password is not None:
        try:
            validate_password(password, user)
        except ValidationError as error:
            problems += [Problem("password", "weak", message) for message in error.messages]
    if problems:
        raise Invalid(problems)


def _taken(user: User) -> list[Problem]:
    others = User.objects.exclude(pk=user.pk)
    problems = []
    if others.filter(username__iexact=user.username).exists():
        problems.append(Problem("username", "unique", _TAKEN.format("name"), "Choose another.", user.username))
    if user.email and others.filter(email__iexact=user.email).exists():
        problems.append(Problem("email", "unique", _TAKEN.format("address"), "Choose another.", user.email))
    return problems or name_and_address_problems(user)


def name_and_address_problems(user: User) -> list[Problem]:
    """Sign-in takes a name or an address, so that no name may be an address of another user, nor look like one. What
    the user has already is not refused: it may be older than this rule."""
    before = User.objects.filter(pk=user.pk).first()
    if before is None and "@" in user.username and user.username.casefold() != user.email.casefold():
        remedy = "Leave out the @, or use your own e-mail address."
        return [Problem("username", "looks_like_address", "A name cannot contain an @.", remedy, user.username)]
    is_new = bool(user.email) and (before is None or before.email.casefold() != user.email.casefold())
    if is_new and User.objects.exclude(pk=user.pk).filter(username__iexact=user.email).exists():
        return [Problem("email", "unique", "This address is another user's name.", "Choose another.", user.email)]
    return []


def first_administrator(*, username: str = "admin", email: str = "", password: str | None = None) -> str | None:
    """Make an administrator where there is none and return a one-time sign-in link; else do nothing and return None."""
    with transaction.atomic():
        if User.objects.filter(is_staff=True).exists():
            return None
        user = user_create(username=username, email=email, password=password, is_staff=True)
        return sign_in_link_create(user)


def user_change(*, user: User, actor: User | None, source: str = "", **said: Any) -> User:
    """Change any of email, first_name, last_name, is_staff, is_active. The last administrator stays one. `source`: the
    provider whose groups say so.

    Ending `is_active` ends every session and token of the user at once; beginning it again opens the personal namespace
    and calls off a removal that is under way.
    """
    unknown = said.keys() - {"email", "first_name", "last_name", "is_staff", "is_active"}
    if unknown:
        raise TypeError(f"user_change knows no {sorted(unknown)}")
    with transaction.atomic():
        # Locked in one order, so that two administrators who demote each other at once do not leave none.
        administrators = list(_administrators().order_by("pk").select_for_update())
        user = User.objects.select_for_update().get(pk=user.pk)
        was_active = user.is_active
        before = {f"{name}_before": _fact(getattr(user, name)) for name in said}
        for name, value in said.items():
            setattr(user, name, value)
        if user in administrators and len(administrators) == 1 and not (user.is_staff and user.is_active):
            raise Conflict(
                f"{user.username} is the only administrator left.", remedy="Make another user an administrator first."
            )
        _check(user, None)
        if "email" in said:
            user.pending_email = ""
        _save(user, [*said, "pending_email"])
        if was_active and not user.is_active:
            _lock_out(user)
            models.user_deactivated.send(User, user=user)
        if user.is_active and not was_active:
            models.user_activated.send(User, user=user)
        facts = {name: _fact(value) for name, value in said.items()} | ({"source": source} if source else {})
        if said:
            record(actor, "user.change", f"user:{user.pk}", **facts, **before)
    return user


def _save(user: User, fields: list[str]) -> None:
    try:
        with transaction.atomic():
            user.save(update_fields=fields)
    except IntegrityError as error:  # taken since it was checked
        raise Invalid(_taken(user)) from error


def _fact(value: Any) -> Any:
    return value if isinstance(value, (bool, str, int)) else str(value)


def _administrators() -> Any:
    return User.objects.filter(is_staff=True, is_active=True)


def profile_change(
    *, user: User, first_name: str | None = None, last_name: str | None = None, time_zone: str | None = None
) -> User:
    """What people change of themselves; None leaves a value as it is."""
    said = {"first_name": first_name, "last_name": last_name, "time_zone": time_zone}
    with transaction.atomic():
        before = User.objects.select_for_update().values(*said).get(pk=user.pk)
        wanted = {name: before[name] if value is None else value for name, value in said.items()}
        for name, value in wanted.items():
            setattr(user, name, value)
        user.save(update_fields=[*wanted])
        if facts := changes(before, wanted):
            record(user, "user.change", f"user:{user.pk}", **facts)
    return user


def password_confirmed(user: User, password: str) -> bool:
    """Whether this is the user's present password. A wrong one is recorded."""
    is_right = user.check_password(password)
    if not is_right:
        password_failure_record(user)
    return is_right


def address_refuse(user: User, email: str) -> None:
    """Raise Invalid for an address that will not do, or is another user's."""
    before, user.email = user.email, email
    try:
        _check(user, None)
    finally:
        user.email = before


def address_change(*, user: User, email: str) -> User:
    """Give the user another address, or none. Raises Invalid for one that will not do or is another user's."""
    with transaction.atomic():
        before, user.email, user.pending_email = user.email, email, ""
        _check(user, None)
        _save(user, ["email", "pending_email"])
        # Where sign-up noted addresses, allauth signs in and resets passwords by those as well.
        EmailAddress.objects.filter(user=user).delete()
        record(user, "user.change", f"user:{user.pk}", email=user.email, email_before=before)
    return user


def _lock_out(user: User) -> None:
    """End every session, token and link of the user; also those that would wake when the user is activated again."""
    User.objects.filter(pk=user.pk).update(sign_in_epoch=F("sign_in_epoch") + 1)
    PersonalToken.objects.filter(user=user).delete()
    SignInLink.objects.filter(user=user).delete()
    DeviceSignIn.objects.filter(user=user).delete()
    sign_ins_changed(user.pk)


def user_sign_out(*, user: User, actor: User) -> None:
    """End every session, token and link of the user, who may sign in again at once."""
    with transaction.atomic():
        User.objects.select_for_update().get(pk=user.pk)
        _lock_out(user)
        record(actor, "user.sign_out", f"user:{user.pk}", name=user.username)


def user_lock_out(*, user: User, actor: User) -> None:
    """Let the user in no more, as the first step of a removal. 409 where that would orphan a team or the portal."""
    _refuse_oneself(user, actor)
    models.user_leaving.send(User, user=user)
    if user.is_active:
        user_change(user=user, actor=actor, is_active=False)


def user_delete(*, user: User, actor: User | None) -> None:
    """Remove a user and the personal namespace for good, also from where engines keep it. 409 while either holds
    anything, or a team has no other manager; nothing is removed then. `actor` None: the portal, for a user who has
    left."""
    _refuse_oneself(user, actor)
    try:
        with transaction.atomic():
            models.user_leaving.send(User, user=user)
            models.user_deleting.send(User, user=user)
            subject = f"user:{user.pk}"
            user.delete()
            record(actor, "user.delete", subject, username=user.username)
    except ProtectedError as error:
        kinds = sorted({str(one._meta.verbose_name_plural) for one in error.protected_objects})
        raise Conflict(
            f"{user.username} still has {', '.join(kinds)}.",
            "not_empty",
            remedy="Delete these first, or remove the user, which stops the jobs and keeps or deletes the data.",
        ) from error


def _refuse_oneself(user: User, actor: User | None) -> None:
    if actor is not None and user.pk == actor.pk:
        raise Conflict("You cannot delete yourself.", remedy="Ask another administrator.")


def token_lifetime_default() -> timedelta:
    """How long a token lasts whose maker names no time: never longer than one may ask for."""
    longest: timedelta = settings.YARDMASTER_TOKEN_LONGEST_LIFETIME
    default: timedelta = settings.YARDMASTER_TOKEN_LIFETIME
    return min(default, longest) if longest else default


def token_lifetime(wish: timedelta | None) -> timedelta | None:
    """The time that a person asks for a token; None: until it is revoked. Raises Invalid for more than is allowed."""
    longest: timedelta = settings.YARDMASTER_TOKEN_LONGEST_LIFETIME
    if not longest or (wish is not None and wish <= longest):
        return wish
    most = int(longest.total_seconds())
    message = (
        "This exceeds the longest token lifetime on this portal." if wish else "Tokens must expire on this portal."
    )
    value = "null" if wish is None else str(int(wish.total_seconds()))
    raise Invalid([Problem("expires_in", "too_long", message, f"Ask for at most {most} seconds.", value)])


def token_create(
    *, user: User, name: str, scopes: list[str], expires_in: timedelta | None, maker: User | None = None
) -> tuple[PersonalToken, str]:
    """A new personal token and its secret, which is never to be had again. `expires_in` None: until it is revoked;
    `maker`: who makes one for a program's account."""
    unknown = [scope for scope in scopes if scope not in SCOPES]
    if unknown:
        known = f"Known scopes are {', '.join(SCOPES)}; none means full access."
        raise Invalid(
            [Problem("scopes", "unknown", f"There is no scope {scope!r}.", known, scope) for scope in unknown]
        )
    with transaction.atomic():
        _refuse_ended(user, User.objects.select_for_update().get(pk=user.pk))
        _refuse_many_tokens(user)
        token, secret = PersonalToken.objects.create(
            user, expiry=expires_in, name=name, scopes=[scope for scope in SCOPES if scope in scopes], made_by=maker,
            made_by_name=maker.username if maker else "",
        )  # fmt: skip
        record(user, "token.create", f"token:{token.pk}", name=name, scopes=token.scopes)
    return token, secret


def token_refuse_service(user: User) -> None:
    """Raises Forbidden for a program's account: its tokens are the managers' of its namespace to make."""
    if user.is_service:
        raise Forbidden("A service account cannot create tokens.", "Ask a manager of its namespace.")


def _refuse_ended(asking: User, now: User) -> None:
    """A request that was under way when its user was locked or signed out everywhere, or got another password, makes
    no token after that: it would outlive what ended all of them."""
    if (now.is_active, now.password, now.sign_in_epoch) != (True, asking.password, asking.sign_in_epoch):
        raise Forbidden("You were signed out in the meantime.", "Sign in again.", "signed_out")


def _refuse_many_tokens(user: User) -> None:
    """Expired ones go first."""
    tokens, most = PersonalToken.objects.filter(user=user), settings.YARDMASTER_TOKENS_PER_USER
    if tokens.count() >= most:
        tokens.filter(expiry__lte=timezone.now()).delete()
    if tokens.count() >= most:
        raise Conflict(
            f"You have {most} tokens, as many as are allowed.",
            "too_many_tokens",
            remedy="Revoke some on the page Tokens of your account, or all with yardmaster tokens revoke --all.",
        )


def token_revoke(*, token: PersonalToken, actor: User, namespace: Model | None = None) -> None:
    """End a token at once. Already gone: success. `namespace`: that of a program's account."""
    with transaction.atomic():
        deleted, _ = PersonalToken.objects.filter(pk=token.pk).delete()
        if deleted:
            sign_ins_changed(token.user_id)
            record(actor, "token.revoke", f"token:{token.pk}", namespace=namespace, name=token.name)


def tokens_revoke_all(*, user: User, actor: User | None) -> int:
    """End every token of the user at once, and one that is being made; how many there were. `actor` None: the
    portal."""
    with transaction.atomic():
        User.objects.select_for_update().filter(pk=user.pk).first()
        tokens = PersonalToken.objects.filter(user=user)
        count = len(tokens.values_list("pk", flat=True).select_for_update())
        tokens.delete()
        DeviceSignIn.objects.filter(user=user).delete()  # one that is confirmed has yet to collect its token
        sign_ins_changed(user.pk)
        if count:
            record(actor, "token.revoke_all", f"user:{user.pk}", name=user.username, count=count)
    return count


def sign_in_link_create(user: User, *, actor: User | None = None) -> str:
    """An absolute address that signs the user in once, within 15 minutes."""
    if user.is_service:
        raise Conflict("A service account cannot sign in.", "service_account", remedy="Create a token for it.")
    token = secrets.token_urlsafe(32)
    now = timezone.now()
    with transaction.atomic():
        SignInLink.objects.filter(user=user, expires_at__lt=now - timedelta(days=1)).delete()
        SignInLink.objects.create(user=user, digest=token_digest(token), expires_at=now + LINK_LASTS)
        record(actor, "sign_in_link.create", f"user:{user.pk}")
    return f"{settings.PUBLIC_URL}{reverse('sign_in_link', args=[token])}"


def sign_in_link_look(token: str, now: datetime) -> SignInLink | None:
    """The link if it would let its user in now; None if it is unknown, used, expired, or its user is locked out."""
    live = SignInLink.objects.filter(_unspent(now), digest=token_digest(token), user__is_active=True)
    return live.select_related("user").first()


def sign_in_link_use(token: str, now: datetime) -> User | None:
    """Spend the link. Of any number of calls at once exactly one gets the user, the others None."""
    with transaction.atomic():
        # Conditions on this row alone: one on the user would become a subquery, which PostgreSQL does not look at again
        # when it has waited for another update of the row, and every one of several at once would succeed.
        if not SignInLink.objects.filter(_unspent(now), digest=token_digest(token)).update(used_at=now):
            return None
        user = User.objects.get(sign_in_links__digest=token_digest(token))
        if not user.is_active:
            return None
        record(user, "sign_in_link.use", f"user:{user.pk}")
    return user


def _unspent(now: datetime) -> Q:
    return Q(used_at=None, expires_at__gt=now)


def token_digest(token: str) -> str:
    """What is stored of the token of a link."""
    # A fast hash will do: the token is 256 random bits, which cannot be guessed.
    return hashlib.sha256(token.encode(errors="replace")).hexdigest()
