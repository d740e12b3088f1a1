"""What is remembered of credentials: bounded, and only for its time."""

from __future__ import annotations

import pytest

from portal import credential_memory
from portal.credential_memory import Memory, has_sent_too_many, note_unknown


@pytest.fixture
def clock(monkeypatch) -> list[float]:
    now = [100.0]
    monkeypatch.setattr(credential_memory.time, "monotonic", lambda: now[0])
    return now


def test_a_value_is_there_for_its_time_and_no_longer(clock):
    memory: Memory[str] = Memory(5.0)
    memory.put(b"a", "good")
    clock[0] += 4.9
    assert memory.get(b"a") == "good"
    clock[0] += 0.2
    assert memory.get(b"a") is None


def test_the_oldest_go_when_there_are_too_many(clock):
    memory: Memory[int] = Memory(5.0, most=3)
    for number in range(100):
        memory.put(b"%d" % number, number)
    assert len(memory) == 3
    assert [memory.get(b"%d" % number) for number in (96, 97, 99)] == [None, 97, 99]


def test_an_address_has_a_bounded_number_of_unknown_ones_looked_up(settings):
    settings.YARDMASTER_RATES = {**settings.YARDMASTER_RATES, "STRANGER": 3}
    for _ in range(3):
        assert not has_sent_too_many("192.0.2.1")
        note_unknown("192.0.2.1")
    assert has_sent_too_many("192.0.2.1")
    assert not has_sent_too_many("192.0.2.2"), "another address is not concerned"
