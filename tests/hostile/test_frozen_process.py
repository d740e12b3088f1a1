"""A process of `make up` that lives and does not answer is started again, and a busy portal is left alone."""

from __future__ import annotations

import os
import re
import signal
from collections.abc import Iterator

import pytest

from tests.real.scene import until
from tests.real.up import Up, running_up

pytestmark = [pytest.mark.slow, pytest.mark.linux, pytest.mark.timeout(300)]


@pytest.fixture(scope="module")
def up() -> Iterator[Up]:
    """One that waits only seconds for a silent process."""
    with running_up({"YARDMASTER_HEARTBEAT_TIMEOUT": "15"}) as one:
        yield one


def freeze(up: Up, *names: str) -> None:
    """SIGSTOP: they live, their ports accept connections, and no SIGTERM ends them. Until there are others."""
    first = {name: up.pid(name) for name in names}
    for pid in first.values():
        os.kill(pid, signal.SIGSTOP)
    for name, pid in first.items():
        until(lambda name=name, pid=pid: up.pid(name) != pid, 120, f"another {name}")
        assert re.search(rf"{name} has not answered for \d+ s and is ended", up.said())


def test_a_frozen_web_process_is_replaced_and_no_other_is(up: Up):
    until(up.answers, what="the portal's answer")
    freeze(up, "web")
    until(up.answers, what="the portal's answer")
    assert up.said().count("has not answered") == 1


@pytest.mark.long
def test_every_other_frozen_process_is_replaced_too(up: Up):
    others = ("worker", "beat", "conductor")
    for name in others:
        until(lambda name=name: (up.home / "run" / f"{name}.alive").exists(), what=f"a sign of {name}")
    freeze(up, *others, "valkey")
    until(up.answers, what="the portal's answer")
