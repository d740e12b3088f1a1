"""How long what ended jobs left is kept: which rule counts, when something is due to go, and what spares it.

Without a rule everything is kept for ever. Not here: reading the facts (`apps.jobs.state.retention`) and removing
(`apps.jobs.worker.retention`).
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from enum import StrEnum

LONGEST_DAYS = 3_650
MOST_NEWEST = 10_000


class Kind(StrEnum):
    """What of an ended job a rule is about."""

    LOGS = "logs"
    FILES = "files"
    """Outputs, event files and checkpoints; not the models that the job has exported."""
    JOBS = "jobs"
    """The job itself, with its log and its files."""


class Spared(StrEnum):
    """Why something stays although it is old enough. The first that holds is the one that is said."""

    PINNED = "pinned"
    IN_USE = "in_use"
    """A running sweep, a TensorBoard that is open, a schedule or a publication refers to it."""
    HELD = "held"
    MODEL = "model"
    """A version of a model in the registry comes from it."""
    TAGGED = "tagged"
    NOT_ARCHIVED = "not_archived"
    NEWEST = "newest"


@dataclass(frozen=True)
class Rule:
    """One rule. `days` None: for ever. `newest`: so many jobs of each namespace that ended last stay, however old.
    `tags`: a job with one of them stays. A whole job from which a model comes stays in any case."""

    kind: Kind
    days: int | None
    newest: int = 0
    tags: frozenset[str] = field(default_factory=frozenset)
    spares_models: bool = True
    only_archived: bool = False

    def before(self, now: datetime) -> datetime | None:
        """What ended then or before is old enough; None: nothing is."""
        return None if self.days is None else now - timedelta(days=self.days)


@dataclass(frozen=True)
class Ended:
    """What is known of an ended job."""

    ended_at: datetime
    is_pinned: bool = False
    is_used: bool = False
    is_held: bool = False
    has_model: bool = False
    is_archived: bool = False
    tags: Collection[str] = ()


@dataclass(frozen=True)
class Fate:
    """When it goes (None: never), and what spares it until that changes."""

    due_at: datetime | None
    spared: Spared | None = None

    def goes(self, now: datetime) -> bool:
        """Whether it is to be removed now."""
        return self.due_at is not None and self.spared is None and self.due_at <= now


def fate(rule: Rule | None, job: Ended, newest_since: datetime | None = None) -> Fate:
    """What becomes of the job under the rule. `newest_since`: when the last of the `rule.newest` newest ended in its
    namespace; None: it has no more jobs than those. Jobs that ended at the same moment all stay."""
    if rule is None or rule.days is None:
        return Fate(None)
    return Fate(job.ended_at + timedelta(days=rule.days), _spared(rule, job, newest_since))


def _spared(rule: Rule, job: Ended, newest_since: datetime | None) -> Spared | None:
    spares_models = rule.spares_models or rule.kind is Kind.JOBS
    found = (
        (Spared.PINNED, job.is_pinned),
        (Spared.IN_USE, job.is_used),
        (Spared.HELD, job.is_held),
        (Spared.MODEL, job.has_model and spares_models),
        (Spared.TAGGED, not rule.tags.isdisjoint(job.tags)),
        (Spared.NOT_ARCHIVED, rule.only_archived and not job.is_archived),
        (Spared.NEWEST, rule.newest > 0 and (newest_since is None or job.ended_at >= newest_since)),
    )
    return next((why for why, holds in found if holds), None)


def rule_in_force(of_portal: Rule | None, of_namespace: Rule | None) -> Rule | None:
    """A rule of the namespace takes the place of the portal's as a whole, be it longer or shorter."""
    return of_portal if of_namespace is None else of_namespace
