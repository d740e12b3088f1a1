"""Every process of the portal ends when it is asked to, however often: the end of `make up` sends several signals."""

from __future__ import annotations

import os
import signal
import subprocess
import time

import pytest

from celery_worker.app import end_at_the_first_signal
from tests.real.portal import WHOLE, RealPortal, whole_portal

__all__ = ["whole_portal"]
pytestmark = [pytest.mark.slow, pytest.mark.linux, pytest.mark.timeout(120)]

SIGNALS = 40


@pytest.mark.parametrize("name", [one for one in WHOLE if one != "valkey"])
def test_a_process_ends_though_it_is_told_again_and_again(whole_portal: RealPortal, name: str):
    whole_portal.start_stopped()
    process = whole_portal.running.pop(name)
    for _ in range(SIGNALS):
        if process.poll() is not None:
            break
        os.kill(process.pid, signal.SIGTERM)
        time.sleep(0.001)
    try:
        process.wait(20)
    except subprocess.TimeoutExpired:
        process.kill()
        raise AssertionError(f"{name} does not end") from None


def test_beat_handles_one_signal_though_others_interrupt_it():
    """Celery's own handler takes a lock, and so may not be interrupted by itself."""
    handled: list[str] = []

    def interrupted(number: int, frame: object) -> None:
        handled.append("begins")
        if len(handled) < 10:
            os.kill(os.getpid(), signal.SIGTERM)
            os.kill(os.getpid(), signal.SIGINT)
            time.sleep(0.01)
        handled.append("ends")

    before = {number: signal.signal(number, interrupted) for number in (signal.SIGTERM, signal.SIGINT)}
    try:
        end_at_the_first_signal()
        os.kill(os.getpid(), signal.SIGTERM)
        time.sleep(0.05)
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
    assert handled == ["begins", "ends"]
