"""The browsers in which a person is signed in: noting them, listing them, ending them; and recording who signed in,
failed to, or signed out, and whose password is another, whatever way it went.

What is recorded comes by signals of Django's and allauth's, connected when the portal starts. Not here: how sessions
begin (allauth, `pages`), and personal tokens (`services`).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID

from allauth.account.signals import password_changed, password_reset, password_set
from django.conf import settings
from django.contrib.auth import HASH_SESSION_KEY, SESSION_KEY, update_session_auth_hash
from django.contrib.auth.signals import user_logged_in, user_logged_out, user_login_failed
from django.contrib.sessions.models import Session
from django.core.cache import caches
from django.db import IntegrityError, transaction
from django.db.models import F
from django.db.models.signals import post_delete
from django.dispatch import receiver
from django.http import HttpRequest, HttpResponseBase
from django.utils import timezone
from django.utils.crypto import constant_time_compare

from apps.accounts.models import Browser, User
from apps.accounts.open_sockets import sign_ins_changed
from apps.accounts.second_factor import way_of
from apps.accounts.selectors import users_reached_by
from apps.accounts.use_notes import best_effort
from apps.audit.services import record, sign_in_failure_record
from apps.audit.whence import address_of, agent_of
from apps.errors import NotFound

_BROWSERS = (
    # A request that also claims to be another user stands before them.
    ("Edg", "Edge"),
    ("OPR/", "Opera"),
    ("SamsungBrowser", "Samsung Internet"),
    ("Firefox/", "Firefox"),
    ("FxiOS", "Firefox"),
    ("CriOS", "Chrome"),
    ("Chromium/", "Chromium"),
    ("Chrome/", "Chrome"),
    ("Safari/", "Safari"),
    ("curl/", "curl"),
    ("python-", "a Python program"),
)
_SYSTEMS = (
    ("iPhone", "iPhone"),
    ("iPad", "iPad"),
    ("Android", "Android"),
    ("CrOS", "ChromeOS"),
    ("Windows", "Windows"),
    ("Mac OS X", "macOS"),
    ("Macintosh", "macOS"),
    ("Linux", "Linux"),
)


def agent_words(agent: str) -> str:
    """`Firefox on Linux`, for the user to recognise; what cannot be determined is left out. A guess: never relied
    on."""
    browser = next((name for sign, name in _BROWSERS if sign in agent), "")
    system = next((name for sign, name in _SYSTEMS if sign in agent), "")
    if browser and system:
        return f"{browser} on {system}"
    return browser or (f"A browser on {system}" if system else "An unknown browser")


_WAYS = {"password": "password", "link": "one-time link", "passkey": "passkey"}
_SECONDS = {"code": "code", "passkey": "passkey", "recovery_code": "recovery code"}


def way_words(way: str) -> str:
    """`password and code`, from what `second_factor.way_of` says."""
    first, _, second = way.partition("+")
    words = first.removeprefix("oidc:") if first.startswith("oidc:") else _WAYS.get(first, "")
    return f"{words} and {_SECONDS.get(second, second)}" if second else words


COARSE = timedelta(minutes=1)
_SIGNED_IN_AT = "signed_in_at"


@dataclass(frozen=True)
class SignedIn:
    """One browser as its user sees it."""

    id: UUID
    words: str
    address: str
    way: str
    signed_in_at: datetime
    seen_at: datetime
    is_this_one: bool


class NoteBrowsers:
    """Middleware: remembers when and with what each session was last used. It writes at most once a minute per session,
    and asks nothing where there is nothing to write."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponseBase]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponseBase:
        if settings.SESSION_COOKIE_NAME in request.COOKIES and isinstance(request.user, User):
            browser_note(request, request.user, timezone.now())
        return self.get_response(request)


def browser_note(request: HttpRequest, user: User, now: datetime) -> None:
    """Note the browser of the user's request, unless that was done within the minute. An ended session stays so.

    What was noted is remembered in this process, and not in the session: saving a session that another request of the
    same browser changes at the same moment would undo that change.
    """
    key = request.session.session_key
    if key is None or not caches["browsers"].add(key, True, timeout=COARSE.total_seconds()):
        return
    agent = agent_of(request)[: Browser._meta.get_field("agent").max_length]
    seen = {"user": user, "agent": agent, "address": address_of(request), "seen_at": now}
    with best_effort("The use of a browser"):
        if not Browser.objects.filter(session_id=key).update(**seen):
            _begin(request, key, seen, now)


def _begin(request: HttpRequest, key: str, seen: Mapping[str, Any], now: datetime) -> None:
    begun = datetime.fromtimestamp(request.session.get(_SIGNED_IN_AT, now.timestamp()), tz=UTC)
    try:
        with transaction.atomic():
            way = way_of(request, seen["user"])
            Browser.objects.create(session_id=key, signed_in_at=begun, way=way, **seen)
    except IntegrityError:
        return
    _end_oldest(seen["user"], key)


def _end_oldest(user: User, current_key: str) -> None:
    """End the sessions of the user that were used longest ago, where there are too many."""
    others = Browser.objects.filter(user=user).exclude(session_id=current_key).order_by("-seen_at", "-pk")
    kept = others.values_list("pk", flat=True)[: settings.YARDMASTER_SESSIONS_PER_USER - 1]
    old = others.exclude(pk__in=list(kept)).values_list("session_id", flat=True)
    Session.objects.filter(pk__in=list(old)).delete()


@receiver(user_logged_in)
def _note_sign_in(request: HttpRequest, user: User, **facts: object) -> None:
    """The one place that every way to sign in passes: by password, by link, after signing up."""
    now = timezone.now()
    request.session[_SIGNED_IN_AT] = now.timestamp()
    request.session.pop(BY_LINK, None)
    if way_of(request, user).startswith("link"):
        request.session[BY_LINK] = True
    if request.session.session_key is None:  # one of another user was emptied: this one is counted from the start
        request.session.save()
    browser_note(request, user, now)


@receiver(post_delete, sender=Browser)
def _note_end(instance: Browser, **facts: object) -> None:
    """A session was ended, by whichever way: the browser goes with it."""
    sign_ins_changed(instance.user_id)


def browsers_of(user: User, current_key: str | None, now: datetime) -> list[SignedIn]:
    """Where the user is signed in, the last used first. A session that a changed password has killed is none."""
    live = Browser.objects.filter(user=user, session__expire_date__gt=now).select_related("session")
    return [
        SignedIn(
            id=one.pk,
            words=agent_words(one.agent),
            address=one.address or "",
            way=way_words(one.way),
            signed_in_at=one.signed_in_at,
            seen_at=one.seen_at,
            is_this_one=one.session_id == current_key,
        )
        for one in live.order_by("-seen_at", "-pk")
        if lets_in(one.session, user)
    ]


BY_LINK = "signed_in_by_link"
"""In a session that began with a one-time link, which may be another's than the user's."""


def lets_in(session: Session, user: User) -> bool:
    """Whether the session still is one of the user: a changed password has ended it."""
    kept = session.get_decoded()
    right = constant_time_compare(str(kept.get(HASH_SESSION_KEY, "")), user.get_session_auth_hash())
    return right and kept.get(SESSION_KEY) == str(user.pk)


def browser_end(*, user: User, browser_id: UUID) -> None:
    """Sign one of the user's own browsers out. 404 for any other."""
    browser = Browser.objects.filter(user=user, pk=browser_id).first()
    if browser is None:
        raise NotFound("That browser is no longer signed in.")
    with transaction.atomic():
        Session.objects.filter(pk=browser.session_id).delete()
        record(user, "session.end", f"user:{user.pk}", browser=agent_words(browser.agent))


def browsers_end_others(request: HttpRequest, user: User) -> None:
    """Sign the user out everywhere but here, also in sessions that were never noted. Tokens stay."""
    with transaction.atomic():
        keys = Browser.objects.filter(user=user).exclude(session_id=request.session.session_key)
        Session.objects.filter(pk__in=list(keys.values_list("session_id", flat=True))).delete()
        User.objects.filter(pk=user.pk).update(sign_in_epoch=F("sign_in_epoch") + 1)
        user.refresh_from_db(fields=["sign_in_epoch"])
        update_session_auth_hash(request, user)
        sign_ins_changed(user.pk)
        record(user, "session.end_others", f"user:{user.pk}")


def browsers_clean(now: datetime) -> None:
    """Forget sessions that have expired; nothing else does."""
    Session.objects.filter(expire_date__lte=now).delete()


@receiver(user_logged_in)
def _signed_in(request: HttpRequest | None, user: User, **facts: object) -> None:
    way = way_of(request, user) if request is not None else ""
    known: dict[str, Any] = {"way": way} if way else {}
    record(user, "session.begin", f"user:{user.pk}", **known)


@receiver(user_logged_out)
def _signed_out(user: User | None, **facts: object) -> None:
    if user is not None:
        record(user, "session.end", f"user:{user.pk}")


@receiver(user_login_failed)
def _failed(credentials: dict[str, Any], **facts: object) -> None:
    """By the pages and by the API alike. What was tried may be a name or an address."""
    name = str(credentials.get("username") or credentials.get("email") or "")
    sign_in_failure_record(name, next(iter(users_reached_by(name)), None))


@receiver(password_changed)
def _password_changed(user: User, **facts: object) -> None:
    _password(user, "password.change")


@receiver(password_set)
def _password_set(user: User, **facts: object) -> None:
    _password(user, "password.set")


@receiver(password_reset)
def _password_reset(user: User, **facts: object) -> None:
    _password(user, "password.reset")


def _password(user: User, action: str) -> None:
    """Sessions of before are over, wherever they are; allauth keeps the one of the request alive."""
    sign_ins_changed(user.pk)
    record(user, action, f"user:{user.pk}")
