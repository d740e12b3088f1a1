"""What each person has chosen to be told of: by kind of event, and by kind in one namespace; and their own chat.

Not here: who is told of what (`telling`), the names of kinds and what choices mean (`yardmaster.outgoing.notices`).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from django.db import transaction

from apps.accounts.models import User
from apps.audit.services import record
from apps.errors import Conflict, Invalid
from apps.namespaces.models import Namespace
from apps.notifications.models import Event, MailChoices, NoticeChoice, WaitLimit
from apps.webhooks.models import Webhook
from yardmaster.errors import Problem
from yardmaster.outgoing.notices import KINDS, USUALLY_OFF, Choice, Pace, Reader, Way, chosen

MOST_EXCEPTIONS = 50
LARGEST_FLOOD = 1_000
COLUMN_OF = {
    "job.failed": "on_failure", "job.succeeded": "on_success", "job.stopped": "on_stop", "job.waiting": "on_wait",
}  # fmt: skip
"""What says of a kind whether it is wanted at all, where nothing else was chosen."""
KIND_OF = {
    Event.FAILED: "job.failed", Event.SUCCEEDED: "job.succeeded", Event.STOPPED: "job.stopped",
    Event.WAITS: "job.waiting",
}  # fmt: skip


_FIELDS = ("wait_minutes", "with_log", "daily_hour", "flood")


@dataclass(frozen=True)
class Choices:
    """All that one person has chosen."""

    mail: MailChoices
    by_kind: Mapping[str, Choice]
    """Of every kind."""
    exceptions: tuple[NoticeChoice, ...]
    """In one namespace each, in order."""

    def of(self, kind: str, namespace: Namespace | None) -> Choice:
        rows = {(str(one.namespace_id), one.kind): _choice(one) for one in self.exceptions}
        return chosen(kind, str(namespace.pk) if namespace else "", self.by_kind, rows)


def choices_of(user: User) -> MailChoices:
    """The user's choices; the defaults, unsaved, where none were made."""
    return MailChoices.objects.filter(user=user).first() or MailChoices(user=user)


def all_choices_of(user: User) -> Choices:
    """Two statements."""
    mail, rows = choices_of(user), NoticeChoice.objects.filter(user=user).select_related("namespace")
    by_kind = {kind: Choice(way=Way.MAIL if _is_wanted(mail, kind) else Way.NONE) for kind in KINDS}
    exceptions = []
    for row in rows.order_by("namespace__slug", "kind"):
        if row.namespace_id is not None:
            exceptions.append(row)
        elif row.kind in KINDS:
            by_kind[row.kind] = _choice(row)
    return Choices(mail, by_kind, tuple(exceptions))


def reader_of(user: User, mail: MailChoices) -> Reader:
    return Reader(
        has_mail=bool(user.email),
        has_chat=Webhook.objects.filter(user=user, is_active=True).exists(),
        daily_hour=mail.daily_hour,
        zone=user.time_zone,
        flood=mail.flood,
    )


def choices_set(
    *,
    user: User,
    on_success: bool,
    on_failure: bool,
    on_stop: bool,
    on_wait: bool,
    wait_minutes: int,
    with_log: bool,
) -> MailChoices:
    """Mails about the user's jobs, at once: in the place of what was chosen for these kinds before."""
    wanted = {"job.succeeded": on_success, "job.failed": on_failure, "job.stopped": on_stop, "job.waiting": on_wait}
    by_kind = {kind: Choice(Way.MAIL if is_on else Way.NONE) for kind, is_on in wanted.items()}
    return notices_choose(user, by_kind, wait_minutes=wait_minutes, with_log=with_log)


def notices_choose(
    user: User,
    by_kind: Mapping[str, Choice],
    *,
    wait_minutes: int | None = None,
    with_log: bool | None = None,
    daily_hour: int | None = None,
    flood: int | None = None,
) -> MailChoices:
    """Change what is given; the rest stays. Raises `Invalid`. May be repeated."""
    _refuse_bad(by_kind, daily_hour, flood)
    with transaction.atomic():
        User.objects.select_for_update(no_key=True).get(pk=user.pk)
        mail, before = choices_of(user), _facts(user)
        given = {"wait_minutes": wait_minutes, "with_log": with_log, "daily_hour": daily_hour, "flood": flood}
        for name, value in given.items():
            if value is not None:
                setattr(mail, name, WaitLimit(value) if name == "wait_minutes" else value)
        for kind, choice in by_kind.items():
            if kind in COLUMN_OF:
                setattr(mail, COLUMN_OF[kind], choice.way is not Way.NONE)
            _write(user, kind, None, choice)
        _want_waiting(user, mail)
        mail.save()
        _record(user, before)
    return mail


def exception_choose(user: User, kind: str, namespace: Namespace, choice: Choice | None) -> None:
    """What counts in this namespace alone. None: the same as everywhere. The caller has asked whether the user may see
    the namespace. Raises `Invalid`, and `Conflict` where there are too many."""
    _refuse_bad({kind: choice or Choice()}, None, None)
    with transaction.atomic():
        User.objects.select_for_update(no_key=True).get(pk=user.pk)
        before = _facts(user)
        mine = NoticeChoice.objects.filter(user=user, namespace__isnull=False)
        if choice is None:
            mine.filter(kind=kind, namespace=namespace).delete()
        else:
            if mine.exclude(kind=kind, namespace=namespace).count() >= MOST_EXCEPTIONS:
                detail = f"There may be {MOST_EXCEPTIONS} choices for single namespaces, and there are that many."
                raise Conflict(detail, "too_many_choices", remedy="Remove one first.")
            if not NoticeChoice.objects.filter(user=user, kind=kind, namespace=None).exists():
                _write(user, kind, None, all_choices_of(user).by_kind[kind])  # what counts elsewhere stays so
            _write(user, kind, namespace, choice)
        mail = choices_of(user)
        _want_waiting(user, mail)
        mail.save()
        _record(user, before)


def _facts(user: User) -> dict[str, Any]:
    """All choices, as the audit has them."""
    found = all_choices_of(user)
    facts: dict[str, Any] = {name: getattr(found.mail, name) for name in _FIELDS}
    facts |= {kind: _shown(one) for kind, one in found.by_kind.items()}
    return facts | {
        f"{one.kind} in {one.namespace.slug}": _shown(_choice(one)) for one in found.exceptions if one.namespace
    }


def _shown(choice: Choice) -> str:
    return f"{choice.way} {choice.pace}" if choice.way is not Way.NONE else str(choice.way)


def _record(user: User, before: Mapping[str, Any]) -> None:
    after = _facts(user)
    differ = sorted(name for name in {*before, *after} if before.get(name) != after.get(name))
    if differ:
        facts: dict[str, Any] = {
            "before": {name: before.get(name) for name in differ},
            "after": {name: after.get(name) for name in differ},
        }
        record(user, "notification.change", f"user:{user.pk}", **facts)


def _want_waiting(user: User, mail: MailChoices) -> None:
    """Long waits are looked for where someone wants to hear of them (`worker`): somewhere at least."""
    rows = NoticeChoice.objects.filter(user=user, kind="job.waiting")
    if rows:
        mail.on_wait = any(one.way != Way.NONE for one in rows)


def _write(user: User, kind: str, namespace: Namespace | None, choice: Choice) -> None:
    NoticeChoice.objects.update_or_create(
        user=user, kind=kind, namespace=namespace, defaults={"way": choice.way.value, "pace": choice.pace.value}
    )


def _choice(row: NoticeChoice) -> Choice:
    return Choice(Way(row.way), Pace(row.pace))


def _is_wanted(mail: MailChoices, kind: str) -> bool:
    return bool(getattr(mail, COLUMN_OF[kind])) if kind in COLUMN_OF else kind not in USUALLY_OFF


def _refuse_bad(kinds: Iterable[str], daily_hour: int | None, flood: int | None) -> None:
    found = [
        Problem("kinds", "unknown_kind", "There is no such kind of notification.", f"One of: {', '.join(KINDS)}.", one)
        for one in kinds if one not in KINDS
    ]  # fmt: skip
    if daily_hour is not None and not 0 <= daily_hour <= 23:
        found.append(Problem("daily_hour", "invalid", "An hour is 0 to 23.", "Choose one.", str(daily_hour)))
    if flood is not None and not 0 <= flood <= LARGEST_FLOOD:
        message = f"A number of 0 to {LARGEST_FLOOD}; 0 makes no digest."
        found.append(Problem("flood", "invalid", message, "Choose another number.", str(flood)))
    if found:
        raise Invalid(found)
