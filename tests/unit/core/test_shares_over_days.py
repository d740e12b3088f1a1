"""Over days of hundreds of jobs each group has what an ideal division would give it, no job starves, and what is lent
comes back as soon as the jobs that hold it end."""

from __future__ import annotations

import uuid

import pytest

from tests.unit.core.generators import NOW
from tests.unit.core.share_simulation import Engine, Tree, ideal_parts
from yardmaster.queueing.shares import Member

HOUR = 60
RED, BLUE, GREEN = (uuid.UUID(int=n) for n in (51, 52, 53))
SPACES = [uuid.UUID(int=n) for n in range(1, 9)]
OF_RED, OF_BLUE, OF_GREEN = SPACES[:3], SPACES[3:6], SPACES[6:]


def tree(red: int = 1, blue: int = 2, green: int = 5, guaranteed: int = 0) -> Tree:
    groups = {RED: (red, OF_RED), BLUE: (blue, OF_BLUE), GREEN: (green, OF_GREEN)}
    found = {
        key: Member(None, weight, {"cpu": guaranteed * 1000} if key == RED and guaranteed else {})
        for key, (weight, _) in groups.items()
    }
    return found | {space: Member(key) for key, (_, spaces) in groups.items() for space in spaces}


def test_the_ideal_gives_what_one_does_not_want_to_its_neighbours() -> None:
    parts = ideal_parts(tree(1, 1, 2), {OF_RED[0]: 100, OF_RED[1]: 2, OF_BLUE[0]: 4}, 40)
    assert parts[OF_RED[1]] == 2
    assert parts[OF_BLUE[0]] == 4
    assert parts[OF_RED[0]] == 34


@pytest.mark.parametrize("seed", [1, 2])
def test_while_all_want_more_than_there_is_each_group_has_its_part(seed: int) -> None:
    engine = Engine(tree(), SPACES, cores=64, wants=lambda *_: 6, seed=seed)
    engine.run(6 * HOUR)
    engine.forget()
    engine.run(30 * HOUR)
    assert engine.most_used <= 64
    minutes, largest = 24 * HOUR, 4
    for spaces in (OF_RED, OF_BLUE, OF_GREEN):
        had, ideal = (sum(some[one] for one in spaces) / minutes for some in (engine.received, engine.ideal))
        assert abs(had - ideal) <= largest, (spaces, had, ideal)
    assert sum(engine.received.values()) > 0.9 * 64 * minutes
    assert len(engine.waits) > 300


def test_who_comes_and_goes_has_a_part_while_there_and_leaves_it_after() -> None:
    """Green, with five eighths of the weight, wants something on every second half of a day."""

    def wants(space: uuid.UUID, hour: float) -> int:
        return 6 if space not in OF_GREEN or hour % 24 >= 12 else 0

    engine = Engine(tree(), SPACES, cores=64, wants=wants)
    engine.run(12 * HOUR)
    assert engine.held(*OF_GREEN) == 0
    assert engine.held(*SPACES) > 48, "what green leaves is used"
    engine.run(14 * HOUR + 10)
    assert engine.held(*OF_GREEN) >= 36, "and is back when the jobs of the others have ended"
    engine.run(48 * HOUR)
    assert engine.received[OF_RED[0]] > 0


def test_no_job_starves_not_even_one_of_half_of_the_engine() -> None:
    """Every job starts within the patience, the longest running job, and those of its namespace before it."""
    engine = Engine(tree(1, 1, 1), SPACES, cores=32, wants=lambda *_: 2, sizes=(1, 1, 1, 2, 16), longest=60)
    engine.run(48 * HOUR)
    assert len(engine.waits) > 200
    # Sixteen waiting jobs, each at most half of the engine for an hour: two at a time, and once around more.
    assert max(engine.waits) <= 2 * 16 * HOUR
    oldest = min(one.queued_at for one in engine.queue.values())
    assert engine.now - (oldest - NOW).total_seconds() / 60 <= 2 * 16 * HOUR


def test_what_is_guaranteed_comes_back_within_the_longest_running_job() -> None:
    """Red has little weight and is guaranteed half of the engine. It wants nothing for a day, then all of that."""

    def wants(space: uuid.UUID, hour: float) -> int:
        return 6 if space not in OF_RED or hour >= 24 else 0

    lent = Engine(tree(guaranteed=32), SPACES, cores=64, wants=wants)
    lent.run(24 * HOUR)
    assert lent.held(*OF_RED) == 0
    assert lent.held(*SPACES) > 48
    lent.run(26 * HOUR + 1)
    assert lent.held(*OF_RED) >= 32 - 4, "all but the largest job"
    without = Engine(tree(), SPACES, cores=64, wants=wants)
    without.run(26 * HOUR + 1)
    assert without.held(*OF_RED) < 20, "its weight alone is an eighth"


def test_weight_nought_has_what_is_idle_and_nothing_else() -> None:
    def wants(space: uuid.UUID, hour: float) -> int:
        return 6 if space in OF_RED or hour < 12 else 0

    engine = Engine(tree(red=0), SPACES, cores=64, wants=wants, sizes=(1,))
    engine.run(12 * HOUR)
    assert engine.held(*OF_RED) == 0
    engine.run(15 * HOUR)
    assert engine.held(*OF_RED) > 48
