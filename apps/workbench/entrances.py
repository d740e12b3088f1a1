"""How a browser gets into a session on the workbench's origin: a ticket from the portal, once, for a cookie of there.

The browser begins at the session's origin, where it gets a value to be known by, and comes to the portal with that
value's digest. The ticket is for it alone: no one can have another's browser let in as themselves. It is signed, good
for thirty seconds, and names an `Entrance`, which is bound to the session, the user and the user's sign-in at the
portal: with the sign-in it is deleted. A cookie that was copied opens nothing but the session that it was given for,
and nothing of the portal.
"""

from __future__ import annotations

import hashlib
import secrets
from collections.abc import Sequence
from datetime import datetime, timedelta
from uuid import UUID

from django.contrib.sessions.models import Session
from django.core import signing
from django.utils import timezone

from apps.accounts.browsers import lets_in
from apps.accounts.models import User
from apps.audit.services import record
from apps.errors import Forbidden
from apps.workbench.access import require_use
from apps.workbench.models import Entrance, WorkbenchSession

TICKET_LASTS = timedelta(seconds=30)
MOST = 20
"""Of one session and sign-in: then the oldest goes."""
COOKIE_LASTS = timedelta(hours=24)
"""Without use; then the browser asks the portal for another one. A page that is open uses it, and cannot ask: what it
has not saved would be lost."""
_RENEWED_EVERY = timedelta(hours=1)
_SIGNER = signing.TimestampSigner(salt="yardmaster.workbench.ticket")


def ticket_create(
    user: User, session: WorkbenchSession, sign_in_key: str, entry: str, *, is_by_link: bool = False
) -> str:
    """A ticket for this user, who is signed in at the portal with the session of this key, in the browser that is known
    at the session's origin by what has the digest `entry`. `is_by_link`: they signed in with a one-time link, which an
    administrator may have made and used; into a Jupyter that is recorded. Raises what `require_use` raises, and
    `Forbidden` where there is no such sign-in."""
    require_use(user, session)
    sign_in = Session.objects.filter(pk=sign_in_key).first()
    if sign_in is None:
        raise Forbidden("A session is opened by a browser that is signed in.", "Sign in on the portal's pages.")
    same = Entrance.objects.filter(session=session, sign_in=sign_in).order_by("-pk")
    if is_by_link and session.is_personal and not same.exists():
        record(user, "workbench.open_by_link", f"workbench:{session.pk}", namespace=session.namespace)
    Entrance.objects.filter(pk__in=list(same.values_list("pk", flat=True)[MOST - 1 : MOST + 99])).delete()
    made = Entrance.objects.create(session=session, user=user, sign_in=sign_in, made_at=timezone.now())
    return _SIGNER.sign(f"{made.pk.hex}.{entry}")


def ticket_exchange(session_id: UUID, ticket: str, entries: Sequence[str]) -> str | None:
    """The value of a cookie for this session; None where the ticket is forged, old, used, another session's or none of
    the browser's, which is known by `entries`."""
    try:
        made, _, entry = _SIGNER.unsign(ticket[:300], max_age=TICKET_LASTS).partition(".")
        entrance_id = UUID(hex=made)
    except (signing.BadSignature, ValueError):
        return None
    if entry not in entries:
        return None
    cookie = secrets.token_urlsafe(32)
    fresh = Entrance.objects.filter(pk=entrance_id, session=session_id, cookie_digest__isnull=True)
    return cookie if fresh.update(cookie_digest=_digest(cookie)) else None


def entrance_of(session_id: UUID, cookie: str, now: datetime) -> Entrance | None:
    """Who stands behind the cookie, while the sign-in lasts with which the ticket was asked for. One query."""
    if not cookie or len(cookie) > 100:
        return None
    found = (
        Entrance.objects.select_related("user", "sign_in", "session__job", "session__namespace", "session__owner")
        .defer("session__job__waiting")
        .filter(session=session_id, cookie_digest=_digest(cookie), made_at__gt=now - COOKIE_LASTS)
        .filter(user__is_active=True, sign_in__expire_date__gt=now)
        .first()
    )
    return found if found is not None and lets_in(found.sign_in, found.user) else None


def entrance_renew(entrance: Entrance, now: datetime) -> None:
    """It was used now. Of many calls few write."""
    if entrance.made_at < now - _RENEWED_EVERY:
        Entrance.objects.filter(pk=entrance.pk, made_at=entrance.made_at).update(made_at=now)


def entrances_clean(now: datetime) -> None:
    """Forget tickets that were not used, and cookies that are too old."""
    Entrance.objects.filter(made_at__lt=now - COOKIE_LASTS).delete()
    Entrance.objects.filter(made_at__lt=now - 2 * TICKET_LASTS, cookie_digest__isnull=True).delete()


def _digest(cookie: str) -> str:
    return hashlib.sha256(cookie.encode()).hexdigest()
