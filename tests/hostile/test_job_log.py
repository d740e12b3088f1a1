"""What tasks print, however much and however fast: kept while the portal is there, counted where it is dropped."""

from __future__ import annotations

import signal
import time
from collections.abc import Iterator

import pytest

from tests.real.scene import Scene, until

pytestmark = [pytest.mark.slow, pytest.mark.linux, pytest.mark.timeout(300)]

MIB = 1 << 20


def printer(mebibytes: int, before: str = "", after: str = "") -> str:
    """A script that prints so many MiB of numbered lines of 1 KiB, as fast as it can."""
    return (
        f"import os, time\n{before}\n"
        f"for number in range({mebibytes}):\n"
        "    block = b''.join(b'%07d ' % (number * 1024 + n) + b'.' * 1015 + b'\\n' for n in range(1024))\n"
        "    view = memoryview(block)\n"
        "    while view:\n        view = view[os.write(1, view):]\n"
        f"{after}\n"
    )


# --- while the portal is there, however slowly ---------------------------------------------------------------------


def test_a_portal_that_is_held_up_again_and_again_costs_no_line(attacked: Scene):
    """As on a machine that is far too busy: the web process runs for a second out of eight."""
    job = attacked.launch(printer(200))
    until(lambda: attacked.portal_has_line(job, "worker", 0), what="the first line")
    web = attacked.portal.running["web"]
    for _ in range(3):
        web.send_signal(signal.SIGSTOP)
        time.sleep(7)
        web.send_signal(signal.SIGCONT)
        time.sleep(1)
    job = attacked.settled(job, 120)
    assert job.phase == "SUCCEEDED", job.message
    (stream,) = attacked.client.jobs.streams(job.id)
    assert (stream["lines"], stream["bytes"], stream["gaps"]) == (200 * 1024, 200 * MIB, [])


@pytest.fixture
def impatient(attacked: Scene) -> Iterator[Scene]:
    """Its tasks wait two seconds for a portal that does not answer."""
    environment = attacked.portal.environment
    environment["YARDMASTER_LOG_WAIT"] = "2"
    attacked.portal.kill("web")
    attacked.portal.start("web")
    yield attacked
    del environment["YARDMASTER_LOG_WAIT"]
    attacked.portal.kill("web")
    attacked.portal.start("web")


def test_a_portal_that_is_away_costs_lines_that_are_marked_and_counted(impatient: Scene):
    go, done = impatient.traces / "go", impatient.traces / "done"
    wait = f"print('first', flush=True)\nwhile not os.path.exists({str(go)!r}): time.sleep(0.1)"
    job = impatient.launch(printer(160, wait, f"open({str(done)!r}, 'w')"))
    until(lambda: impatient.portal_has_line(job, "worker", 0), what="the first line")
    impatient.portal.kill("web")
    go.touch()
    until(done.exists, 120, "the script's end")
    impatient.portal.start("web")
    job = impatient.settled(job, 120)
    assert job.phase == "SUCCEEDED", job.message
    (stream,) = impatient.client.jobs.streams(job.id)
    lost = stream["gaps"]
    assert lost
    assert stream["lines"] == 160 * 1024 + 1
    assert sum(gap["bytes"] for gap in lost) == 160 * MIB + len("first\n") - stream["bytes"]
    assert impatient.lines(job, start=-1)[0].startswith(f"{160 * 1024 - 1:07}")
