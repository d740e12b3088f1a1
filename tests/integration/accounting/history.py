"""A ledger written by hand, and its sums counted half hour by half hour: slowly, and not as the portal does it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, timedelta
from typing import Any
from uuid import UUID

from hypothesis import strategies as st

from apps.accounting.rollup import usage_sweep
from apps.jobs.models import Reservation

BEGIN = datetime(2026, 10, 29, tzinfo=UTC)
SLOT = timedelta(minutes=30)
NAMES = ("red", "blue")
DEVICES: list[dict[str, int]] = [{}, {"device/a100": 2}, {"device/a100": 1, "amd.com/gpu": 3}]


def at(slot: int, part: float = 0.0) -> datetime:
    """A half hour after the begin, and a part of a second that does not count."""
    return BEGIN + slot * SLOT + timedelta(seconds=part)


@dataclass(frozen=True)
class Row:
    since: int
    part: float
    namespace: int
    owner: int
    role: str
    cpu: int
    memory: int
    gpus: int
    devices: int


rows = st.builds(
    Row, st.integers(0, 330), st.floats(0, 0.999), st.integers(0, 1), st.integers(0, 2),
    st.sampled_from(["ps", "worker"]),
    st.integers(1, 64_000), st.integers(1, 1 << 40), st.integers(0, 8), st.integers(0, 2),
)  # fmt: skip
steps = st.lists(
    st.tuples(st.just("add"), rows)
    | st.tuples(st.just("close"), st.tuples(st.integers(0, 20), st.integers(0, 330), st.floats(0, 0.999)))
    | st.tuples(st.just("sweep"), st.integers(0, 340)),
    max_size=14,
)


@dataclass
class History:
    """What happened. Closing is in any order of times: clocks are set back, and messages come late."""

    written: list[tuple[Row, int | None, Reservation]] = field(default_factory=list)

    def play(self, steps: list[tuple[str, Any]]) -> None:
        for name, given in steps:
            getattr(self, name)(given)

    def add(self, row: Row) -> None:
        number = len(self.written)
        made = Reservation.objects.create(
            job_id=UUID(int=number // 2), job_name=f"job {number // 2}", namespace_id=UUID(int=row.namespace),
            namespace_slug=NAMES[row.namespace], owner_id=UUID(int=row.owner) if row.owner else None,
            owner_name=f"user {row.owner}", engine="local", attempt=number, role=row.role, tasks=1,
            cpu=row.cpu / 1000, memory=row.memory, gpus=row.gpus, extended=DEVICES[row.devices],
            reserved_at=at(row.since, row.part),
        )  # fmt: skip
        self.written.append((row, None, made))

    def close(self, given: tuple[int, int, float]) -> None:
        number, slot, part = given
        if number < len(self.written):
            row, until, made = self.written[number]
            if until is None:
                Reservation.objects.filter(pk=made.pk).close(at(slot, part))
                self.written[number] = (row, slot, made)

    def sweep(self, slot: int) -> None:
        usage_sweep(at(slot))

    def counted(self, begin: int, end: int, key: Callable[[Row, date], Any]) -> dict[Any, Counter[str]]:
        """By what `key` says of a row and a day, in [begin, end) of half hours."""
        found: dict[Any, Counter[str]] = {}
        for row, until, _ in self.written:
            held = {"cpu": row.cpu, "memory": row.memory >> 10, "gpus": row.gpus, **DEVICES[row.devices]}
            for slot in range(begin, end):
                if row.since <= slot and (until is None or slot < until):
                    sums = found.setdefault(key(row, at(slot).date()), Counter())
                    for name, amount in held.items():
                        sums[name] += amount * 1800
        plain = {one: Counter({name: amount for name, amount in sums.items() if amount}) for one, sums in found.items()}
        return {one: sums for one, sums in plain.items() if sums}
