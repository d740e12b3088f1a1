"""Amounts of an engine that are reserved for a namespace, or a group of the tree of shares, within a time, and what
they leave to others. Pure.

At each moment that a job may still run, all others have at least what is reserved for them then. So a job is not let in
that could reach into such a time and take of it, and within that time others get only the rest. A job without a time
limit could run for ever. What is reserved for a namespace, or for a group that it is in, keeps none of its own jobs.

A job takes first of what is reserved for its namespace, then of what is reserved for the group above that, and so on up
the tree; the members of a group share what is reserved for it. A job of which no end is known counts as one that runs
on. Not here: who reserves (`apps.administration.reservations`).
"""

from __future__ import annotations

import math
import uuid
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from functools import cache

from yardmaster.queueing.resources import Units


@dataclass(frozen=True)
class Window:
    """Reserved in [begins, ends). `owner`: a namespace, or a group; `name`: what others call it."""

    owner: uuid.UUID
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
    margin: timedelta = timedelta(0)
    """Past the time that its tasks have to end, until what still runs of it is removed."""
    above: Mapping[uuid.UUID, tuple[uuid.UUID, ...]] = field(default_factory=dict)
    """The groups above each namespace, the nearest first. One that is in none is left out."""

    def path(self, namespace_id: uuid.UUID) -> tuple[uuid.UUID, ...]:
        """For whom may be reserved what the namespace takes: itself, and then the groups above it."""
        return (namespace_id, *self.above.get(namespace_id, ()))

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


Path = tuple[uuid.UUID, ...]


class _Moment:
    """What is held at one moment, and what is reserved then and not taken by whom it is reserved for."""

    def __init__(self, at: datetime, windows: Iterable[Window]) -> None:
        self.at = at
        self.windows = [one for one in windows if one.begins <= at < one.ends]
        self._reserved = _reserved_at(self.windows, at)
        self.taken = dict(self._reserved)
        """What is held, and what is reserved beside that."""
        self._untaken: defaultdict[uuid.UUID, defaultdict[str, int]] = defaultdict(lambda: defaultdict(int))
        for one in self.windows:
            for name, units in one.units.items():
                self._untaken[one.owner][name] += units
        self._of_owner = {key: dict(units) for key, units in self._untaken.items()}

    def add(self, path: Path, units: Units) -> None:
        for name, amount in units.items():
            rest = amount
            for key in path:
                part = min(rest, self._untaken[key][name])
                self._untaken[key][name] -= part
                rest -= part
            self.taken[name] = self.taken.get(name, 0) + rest

    def untaken(self, path: Path, name: str) -> int:
        """What is reserved for these of it, and still there."""
        return sum(self._untaken[key][name] for key in path if key in self._untaken)

    def for_others(self, path: Path, name: str) -> int:
        """What is reserved of it for all but these, taken or not."""
        own = sum(self._of_owner[key].get(name, 0) for key in path if key in self._of_owner)
        return self._reserved.get(name, 0) - own

    def left_for(self, path: Path, name: str, free: int) -> int | None:
        """What may still be taken of it; None where others have nothing of it reserved."""
        if not self.for_others(path, name):
            return None
        return free - self.taken.get(name, 0) + self.untaken(path, name)


@dataclass(frozen=True)
class Kept:
    """What a job lacks for a window of others."""

    window: Window
    lacking: Mapping[str, int]
    """What is left of each resource that it lacks."""
    ends_by: datetime | None = None
    """Until when the job may hold what it takes; None: it has no limit."""

    @property
    def until_words(self) -> str:
        """That, for whom it keeps; empty where it has no limit."""
        return "" if self.ends_by is None else f": it may hold what it takes until {self.ends_by:%Y-%m-%d %H:%M} UTC"


class Calendar:
    """What is reserved, while a walk along the queue promises more. `free`: what strangers leave of the engine."""

    def __init__(self, booked: Booked, free: Units, holders: Iterable[tuple[uuid.UUID, uuid.UUID, Units]]) -> None:
        """`holders`: job, namespace and what it holds on the engine."""
        coming = [one for one in booked.windows if one.ends > booked.now]
        self._free = free
        self._path = cache(booked.path)
        self._moments = [_Moment(at, coming) for at in sorted({max(one.begins, booked.now) for one in coming})]
        self._now = next((one for one in self._moments if one.at == booked.now), None)
        for job_id, namespace_id, units in holders:
            self.take(namespace_id, units, booked.ends.get(job_id))

    def take(self, namespace_id: uuid.UUID, units: Units, ends_by: datetime | None) -> None:
        """Count a job that runs until then at most."""
        for one in self._until(ends_by):
            one.add(self._path(namespace_id), units)

    def kept_from(self, namespace_id: uuid.UUID, units: Units, ends_by: datetime | None) -> Kept | None:
        """The first window that keeps a job from starting which runs until then at most; None where none does."""
        path = self._path(namespace_id)
        for one in self._until(ends_by):
            left = {name: one.left_for(path, name, self._free.get(name, 0)) for name in units}
            lacking = {name: most for name, most in left.items() if most is not None and units[name] > most}
            if lacking:
                return Kept(_first(one.windows, path, lacking), lacking, ends_by)
        return None

    def outlasts(self, namespace_id: uuid.UUID, units: Units, ends_by: datetime | None) -> bool:
        """Whether a window keeps such a job even if no other job held anything: only its end lets it start."""
        path, free = self._path(namespace_id), self._free
        return any(
            asked > free.get(name, 0) - reserved
            for one in self._until(ends_by)
            for name, asked in units.items()
            if (reserved := one.for_others(path, name))
        )

    def own_now(self, namespace_id: uuid.UUID) -> Mapping[str, int]:
        """What is reserved for the namespace now, and for the groups above it, and still there."""
        path, now = self._path(namespace_id), self._now
        return {name: now.untaken(path, name) for name in now.taken} if now else {}

    def owners_now(self, namespace_id: uuid.UUID) -> frozenset[uuid.UUID]:
        """The namespace, and the groups above it, as far as something is reserved for them now."""
        path = self._path(namespace_id)
        return frozenset(one.owner for one in self._now.windows if one.owner in path) if self._now else frozenset()

    def most_for(self, namespace_id: uuid.UUID, name: str, ends_by: datetime | None) -> int | None:
        """What a job that runs until then at most may take of it for all windows; None where none bounds it."""
        path, free = self._path(namespace_id), self._free.get(name, 0)
        found = [one.left_for(path, name, free) for one in self._until(ends_by)]
        return min((most for most in found if most is not None), default=None)

    def _until(self, ends_by: datetime | None) -> Iterator[_Moment]:
        return (one for one in self._moments if ends_by is None or ends_by > one.at)


def _first(windows: Iterable[Window], path: Path, lacking: Iterable[str]) -> Window:
    names = set(lacking)
    return next(one for one in windows if one.owner not in path and names & one.units.keys())
