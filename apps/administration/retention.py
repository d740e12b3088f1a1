"""Rules of retention: read, previewed and changed by administrators. Every change has a reason and is audited.

Not here: what a rule means (`yardmaster.lifecycle.retention`), and removing (`apps.jobs.worker.retention`).
"""

from __future__ import annotations

import uuid
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.db import transaction
from django.db.models import Q
from django.utils import timezone

from apps.accounts.models import User
from apps.administration.quota_bulk import checked_reason
from apps.audit.models import AuditEvent
from apps.audit.services import record
from apps.errors import Conflict, Invalid, NotFound
from apps.jobs.labels import tags_checked
from apps.jobs.models import Job, RetentionRule
from apps.jobs.state.retention import Rules, due, lock_rules, newest_since, unspared
from apps.namespaces.models import Namespace
from yardmaster.errors import Problem
from yardmaster.lifecycle.retention import LONGEST_DAYS, MOST_NEWEST, Kind, Rule

MOST_COUNTED = 50_000
"""Jobs that are old enough and that nothing spares, at which a preview looks."""
MOST_RULES = 600
"""Of single namespaces."""
MOST_SHOWN = 20


_WHY = "Write why the rule changes. The reason is kept in the audit log."


@dataclass(frozen=True)
class RuleFacts:
    """What is said of a rule. `days` None: for ever. `namespace` None: of the portal."""

    kind: Kind
    days: int | None
    namespace: Namespace | None = None
    newest: int = 0
    tags: Sequence[str] = ()
    spares_models: bool = True
    only_archived: bool = False

    @property
    def rule(self) -> Rule:
        tags = frozenset(self.tags)
        return Rule(self.kind, self.days, self.newest, tags, self.spares_models, self.only_archived)


@dataclass(frozen=True)
class Preview:
    """What the rule would remove at once. `is_cut`: there are more than were looked at."""

    jobs: int
    size: int
    oldest: datetime | None
    newest: datetime | None
    namespaces: int
    is_cut: bool


def rules() -> list[RetentionRule]:
    """All there are: the portal's first, then by namespace."""
    order = [one.value for one in Kind]
    rows = RetentionRule.objects.select_related("namespace", "changed_by")
    return sorted(rows, key=lambda row: (row.namespace.slug if row.namespace else "", order.index(row.kind)))


def removed_lately() -> list[tuple[AuditEvent, str]]:
    """What passes have removed, the newest first, with the slug of the namespace; empty where that is gone."""
    events = list(AuditEvent.objects.filter(action="retention.remove").order_by("-pk")[:MOST_SHOWN])
    ids = {one.namespace_id for one in events if one.namespace_id is not None}
    slugs = dict(Namespace.objects.filter(pk__in=ids).values_list("pk", "slug"))
    return [(one, slugs.get(one.namespace_id, "") if one.namespace_id else "") for one in events]


def rule_by_id(key: uuid.UUID) -> RetentionRule:
    """Raises NotFound."""
    found = RetentionRule.objects.select_related("namespace").filter(pk=key).first()
    if found is None:
        raise NotFound("There is no such rule.")
    return found


def rule_preview(said: RuleFacts) -> Preview:
    """What would go if the rule were in force now. Changes nothing. Raises `Invalid`."""
    said = _checked(said)
    now, rule = timezone.now(), said.rule
    if said.namespace is not None:
        jobs = Job.objects.filter(namespace=said.namespace)
    else:
        own = Rules().with_own(said.kind)
        jobs = Job.objects.filter(namespace__closed_at=None).exclude(namespace__in=own)
    before = rule.before(now)
    if before is None:
        return Preview(0, 0, None, None, 0, False)
    within = None if said.namespace is None else [said.namespace.pk]
    found = list(due(jobs, rule, within, now, MOST_COUNTED))
    times = [one.ended.ended_at for one in found]
    after = slice(MOST_COUNTED, MOST_COUNTED + 1)
    is_many = jobs.filter(decided_at__lte=before)[after].exists()
    is_cut = is_many and unspared(jobs, rule, newest_since(rule, within), now)[after].exists()
    return Preview(
        len(found), sum(one.size for one in found), min(times, default=None), max(times, default=None),
        len({one.namespace_id for one in found}), is_cut,
    )  # fmt: skip


def rule_set(*, said: RuleFacts, reason: str, actor: User) -> RetentionRule:
    """Put the rule in the place of the one that there was. Raises `Invalid` with each problem, and `Conflict` where
    there are too many."""
    said, reason = _checked(said), checked_reason(reason, _WHY)
    facts = {
        "days": said.days, "newest": said.newest, "tags": list(said.tags), "spares_models": said.spares_models,
        "only_archived": said.only_archived,
    }  # fmt: skip
    with transaction.atomic():
        before = _locked(said.namespace, said.kind)
        _refuse_many(said, before)
        was = {f"{name}_before": getattr(before, name) if before else None for name in facts}
        changed = {**facts, "reason": reason, "changed_by": actor, "changed_at": timezone.now()}
        made, _ = RetentionRule.objects.update_or_create(namespace=said.namespace, kind=said.kind, defaults=changed)
        subject = f"retention:{made.pk}"
        noted: dict[str, Any] = {"kind": said.kind.value, **facts, **was, "reason": reason}
        record(actor, "retention.change", subject, namespace=said.namespace, **noted)
    return made


def rule_reset(*, found: RetentionRule, reason: str, actor: User) -> None:
    """Remove it: of a namespace, the portal's counts again; of the portal, everything is kept. Raises `Invalid`
    without a reason."""
    reason = checked_reason(reason, _WHY)
    with transaction.atomic():
        row = RetentionRule.objects.select_for_update(of=("self",)).filter(pk=found.pk).first()
        if row is None:
            return
        was = {
            name: getattr(row, name) for name in ("kind", "days", "newest", "tags", "spares_models", "only_archived")
        }
        row.delete()
        facts = {"reason": reason, **dict.fromkeys(was), **{f"{name}_before": value for name, value in was.items()}}
        record(actor, "retention.reset", f"retention:{found.pk}", namespace=found.namespace, **facts)


def _locked(namespace: Namespace | None, kind: Kind) -> RetentionRule | None:
    """The rule that there is. A pass that goes by it, or by the one of the portal, is waited for."""
    lock_rules(namespace.pk if namespace else None, kind)
    return RetentionRule.objects.filter(namespace=namespace, kind=kind).first()


def _refuse_many(said: RuleFacts, before: RetentionRule | None) -> None:
    if before is None and RetentionRule.objects.filter(~Q(namespace=None)).count() >= MOST_RULES:
        detail = f"There are {MOST_RULES} rules of namespaces already."
        raise Conflict(detail, "too_many", remedy="Remove some, or change the rule of the portal.")


def _checked(said: RuleFacts) -> RuleFacts:
    """With its tags as jobs have them. Raises `Invalid`."""
    tags, wrong = tags_checked(said.tags)
    bounds = (("days", said.days, 1, LONGEST_DAYS), ("newest", said.newest, 0, MOST_NEWEST))
    problems = [
        Problem(field, "out_of_range", f"It is {least} to {most}.", "Choose a value in this range.", str(value))
        for field, value, least, most in bounds
        if value is not None and not least <= value <= most
    ]
    problems += wrong
    if problems:
        raise Invalid(problems)
    return RuleFacts(said.kind, said.days, said.namespace, said.newest, tags, said.spares_models, said.only_archived)
