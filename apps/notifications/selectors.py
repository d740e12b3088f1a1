"""What a person wants to be told, and what they were told."""

from __future__ import annotations

from apps.accounts.models import User
from apps.namespaces.selectors import namespaces_visible
from apps.notifications.models import MailChoices, Notice


def choices_of(user: User) -> MailChoices:
    """The user's choices; the defaults, unsaved, where none were made."""
    return MailChoices.objects.filter(user=user).first() or MailChoices(user=user)


def notices_of(user: User, most: int) -> list[Notice]:
    """The newest mails to the user, with their jobs."""
    told = Notice.objects.filter(user=user, job__deleted_at__isnull=True, job__namespace__in=namespaces_visible(user))
    return list(told.select_related("job").defer("job__spec", "job__waiting").order_by("-pk")[:most])
