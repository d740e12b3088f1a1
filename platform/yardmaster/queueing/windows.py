"""Amounts of an engine that are reserved for a namespace within a time, and what they leave to others. Pure.

At each moment that a job may still run, every other namespace has at least what is reserved for it then. So a job is
not let in that could reach into such a time and take of it, and within that time others get only the rest. A job
without a time limit could run for ever. What is reserved for a namespace itself keeps none of its own jobs.

A job of which no end is known counts as one that runs on. Not here: who reserves (`apps.administration.reservations`).
"""

from __future__ import annotations

import math
import uuid
from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from yardmaster.queueing.resources import Units


@dataclass(frozen=True)
class Window:
    """Reserved for the namespace in [begins, ends). `name`: what others call the namespace."""

    namespace_id: uuid.UUID
    units: Units
    begins: datetime
    ends: datetime
    name: str = ""


@dataclass(frozen=True)
class Booked:
    """What is reserved on an engine and not over yet, and when the admitted jobs end at the latest; those that are not
    among `ends` have no limit, or are past it."""

    now: datetime
    windows: tuple[Window, ...] = ()
    ends: Mapping[uuid.UUID, datetime] = field(default_factory=dict)
    start_timeout: timedelta = timedelta(0)
    """How long after its admission a job starts at the latest: from then on its time limit counts."""

    @property
    def start_words(self) -> str:
        """What a time limit must leave room for; empty where a job starts at once."""
        minutes = math.ceil(self.start_timeout / timedelta(minutes=1))
        return f" with {minutes} minutes to start and the time to end" if minutes else ""


def most_reserved(windows: Iterable[Window], begins: datetime, ends: datetime) -> dict[str, int]:
    """The most of each resource that these reserve at one moment of [begins, ends)."""
    within = [one for one in windows if one.begins < ends and one.ends > begins]
    found: dict[str, int] = {}
    for moment in {begins, *(one.begins for one in within if one.begins > begins)}:
        for name, units in _reserved_at(within, moment).items():
            found[name] = max(units, found.get(name, 0))
    return found


def _reserved_at(windows: Iterable[Window], moment: datetime) -> dict[str, int]:
    found: defaultdict[str, int] = defaultdict(int)
    for one in windows:
        if one.begins <= moment < one.ends:
            for name, units in one.units.items():
                found[name] += units
    return dict(found)


class _Moment:
    """What each namespace has at one moment: what is reserved for it, or what its jobs hold where that is more."""

    def __init__(self, at: datetime, windows: Iterable[Window]) -> None:
        self.at = at
        self.windows = [one for one in windows if one.begins <= at < one.ends]
        self.reserved: defaultdict[uuid.UUID, dict[str, int]] = defaultdict(dict)
        for one in self.windows:
            mine = self.reserved[one.namespace_id]
            for name, units in one.units.items():
                mine[name] = mine.get(name, 0) + units
        self.held: defaultdict[uuid.UUID, dict[str, int]] = defaultdict(dict)
        self.taken = _reserved_at(self.windows, at)

    def add(self, namespace_id: uuid.UUID, units: Units) -> None:
        mine, reserved = self.held[namespace_id], self.reserved.get(namespace_id, {})
        for name, amount in units.items():
            before = max(mine.get(name, 0), reserved.get(name, 0))
            mine[name] = mine.get(name, 0) + amount
            self.taken[name] = self.taken.get(name, 0) - before + max(mine[name], reserved.get(name, 0))

    def left_for(self, namespace_id: uuid.UUID, name: str, free: int) -> int | None:
        """What the namespace may still take of it; None where others have nothing of it reserved."""
        others = (one for one in self.windows if one.namespace_id != namespace_id)
        if not any(one.units.get(name, 0) > 0 for one in others):
            return None
        held = self.held[namespace_id].get(name, 0)
        own = max(held, self.reserved.get(namespace_id, {}).get(name, 0))
        return free - (self.taken.get(name, 0) - own + held)


@dataclass(frozen=True)
class Kept:
    """What a job lacks for a window of others."""

    window: Window
    lacking: Mapping[str, int]
    """What is left of each resource that it lacks."""


class Calendar:
    """What is reserved, while a walk along the queue promises more. `free`: what strangers leave of the engine."""

    def __init__(self, booked: Booked, free: Units, holders: Iterable[tuple[uuid.UUID, uuid.UUID, Units]]) -> None:
        """`holders`: job, namespace and what it holds on the engine."""
        coming = [one for one in booked.windows if one.ends > booked.now]
        self._free = free
        self._moments = [_Moment(at, coming) for at in sorted({max(one.begins, booked.now) for one in coming})]
        for job_id, namespace_id, units in holders:
            self.take(namespace_id, units, booked.ends.get(job_id))

    def take(self, namespace_id: uuid.UUID, units: Units, ends_by: datetime | None) -> None:
        """Count a job that runs until then at most."""
        for one in self._moments:
            if ends_by is None or ends_by > one.at:
                one.add(namespace_id, units)

    def kept_from(self, namespace_id: uuid.UUID, units: Units, ends_by: datetime | None) -> Kept | None:
        """The first window that keeps a job from starting which runs until then at most; None where none does."""
        for one in self._moments:
            if ends_by is not None and ends_by <= one.at:
                continue
            left = {name: one.left_for(namespace_id, name, self._free.get(name, 0)) for name in units}
            lacking = {name: most for name, most in left.items() if most is not None and units[name] > most}
            if lacking:
                return Kept(_first(one.windows, namespace_id, lacking), lacking)
        return None


def _first(windows: Iterable[Window], namespace_id: uuid.UUID, lacking: Iterable[str]) -> Window:
    names = set(lacking)
    return next(one for one in windows if one.namespace_id != namespace_id and names & one.units.keys())
