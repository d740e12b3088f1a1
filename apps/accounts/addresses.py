"""A new e-mail address counts when its reader has confirmed it, where the portal sends mail.

`User.email` is the address that is used: to sign in, to reset the password, for mails about jobs. One that waits for
its reader is `User.pending_email`, which nothing else reads. What an administrator sets needs no confirmation.
"""

from __future__ import annotations

import logging
import smtplib
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

from django.conf import settings
from django.core import signing
from django.core.mail import send_mail
from django.db import transaction
from django.urls import reverse
from django.utils import timezone

from apps.accounts.models import User
from apps.accounts.services import address_change, address_refuse
from apps.audit.services import record
from apps.errors import Invalid
from yardmaster.errors import Problem

log = logging.getLogger(__name__)

LINK_LASTS = timedelta(days=3)
PAUSE = timedelta(minutes=1)
"""Between two mails that a person has sent: to whom is theirs to say, so that it must be no way to flood others."""
_SALT = "apps.accounts.addresses"
_TEXT = """Hello {name},

this address was entered for the account {name} of the portal {portal}.
Open this page within {days} days and confirm it:

{link}

Until then the portal does not use the address. If you did not expect this mail, ignore it.
"""


def address_ask(*, user: User, email: str) -> bool:
    """Give the user this address (or none): at once, or when its reader has confirmed it; returns whether it waits for
    that. Raises Invalid for an address that will not do, a mail that was sent a moment ago, or one that cannot be sent.
    """
    email = User.objects.normalize_email(email)
    if not (settings.YARDMASTER_SENDS_MAIL and email) or email.casefold() == user.email.casefold():
        address_change(user=user, email=email)
        return False
    address_refuse(user, email)
    now = timezone.now()
    with transaction.atomic():
        _take_turn(user, now, pending_email=email)
        record(user, "address.ask", f"user:{user.pk}", name=user.username, email=email, email_before=user.email)
    user.pending_email = email
    _send(user)
    return True


def address_resend(*, user: User) -> None:
    """Send the mail once more. Raises Invalid where nothing waits, or one was sent a moment ago."""
    user.refresh_from_db(fields=["pending_email"])
    if not (settings.YARDMASTER_SENDS_MAIL and user.pending_email):
        raise Invalid([Problem("email", "nothing_pending", "No address needs confirmation.")])
    _take_turn(user, timezone.now())
    _send(user)


def address_cancel(*, user: User) -> None:
    """Forget the address that waits; its link is dead then."""
    with transaction.atomic():
        waited = User.objects.select_for_update().values_list("pending_email", flat=True).get(pk=user.pk)
        if waited:
            User.objects.filter(pk=user.pk).update(pending_email="")
            record(user, "address.cancel", f"user:{user.pk}", waiting="", waiting_before=waited)


def address_waiting(token: str) -> User | None:
    """Whose address the link would confirm now; None for one that is unknown, old, or that another has replaced."""
    try:
        user_id, email = signing.loads(token, salt=_SALT, max_age=LINK_LASTS)
        waiting = User.objects.filter(pk=UUID(user_id), pending_email=email, is_active=True)
        return waiting.exclude(pending_email="").first()
    except (signing.BadSignature, ValueError, TypeError):
        return None


def address_confirm(token: str) -> User | None:
    """Use the address from now on. None as for `address_waiting`; Invalid where another user has it by now."""
    with transaction.atomic():
        user = address_waiting(token)
        if user is None:
            return None
        before = user.email
        address_change(user=user, email=user.pending_email)
        facts: dict[str, Any] = {"name": user.username, "email": user.email, "email_before": before}
        record(user, "address.confirm", f"user:{user.pk}", **facts)
    return user


def _take_turn(user: User, now: datetime, **changes: str) -> None:
    """Of several requests at once one sends a mail."""
    free = User.objects.filter(pk=user.pk).exclude(pending_email_at__gt=now - PAUSE)
    if not free.update(pending_email_at=now, **changes):
        raise Invalid([Problem("email", "too_soon", "An e-mail was just sent.", "Wait a minute.")])


def _send(user: User) -> None:
    token = signing.dumps([str(user.pk), user.pending_email], salt=_SALT)
    link = f"{settings.PUBLIC_URL}{reverse('address_confirm', args=[token])}"
    text = _TEXT.format(name=user.username, portal=settings.PUBLIC_URL, days=LINK_LASTS.days, link=link)
    try:
        send_mail("Confirm your e-mail address", text, None, [user.pending_email])
    except (smtplib.SMTPException, OSError) as error:
        log.warning("The mail that confirms an address was not sent: %s", error)
        remedy = "Check the address, or resend the e-mail in a minute."
        raise Invalid([Problem("email", "not_sent", "The e-mail could not be sent.", remedy)]) from error
