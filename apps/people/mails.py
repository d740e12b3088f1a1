"""The mails that let people in: an invitation's link, and one that resets a password.

Not here: who gets one (the pages and the API).
"""

from __future__ import annotations

import logging
import smtplib
import time
from collections.abc import Callable, Sequence
from uuid import UUID

from allauth.account.forms import ResetPasswordForm
from django.conf import settings
from django.core.mail import get_connection, send_mail
from django.core.mail.backends.base import BaseEmailBackend
from django.http import HttpRequest
from django.urls import reverse

from apps.accounts.models import User
from apps.audit.services import record
from apps.errors import Conflict, Invalid
from apps.namespaces.models import Invitation
from yardmaster.errors import Problem

log = logging.getLogger(__name__)
LONGEST = 20.0
"""Seconds after which no further mail of one call is begun: a request waits for them."""

_TEXT = """Hello,

{maker} invites you to the portal {portal}{team}.
Open this page before {until} UTC:

{link}

If you did not expect this mail, ignore it.
"""


def link_of(token: str) -> str:
    """The absolute address of an invitation."""
    return f"{settings.PUBLIC_URL}{reverse('invitation_page', args=[token])}"


def invitation_send(invitation: Invitation, link: str) -> bool:
    """Send the link to the invitation's address; False where there is none, or the portal sends no mail, or the mail
    server takes it not: the link works all the same."""
    return bool(invitations_send([(invitation, link)]))


def invitations_send(made: Sequence[tuple[Invitation, str]], clock: Callable[[], float] = time.monotonic) -> set[UUID]:
    """Send each link to the address of its invitation, over one connection. Returns the ids of those that were sent:
    where the mail server fails, or has taken `LONGEST`, the others are not tried, and their links work all the same."""
    sent: set[UUID] = set()
    if not (settings.YARDMASTER_SENDS_MAIL and any(one.email for one, _ in made)):
        return sent
    try:
        with get_connection() as connection:
            begun = clock()
            for one, link in made:
                if clock() - begun > LONGEST:
                    log.warning(
                        "The mail server is slow: %d of %d mails of invitations were sent.", len(sent), len(made)
                    )
                    break
                if one.email and _sent(one, link, connection):
                    sent.add(one.pk)
    except OSError as error:
        log.warning("The mails of invitations were not sent: %s", error)
    return sent


def _sent(invitation: Invitation, link: str, connection: BaseEmailBackend) -> bool:
    """Raises OSError where the server is away; False where it takes not this one."""
    team = f" and its team {invitation.namespace.slug}" if invitation.namespace else ""
    text = _TEXT.format(
        maker=invitation.created_by.username, portal=settings.PUBLIC_URL, team=team, link=link,
        until=f"{invitation.expires_at:%d %B %Y, %H:%M}",
    )  # fmt: skip
    try:
        send_mail("An invitation to Yardmaster", text, None, [invitation.email], connection=connection)
    except (smtplib.SMTPResponseException, smtplib.SMTPRecipientsRefused) as error:
        log.warning("The mail of an invitation was not sent: %s", error)
        return False
    return True


def reset_mail_send(request: HttpRequest, user: User, actor: User) -> None:
    """Send the user the mail that resets a password. Raises Conflict where the portal sends no mail, the user has no
    address, or is locked; Invalid where the mail server does not take it."""
    if not settings.YARDMASTER_SENDS_MAIL:
        raise Conflict("This portal sends no e-mail.", "sends_no_mail", remedy="Create a sign-in link instead.")
    if not user.email:
        raise Conflict(f"{user.username} has no e-mail address.", "no_address", remedy="Enter one first.")
    if not user.is_active:
        raise Conflict(f"{user.username} is locked.", "locked", remedy="Unlock the user first.")
    form = ResetPasswordForm({"email": user.email})
    if not form.is_valid():
        raise Invalid([Problem("email", "invalid", "The address cannot be used.", "Enter another.", user.email)])
    try:
        form.save(request)
    except (smtplib.SMTPException, OSError) as error:
        log.warning("The mail that resets a password was not sent: %s", error)
        remedy = "Try again, or create a sign-in link."
        raise Invalid([Problem("email", "not_sent", "The e-mail could not be sent.", remedy)]) from error
    record(actor, "user.reset_mail", f"user:{user.pk}", name=user.username, email=user.email)
