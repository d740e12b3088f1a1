"""What the rules of retention are and what they meet: facts of ended jobs, read together, and what was removed by them.

Not here: what a rule means (`yardmaster.lifecycle.retention`), removing (`apps.jobs.worker.retention`), and changing
rules (`apps.administration.retention`).
"""

from __future__ import annotations

import uuid
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.db.models import (
    BigIntegerField,
    BooleanField,
    Case,
    Exists,
    F,
    OuterRef,
    Q,
    QuerySet,
    Subquery,
    Sum,
    Value,
    When,
)
from django.db.models.expressions import Combinable
from django.db.models.functions import Cast, Coalesce

from apps.errors import Gone
from apps.jobs.models import Hold, Job, JobAttempt, JobPin, JobTag, Publication, RetentionRule, jobs_in_use
from apps.namespaces.models import Membership, Namespace
from apps.registry.models import ModelVersion
from apps.uploads.models import Kind as Stored
from apps.uploads.models import State, Upload
from yardmaster.lifecycle.phases import FINAL
from yardmaster.lifecycle.retention import Ended, Fate, Kind, Rule, fate, rule_in_force

OVER = Q(phase__in=[one.value for one in FINAL], cleaned_up_at__isnull=False, decided_at__isnull=False, deleted_at=None)
FILES = (Stored.CHECKPOINT, Stored.OUTPUT)
_OUTLIVES = Q(kind__in=[Stored.MODEL, Stored.PACKAGES], used=True)
_NOUN = {Kind.LOGS: "log", Kind.FILES: "files"}


@dataclass(frozen=True)
class Candidate:
    """An ended job as a rule of one kind sees it. `size`: the bytes that would go."""

    pk: uuid.UUID
    namespace_id: uuid.UUID
    size: int
    ended: Ended


class Rules:
    """Every rule there is, read once. Few: three for the portal, and three for each namespace that has its own."""

    def __init__(self, namespace_id: uuid.UUID | None = None) -> None:
        rows = RetentionRule.objects.all()
        if namespace_id is not None:
            rows = rows.filter(Q(namespace=None) | Q(namespace=namespace_id))
        self._known = {(row.namespace_id, Kind(row.kind)): row.rule for row in rows}

    def __bool__(self) -> bool:
        return any(rule.days is not None for rule in self._known.values())

    def of(self, namespace: Namespace, kind: Kind) -> Rule | None:
        """The one that counts there. A closed namespace is an archive: only a rule of its own counts."""
        own = self._known.get((namespace.pk, kind))
        return rule_in_force(None if namespace.closed_at else self.of_portal(kind), own)

    def of_portal(self, kind: Kind) -> Rule | None:
        return self._known.get((None, kind))

    def fewest_days(self, kind: Kind) -> int | None:
        """Of all rules of the kind; None: no rule removes anything."""
        days = [rule.days for (_, one), rule in self._known.items() if one is kind and rule.days is not None]
        return min(days, default=None)

    def with_own(self, kind: Kind) -> list[uuid.UUID]:
        """The namespaces that have a rule of their own for this kind."""
        return [namespace for namespace, one in self._known if namespace is not None and one is kind]

    def words(self, namespace: Namespace, kind: Kind) -> str:
        """The rule that counts there: `kept for 30 days (rule of the portal)`."""
        rule = self.of(namespace, kind)
        days = 0 if rule is None else rule.days or 0
        whose = "the namespace" if (namespace.pk, kind) in self._known else "the portal"
        return f"kept for {days} day{'' if days == 1 else 's'} (rule of {whose})"

    def met(self, kind: Kind) -> QuerySet[Namespace]:
        """The namespaces in which a rule of this kind may remove something."""
        own = Q(pk__in=self.with_own(kind))
        return Namespace.objects.filter(own if self.of_portal(kind) is None else own | Q(closed_at=None))


def rules_locked(namespace_id: uuid.UUID, kind: Kind) -> tuple[Namespace | None, Rules]:
    """The namespace (None: it is gone) and the rules as they are now, those of this kind until the transaction ends:
    who closes the namespace, or changes a rule that counts there, waits."""
    rows = Namespace.objects.select_for_update(no_key=True, of=("self",))
    namespace = rows.filter(pk=namespace_id).first()
    lock_rules(namespace_id, kind)
    return namespace, Rules(namespace_id)


def lock_rules(namespace_id: uuid.UUID | None, kind: Kind) -> None:
    """Lock the portal's rule and the namespace's own. A new one of a namespace has no row to lock yet: it is the
    portal's, whose place it takes, that who makes it and who goes by it both lock. Read them afterwards."""
    rows = RetentionRule.objects.filter(Q(namespace=None) | Q(namespace=namespace_id), kind=kind.value)
    list(rows.select_for_update(of=("self",)).order_by("pk").values_list("pk", flat=True))


def candidates(
    jobs: QuerySet[Job], kind: Kind, now: datetime, used: Combinable | None = None
) -> QuerySet[Job, tuple[Any, ...]]:
    """Those of the jobs that are over and still have something of this kind, with all that a rule asks: rows for
    `candidate_of`. One statement. `used`: whether something refers to a job, where that was asked before."""
    rows = jobs.filter(OVER).annotate(
        retained=Coalesce(_size_of(kind), 0) if kind is Kind.JOBS else _size_of(kind),
        is_pinned=Exists(_pins()),
        is_used=used or _is_used(now),
        is_held=Exists(Hold.objects.filter(job=OuterRef("pk"))),
        has_model=Exists(ModelVersion.objects.filter(source_job=OuterRef("pk"))),
    )
    if kind is not Kind.JOBS:
        attempt = f"cleared__{kind.value}_attempt"
        rows = rows.filter(Q(cleared=None) | Q(**{f"{attempt}__lt": F("attempt")}), retained__isnull=False)
        rows = rows.filter(retained__gt=0) if kind is Kind.LOGS else rows
    return rows.values_list(
        "pk", "namespace_id", "retained", "decided_at", "is_pinned", "is_used", "is_held", "has_model", "archived_at",
        "tags",
    )  # fmt: skip


def candidate_of(row: tuple[Any, ...]) -> Candidate:
    """A row of `candidates`."""
    pk, namespace_id, size, ended_at, pinned, used, held, model, archived_at, tags = row
    ended = Ended(ended_at, pinned, bool(used), held, model, archived_at is not None, tags)
    return Candidate(pk, namespace_id, size, ended)


def unspared(
    jobs: QuerySet[Job], rule: Rule, since: Mapping[uuid.UUID, datetime | None], now: datetime
) -> QuerySet[Job, tuple[Any, ...]]:
    """Of the candidates those that are old enough and that nothing spares, the oldest first: rows for `candidate_of`.
    What the rule says is asked of the database, so that spared jobs take no places of others, however many there are;
    but for the newest (`since`, of `newest_since`) where it is of more than one namespace."""
    before = rule.before(now)
    if before is None:
        return candidates(jobs.none(), rule.kind, now)
    rows = candidates(jobs.filter(decided_at__lte=before), rule.kind, now).order_by("decided_at", "pk")
    names = ["is_pinned", "is_used", "is_held"]
    if rule.spares_models or rule.kind is Kind.JOBS:
        names.append("has_model")
    rows = rows.filter(**dict.fromkeys(names, False))
    if rule.tags:
        rows = rows.exclude(Exists(JobTag.objects.filter(job=OuterRef("pk"), name__in=rule.tags)))
    if rule.only_archived:
        rows = rows.filter(archived_at__isnull=False)
    if len(since) == 1:
        (last,) = since.values()
        rows = rows.filter(decided_at__lt=last) if last else rows.none()
    return rows


def due(
    jobs: QuerySet[Job], rule: Rule, namespace_ids: Collection[uuid.UUID] | None, now: datetime, most: int
) -> Iterator[Candidate]:
    """What of the jobs goes now by the rule, the oldest first; of the first `most` that are `unspared`. What `fate`
    says counts: it sees each once more."""
    since = newest_since(rule, namespace_ids)
    for row in unspared(jobs, rule, since, now)[:most].iterator(chunk_size=2_000):
        one = candidate_of(row)
        if fate(rule, one.ended, since.get(one.namespace_id)).goes(now):
            yield one


def newest_since(rule: Rule, namespace_ids: Collection[uuid.UUID] | None) -> Mapping[uuid.UUID, datetime | None]:
    """When the last of the jobs that stay for being the newest ended, by namespace (None: of all). One statement, none
    where the rule keeps none."""
    if not rule.newest:
        return {}
    ended = Job.objects.filter(OVER, namespace=OuterRef("pk")).order_by("-decided_at")
    rows = Namespace.objects.all() if namespace_ids is None else Namespace.objects.filter(pk__in=namespace_ids)
    last = Subquery(ended.values("decided_at")[rule.newest - 1 : rule.newest])
    return dict(rows.annotate(since=last).values_list("pk", "since"))


def fates_of(job: Job, now: datetime) -> dict[Kind, Fate]:
    """What becomes of what the job has, by kind; only what goes one day. Where there is no rule, one statement."""
    found: dict[Kind, Fate] = {}
    rules, used = Rules(job.namespace_id), None
    for kind in Kind:
        rule = rules.of(job.namespace, kind)
        if rule is None or rule.days is None:
            continue
        used = used or _is_used(now, [job.pk])
        row = candidates(Job.objects.filter(pk=job.pk), kind, now, used).first()
        if row is not None:
            since = newest_since(rule, [job.namespace_id]).get(job.namespace_id)
            found[kind] = fate(rule, candidate_of(row).ended, since)
    return found


def is_cleared(job: Job, kind: Kind, attempt: int) -> bool:
    """Whether this was removed by a rule. No statement where the job came from `job_for`."""
    found = getattr(job, "cleared", None)
    return found is not None and attempt <= getattr(found, f"{kind.value}_attempt")


def cleared_words(job: Job, kind: Kind) -> str:
    """When and by which rule it was removed, for people; empty where nothing was."""
    found = getattr(job, "cleared", None)
    at = None if found is None else getattr(found, f"{kind.value}_at")
    if found is None or at is None:
        return ""
    noun, verb = _NOUN[kind], "was" if kind is Kind.LOGS else "were"
    return f"The {noun} {verb} removed on {at:%d %b %Y}: {kind.value} are {getattr(found, f'{kind.value}_rule')}."


def refuse_cleared(job: Job, kind: Kind, attempt: int) -> None:
    """Raises `Gone` with the code `logs_expired` or `files_expired` where it was removed by a rule."""
    if is_cleared(job, kind, attempt):
        remedy = "Retry the job to get them again. Pinned jobs keep what they have."
        raise Gone(cleared_words(job, kind), f"{kind.value}_expired", remedy=remedy)


def _size_of(kind: Kind) -> Any:
    """The bytes of a job that would go, as an expression; NULL: there is nothing of the kind."""
    logs = JobAttempt.objects.filter(job=OuterRef("pk")).order_by().values("job").annotate(all=Sum("log_bytes"))
    log_bytes = Subquery(logs.values("all"), output_field=BigIntegerField())
    if kind is Kind.LOGS:
        return log_bytes
    stored = Upload.objects.filter(job_id=OuterRef("pk"), state=State.COMPLETE).order_by()
    stored = stored.filter(kind__in=FILES) if kind is Kind.FILES else stored.exclude(_OUTLIVES)
    files = stored.values("job_id").annotate(all=Cast(Sum("held"), BigIntegerField())).values("all")
    file_bytes = Subquery(files, output_field=BigIntegerField())
    return file_bytes if kind is Kind.FILES else Coalesce(log_bytes, 0) + Coalesce(file_bytes, 0)


def _pins() -> QuerySet[JobPin]:
    """Of a job: the pins of users who can sign in and still see its namespace. Others can no longer take theirs away,
    or never meant this."""
    sees = Membership.objects.filter(user=OuterRef("user"), namespace=OuterRef("job__namespace"))
    owns = Q(job__namespace__owner=F("user"))
    pins = JobPin.objects.filter(job=OuterRef("pk"), user__is_active=True)
    return pins.filter(Q(user__is_staff=True) | owns | Exists(sees))


def _is_used(now: datetime, job_ids: Collection[uuid.UUID] | None = None) -> Combinable:
    """Whether something refers to the job that must find it whole. `job_ids`: only these are asked about."""
    publishing = Publication.objects.filter(state=Publication.State.COLLECTING)
    if job_ids is not None:
        publishing = publishing.filter(job__in=job_ids)
    used = Q(watched_until__gt=now) | Q(pk__in=publishing.values("job"))
    for _, ids in jobs_in_use.send(sender=Job, job_ids=job_ids):
        if isinstance(ids, QuerySet) or ids:
            used |= Q(pk__in=ids)
    # Not the condition itself, which is unknown to the database where a time is missing.
    return Case(When(used, then=Value(True)), default=Value(False), output_field=BooleanField())
