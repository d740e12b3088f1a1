"""Pods that lose the portal for a while, by a rule in the development cluster's network: what the user sees meanwhile,
and that nothing is lost.
"""

from __future__ import annotations

import time

import pytest

from tests.cluster.jobs import TRAINS, ended, launch, text_of
from tests.cluster.reach import Cluster, wait_for
from yardmaster_client import Job, Yardmaster

pytestmark = [pytest.mark.alone, pytest.mark.cluster, pytest.mark.slow, pytest.mark.timeout(400)]

LINES = 500
CUT_FOR = 20.0
ON_THE_WAY = 6.0
"""Seconds after which what was sent before the cut has arrived."""
PRINTS = f"""
import time
for number in range({LINES}):
    print("line", number, flush=True)
    time.sleep(0.1)
"""


def numbers(client: Yardmaster, job: Job) -> list[int]:
    return [int(line.split()[1]) for line in text_of(client, job).splitlines() if line.startswith("line ")]


@pytest.mark.long
def test_a_job_whose_pods_lose_the_portal_goes_on_and_loses_no_line(ada: Yardmaster, cluster: Cluster):
    if not cluster.is_developed:
        pytest.skip("the network is cut on the cluster of make cluster only, and KUBECONFIG names another")
    job = launch(ada, PRINTS)
    wait_for("the first lines", lambda: len(numbers(ada, job)) > 20, TRAINS)
    with cluster.cut_off():
        cut_at = time.monotonic()
        time.sleep(ON_THE_WAY)
        known = numbers(ada, job)
        while time.monotonic() < cut_at + CUT_FOR:
            _is_shown_as_running(ada, job)
            time.sleep(1)
        assert numbers(ada, job) == known == list(range(len(known)))
        assert len(known) < LINES - 100, "the job was nearly over: nothing was cut"
    job = ended(ada, job)
    assert numbers(ada, job) == list(range(LINES))
    assert [(one["phase"], one["restarts"]) for one in ada.jobs.tasks(job.id)] == [("SUCCEEDED", 0)]
    assert [one["gaps"] for one in ada.jobs.streams(job.id)] == [[]]


def _is_shown_as_running(client: Yardmaster, job: Job) -> None:
    """The cluster says that its pod runs, so the portal says so too: a runner's silence is no verdict."""
    seen = client.jobs.get(job.id)
    assert (seen.phase, seen.attempt, seen.reason, seen.message) == ("RUNNING", 1, "", "")
    assert [(one["phase"], one["restarts"]) for one in client.jobs.tasks(job.id)] == [("RUNNING", 0)]
