"""Signing in a program by a code that its user confirms in the browser (RFC 8628).

The program asks and gets two codes: a long one, with which it collects its token, and a short one, which it shows. The
user types the short one on the page `/device/` and sees who asks. A code is good for ten minutes and for one decision,
a token is collected once. Not here: how many codes may be tried (`attempts`), tokens (`services`).
"""

from __future__ import annotations

import hashlib
import secrets
from dataclasses import dataclass
from datetime import datetime, timedelta

from django.conf import settings
from django.db import IntegrityError, transaction
from django.urls import reverse
from django.utils.crypto import salted_hmac

from apps.accounts.models import DeviceSignIn, PersonalToken, User
from apps.accounts.services import token_create, token_lifetime_default
from apps.audit.services import record
from apps.errors import DomainError

LASTS = timedelta(minutes=10)
INTERVAL = 5
"""Seconds between two polls."""
_EARLY = 1.0
"""Seconds that a poll may come early: a network does not keep time."""
_SLOWER = 5
_SLOWEST = 60
_LETTERS = "BCDFGHJKLMNPQRSTVWXZ"
"""No vowels, so that no code is a word, and nothing that looks like another."""
_LENGTH = 8
"""20⁸ codes are 34 bits: with ten tries in five minutes no guess of one that lives for ten minutes comes near."""
_KEPT = timedelta(hours=1)
_TRIES = 5


@dataclass(frozen=True)
class Asked:
    """What a program gets that asks."""

    device_code: str
    user_code: str

    @property
    def address(self) -> str:
        return f"{settings.PUBLIC_URL}{reverse('device_page')}"

    @property
    def address_with_code(self) -> str:
        return f"{self.address}?code={self.user_code}"


class NotYet(DomainError):
    """No token is given: the codes of RFC 8628 say why. Programs of that standard read `error`."""

    def __init__(self, code: str, detail: str, remedy: str = "", interval: int | None = None) -> None:
        super().__init__(detail, code, remedy=remedy)
        self.facts = {"error": code} | ({} if interval is None else {"interval": interval})


def device_ask(
    *, name: str, client_id: str, scopes: list[str], agent: str, address: str | None, now: datetime
) -> Asked:
    """A program asks to be signed in."""
    for _ in range(_TRIES):
        asked = Asked(secrets.token_urlsafe(32), _new_code())
        row = DeviceSignIn(
            device_digest=_device_digest(asked.device_code), user_digest=_user_digest(asked.user_code), name=name,
            client_id=client_id, scopes=scopes, agent=agent[:200], address=address, asked_at=now,
            expires_at=now + LASTS, interval=INTERVAL,
        )  # fmt: skip
        try:
            with transaction.atomic():
                row.save(force_insert=True)
        except IntegrityError:  # the same short code
            continue
        return asked
    raise RuntimeError("No code was free.")


def device_find(code: str, now: datetime) -> DeviceSignIn | None:
    """The program that shows this code and waits for a decision."""
    digest = _user_digest(code)
    return DeviceSignIn.objects.filter(user_digest=digest, decision="", expires_at__gt=now).first()


def device_decide(*, user: User, code: str, confirm: bool, now: datetime) -> DeviceSignIn | None:
    """Confirm or refuse. Of any number of calls at once one decides, the others get None."""
    decision = DeviceSignIn.Decision.CONFIRMED if confirm else DeviceSignIn.Decision.REFUSED
    waiting = DeviceSignIn.objects.filter(user_digest=_user_digest(code), decision="", expires_at__gt=now)
    with transaction.atomic():
        if not waiting.update(decision=decision, user=user):
            return None
        found = DeviceSignIn.objects.get(user_digest=_user_digest(code))
        action = "device.confirm" if confirm else "device.refuse"
        record(user, action, f"user:{user.pk}", name=found.name, asked_from=found.address or "", agent=found.agent)
    return found


def device_collect(*, device_code: str, client_id: str, now: datetime) -> tuple[PersonalToken, str]:
    """The token of a program that was confirmed, and its secret: once. Raises `NotYet` as RFC 8628 has it."""
    row = DeviceSignIn.objects.select_related("user").filter(device_digest=_device_digest(device_code)).first()
    if row is None or row.client_id != client_id or row.collected_at is not None:
        raise NotYet("invalid_grant", "This code is unknown, or was used.", "Ask for a new one.")
    if row.decision == DeviceSignIn.Decision.REFUSED:
        raise NotYet("access_denied", "The sign-in was refused in the browser.", "Start again if that was a mistake.")
    if row.expires_at <= now:
        raise NotYet("expired_token", "The code has expired.", "Ask for a new one: a code is valid for ten minutes.")
    if row.decision != DeviceSignIn.Decision.CONFIRMED:
        raise _still_waiting(row, now)
    with transaction.atomic():
        ours = DeviceSignIn.objects.filter(pk=row.pk, collected_at=None, user__isnull=False)
        if not ours.update(collected_at=now):
            raise NotYet("invalid_grant", "This code was used.", "Ask for a new one.")
        user = User.objects.filter(device_sign_ins=row.pk, is_active=True).first()
        if user is None:
            raise NotYet("access_denied", "The account is locked.", "Ask an administrator.")
        return token_create(user=user, name=row.name, scopes=row.scopes, expires_in=token_lifetime_default())


def device_clean(now: datetime) -> None:
    """Forget programs that asked some time ago."""
    DeviceSignIn.objects.filter(expires_at__lte=now - _KEPT).delete()


def code_shown(code: str) -> str:
    """As programs show it, whatever was typed."""
    letters = _letters_of(code)
    return f"{letters[:4]}-{letters[4:]}" if len(letters) > 4 else letters


def _still_waiting(row: DeviceSignIn, now: datetime) -> NotYet:
    """Of a program that polls too fast: it has to wait longer from now on."""
    too_fast = row.polled_at is not None and (now - row.polled_at).total_seconds() < row.interval - _EARLY
    interval = min(row.interval + _SLOWER, _SLOWEST) if too_fast else row.interval
    DeviceSignIn.objects.filter(pk=row.pk).update(polled_at=now, interval=interval)
    if too_fast:
        return NotYet("slow_down", f"Wait {interval} seconds between two requests.", interval=interval)
    return NotYet("authorization_pending", "The sign-in is not confirmed yet.", interval=interval)


def _new_code() -> str:
    return code_shown("".join(secrets.choice(_LETTERS) for _ in range(_LENGTH)))


def _letters_of(code: str) -> str:
    return "".join(one for one in code[:40].upper() if one.isalnum())[:_LENGTH]


def _user_digest(code: str) -> str:
    """With the portal's key: a short code could be found from its plain hash."""
    return salted_hmac("yardmaster.device.user_code", _letters_of(code), algorithm="sha256").hexdigest()


def _device_digest(code: str) -> str:
    return hashlib.sha256(code.encode(errors="replace")).hexdigest()
