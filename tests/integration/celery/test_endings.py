"""Every process of the portal ends when it is asked to, however often: the end of `make up` sends several signals."""

from __future__ import annotations

import os
import signal
import subprocess
import time

import pytest

from tests.real.portal import WHOLE, RealPortal, whole_portal

__all__ = ["whole_portal"]
pytestmark = [pytest.mark.slow, pytest.mark.linux, pytest.mark.timeout(120)]

ROUNDS, SIGNALS = 3, 40


@pytest.mark.parametrize("name", [one for one in WHOLE if one != "valkey"])
def test_a_process_ends_though_it_is_told_again_and_again(whole_portal: RealPortal, name: str):
    whole_portal.start_stopped()
    for _ in range(ROUNDS if name == "beat" else 1):
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
        whole_portal.start(name)
