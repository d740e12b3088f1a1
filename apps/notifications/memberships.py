"""A person is told that they were added to a namespace, have another role there, or were removed.

Events of the outbox say so. Not here: the change itself (`apps.namespaces.services`), and how (`telling`). An
invitation by link is a mail of its own, as it goes to people without an account.
"""

from __future__ import annotations

from django.conf import settings
from django.urls import reverse
from django.utils import timezone

from apps.accounts.models import User
from apps.dispatch.models import OutboxEvent
from apps.dispatch.outbox import deliver
from apps.namespaces.membership_events import ADDED, CHANGED, MEMBERSHIP_CHANGED
from apps.namespaces.models import Namespace
from apps.notifications.letter import LONGEST_NAME, one_line
from apps.notifications.telling import announce

_MAY = {
    "viewer": "You can see everything in it.",
    "member": "You can see, launch and upload in it.",
    "manager": "You can launch and upload in it, and manage its members.",
}


def memberships_note() -> int:
    """Tell each person, as they have chosen. Returns how many changes there were; may be repeated."""
    return deliver(MEMBERSHIP_CHANGED, _note)


def _note(event: OutboxEvent) -> None:
    facts = event.facts
    user = User.objects.filter(pk=facts["user"], is_active=True).first()
    namespace = Namespace.objects.filter(pk=event.subject).first()
    if user is None or namespace is None:
        return
    subject, sentence = _words(facts, one_line(namespace.slug, LONGEST_NAME))
    is_in = facts["event"] in (ADDED, CHANGED)
    page = reverse("namespace_page", args=[namespace.pk]) if is_in else reverse("namespaces_page")
    url = f"{settings.PUBLIC_URL}{page}"
    by = f" by {one_line(facts['by'], LONGEST_NAME)}" if facts["by"] else ""
    may = [_MAY[facts["role"]]] if is_in and facts["role"] in _MAY else []
    then = may if is_in else ["Its jobs, data and models are no longer open to you."]
    text = "\n\n".join(
        [f"{sentence}{by}.\n{url}", *then, "-- \nYou get this e-mail because it concerns your membership.\n"]
    )
    announce(
        user, facts["event"], namespace, key=f"{facts['event']} {event.pk}", subject=subject, text=text, url=url,
        now=timezone.now(),
    )  # fmt: skip


def _words(facts: dict[str, str], of: str) -> tuple[str, str]:
    """The subject, and the sentence without who did it."""
    if facts["event"] == ADDED:
        return f"You are a {facts['role']} of {of}", f"You were added to the namespace {of} as a {facts['role']}"
    if facts["event"] == CHANGED:
        changed = f"from {facts['role_before']} to {facts['role']}"
        return f"You are a {facts['role']} of {of} now", f"Your role in the namespace {of} was changed {changed}"
    return f"You were removed from {of}", f"You were removed from the namespace {of}"
