"""The link in each notification mail that switches its kinds off, without signing in (RFC 8058).

The link is signed for one person, the address it was mailed to, and the kinds that the mail tells of. It can do one
thing: switch mails of these kinds off for this person. It ends after `LASTS`, when the person's address changes, and
with the account. Not here: the page (`unsubscribe_pages`), and which mails have a link (`worker`).
"""

from __future__ import annotations

import hashlib
import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta

from django.conf import settings
from django.core import signing
from django.db import transaction
from django.urls import reverse

from apps.accounts.models import User
from apps.audit.services import record
from apps.notifications.choosing import Choices, all_choices_of, exception_choose, notices_choose
from apps.webhooks.models import Webhook
from yardmaster.outgoing.notices import KINDS, Choice, Way

LASTS = timedelta(days=365)
LONGEST_TOKEN = 1_000
_SALT = "notifications.unsubscribe"


@dataclass(frozen=True)
class Unsubscription:
    """What a link that counts is for. `kinds`: those that there are today."""

    user: User
    kinds: tuple[str, ...]


def unsubscribe_token(user: User, kinds: Sequence[str]) -> str:
    """Signed; safe in an address."""
    return signing.dumps([user.pk.hex, _mark(user), ",".join(kinds)], salt=_SALT, compress=True)


def unsubscribe_url(user: User, kinds: Sequence[str]) -> str:
    """The absolute address for a mail to this person."""
    return f"{settings.PUBLIC_URL}{reverse('unsubscribe_page', args=[unsubscribe_token(user, kinds)])}"


def unsubscription_of(token: str) -> Unsubscription | None:
    """What this link is for. None: it is not from here, too old, or of an account or address that is gone; which of
    these is not said. One statement, for a link that is signed."""
    try:
        said = signing.loads(token[:LONGEST_TOKEN], salt=_SALT, max_age=LASTS)
        user_id, mark, kinds = uuid.UUID(str(said[0])), str(said[1]), str(said[2])
    except (signing.BadSignature, ValueError, TypeError, LookupError):
        return None
    user = User.objects.filter(pk=user_id, is_active=True).first()
    if user is None or not user.email or mark != _mark(user):
        return None
    known = tuple(one for one in kinds.split(",") if one in KINDS)
    return Unsubscription(user, known) if known else None


def is_off(found: Unsubscription) -> bool:
    """Whether mails of these kinds are off already, everywhere."""
    return not any(_to_change(found.user, all_choices_of(found.user), found.kinds))


def unsubscribe(found: Unsubscription) -> bool:
    """Switch mails of these kinds off, everywhere and for single namespaces. What goes to a chat stays. False: they
    were off. May be repeated."""
    user = found.user
    with transaction.atomic():
        User.objects.select_for_update(no_key=True).get(pk=user.pk)
        choices = all_choices_of(user)
        usual, special = _to_change(user, choices, found.kinds)
        if not usual and not special:
            return False
        notices_choose(user, {kind: Choice(Way.NONE, one.pace) for kind, one in usual.items()})
        for row in choices.exceptions:
            if row.pk in special and row.namespace is not None:
                exception_choose(user, row.kind, row.namespace, Choice(Way.NONE))
        before = sorted({f"{kind}: {one.way.value}" for kind, one in usual.items()})
        record(None, "notification.unsubscribe", f"user:{user.pk}", kinds=list(found.kinds), kinds_before=before,
               namespaces=len(special), by="link in an e-mail")  # fmt: skip
    return True


def _to_change(user: User, choices: Choices, kinds: Sequence[str]) -> tuple[Mapping[str, Choice], frozenset[int]]:
    """Of these kinds what is sent by mail: the usual choices, and the rows for single namespaces. A chat that is not
    set up is a mail."""
    mails = {Way.MAIL} if _has_chat(user) else {Way.MAIL, Way.CHAT}
    usual = {kind: choices.by_kind[kind] for kind in kinds if choices.by_kind[kind].way in mails}
    special = frozenset(one.pk for one in choices.exceptions if one.kind in kinds and Way(one.way) in mails)
    return usual, special


def _has_chat(user: User) -> bool:
    return Webhook.objects.filter(user=user, is_active=True).exists()


def _mark(user: User) -> str:
    """Of the address, so that a link ends with it; the address itself is not in the link."""
    return hashlib.sha256(f"{user.pk.hex} {user.email.casefold()}".encode()).hexdigest()[:16]
