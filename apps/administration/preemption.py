"""Whether jobs may be preempted on an engine, and within which bounds. Every change is audited.

Not here: whom it meets (`yardmaster.queueing.takings`), acting on it (`apps.jobs.state.preemptions`), and the classes
whose jobs take places or are spared (`priorities`).
"""

from __future__ import annotations

from dataclasses import asdict, dataclass

from django.db import transaction

from apps.accounts.models import User
from apps.audit.services import record
from apps.errors import Invalid, NotFound
from apps.jobs.engines.configured import engine_names
from apps.jobs.models import Preemption, PreemptionPolicy
from apps.jobs.models.preemption import LONGEST_MINUTES, MOST_A_DAY
from apps.jobs.state import queue
from apps.jobs.state.preemptions import preemptions_of
from yardmaster.errors import Problem

MOST_SHOWN = 50


@dataclass(frozen=True)
class PolicyFacts:
    """What is said of an engine's preemption."""

    is_on: bool = False
    least_minutes: int = 10
    most_a_day: int = 3


def policies() -> list[PreemptionPolicy]:
    """Of every engine of the settings; unsaved, and off, where nothing was said."""
    known = PreemptionPolicy.objects.in_bulk(engine_names())
    return [known.get(name) or PreemptionPolicy(engine=name) for name in engine_names()]


def policy_of(engine: str) -> PreemptionPolicy:
    """Raises NotFound."""
    if engine not in engine_names():
        raise NotFound("There is no engine of this name.")
    return PreemptionPolicy.objects.filter(engine=engine).first() or PreemptionPolicy(engine=engine)


def policy_set(*, engine: str, facts: PolicyFacts, actor: User) -> PreemptionPolicy:
    """From the next pass over the engine's queue on. Turned off, jobs that are ending for others already return to the
    queue all the same."""
    policy_of(engine)
    _check("least_minutes", facts.least_minutes, LONGEST_MINUTES)
    _check("most_a_day", facts.most_a_day, MOST_A_DAY)
    with transaction.atomic():
        before = PreemptionPolicy.objects.select_for_update().filter(engine=engine).first() or PreemptionPolicy()
        was = {f"{name}_before": getattr(before, name) for name in asdict(facts)}
        made, _ = PreemptionPolicy.objects.update_or_create(engine=engine, defaults=asdict(facts))
        record(actor, "preemption.change", f"engine:{engine}", **asdict(facts), **was)
        queue.ask(engine)
    return made


def preemptions_shown() -> list[Preemption]:
    """The newest, of all engines."""
    return preemptions_of(engine_names(), MOST_SHOWN)


def _check(field: str, value: int, most: int) -> None:
    if not 1 <= value <= most:
        message = f"It is 1 to {most}."
        raise Invalid([Problem(field, "out_of_range", message, "Choose a value in this range.", str(value))])
