"""When a process that lives counts as one that no longer answers."""

from __future__ import annotations

import socket
import threading

import pytest
from hypothesis import given
from hypothesis import strategies as st

from portal.up.health import START_LIMITS, Health, Heartbeat, answers
from portal.up.processes import Process

LIMIT = 10.0


def looked(heartbeat: Heartbeat, *looks: tuple[float, int]) -> Heartbeat:
    """After looks at these times, which found these marks."""
    for now, mark in looks:
        heartbeat = heartbeat.after_look(mark, now)
    return heartbeat


def every_half_second(start: float, seconds: float, mark: int) -> list[tuple[float, int]]:
    return [(start + step / 2, mark) for step in range(1, int(seconds * 2) + 1)]


def test_a_process_that_once_answered_and_is_silent_for_the_limit_counts():
    heartbeat = looked(Heartbeat(0, 0.0), (0.5, 1))
    assert not looked(heartbeat, *every_half_second(0.5, 9.5, 1)).is_over(LIMIT)
    assert looked(heartbeat, *every_half_second(0.5, 10, 1)).is_over(LIMIT)


def test_a_process_that_is_still_starting_may_be_silent_for_longer_and_not_for_ever():
    assert not looked(Heartbeat(7, 0.0), *every_half_second(0, LIMIT * START_LIMITS - 1, 7)).is_over(LIMIT)
    assert looked(Heartbeat(7, 0.0), *every_half_second(0, LIMIT * START_LIMITS, 7)).is_over(LIMIT)


def test_any_sign_begins_the_count_again():
    heartbeat = looked(Heartbeat(0, 0.0), (0.5, 1), *every_half_second(0.5, 9, 1), (10.0, 2))
    assert not looked(heartbeat, *every_half_second(10, 9, 2)).is_over(LIMIT)


@pytest.mark.parametrize("pause", [30.0, 3600.0, 1e6])
def test_a_machine_that_slept_makes_nothing_silent(pause):
    heartbeat = looked(Heartbeat(0, 0.0), (0.5, 1), (1.0, 1), (1.0 + pause, 1), (1.5 + pause, 1))
    assert heartbeat.seconds == 2.0
    assert not heartbeat.is_over(LIMIT)


@given(st.lists(st.floats(0, 5), min_size=1, max_size=200))
def test_silence_is_never_longer_than_the_clock_nor_than_the_looks(steps):
    heartbeat, now = Heartbeat(0, 0.0).after_look(1, 0.0), 0.0
    for step in steps:
        now += step
        heartbeat = heartbeat.after_look(1, now)
    assert heartbeat.seconds <= now + 1e-6
    assert heartbeat.seconds <= len(steps)


def test_a_file_that_is_touched_is_a_sign_and_one_of_an_earlier_start_is_none(tmp_path):
    file = tmp_path / "beat.alive"
    file.touch()
    process, health = Process("beat", ("true",), touches=file), Health(2.0)
    health.begin(process, 0.0)
    assert not any(health.is_unresponsive(process, now) for now in range(1, 10))
    file.touch()
    assert [health.is_unresponsive(process, now) for now in (10, 11, 12, 13)] == [False, False, True, True]
    health.begin(process, 14)
    assert not any(health.is_unresponsive(process, now) for now in range(15, 24))


def test_a_process_without_a_sign_is_never_judged():
    health = Health(1.0)
    health.begin(Process("one", ("true",)), 0.0)
    assert not any(health.is_unresponsive(Process("one", ("true",)), now) for now in range(100))


@pytest.mark.parametrize(
    ("says", "expected"), [(b"HTTP/1.1 503 Busy\r\nContent-Length: 0\r\n\r\n", True), (b"", False)]
)
def test_any_answer_is_one_and_an_open_port_alone_is_none(says, expected):
    with socket.create_server(("127.0.0.1", 0)) as server:

        def serve() -> None:
            client, _ = server.accept()
            with client:
                client.recv(1000)
                client.sendall(says)

        thread = threading.Thread(target=serve)
        address = f"http://127.0.0.1:{server.getsockname()[1]}/healthz"
        thread.start()
        assert answers(address, 5) is expected
        thread.join()
    assert not answers(address, 1)
    assert not answers("/nowhere/valkey.sock", 1)
