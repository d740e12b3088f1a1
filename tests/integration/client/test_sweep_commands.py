"""A sweep from the command line to its end: real jobs on the local engine, whose scalars plain Python writes."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator

import pytest

from tests.real.portal import ROOT, RealPortal, whole_portal
from yardmaster_client import Yardmaster
from yardmaster_client.aio import AsyncYardmaster

__all__ = ["whole_portal"]

pytestmark = [pytest.mark.slow, pytest.mark.timeout(300)]

EXAMPLE = ROOT / "examples" / "sweep"


@pytest.fixture(scope="module")
def ada(whole_portal: RealPortal) -> Iterator[Yardmaster]:
    """An administrator of the whole portal."""
    with Yardmaster(whole_portal.url, whole_portal.token_of("ada", is_staff=True)) as portal:
        yield portal


def test_the_example_is_swept_to_its_end_and_says_which_trial_is_best(yardmaster, ada):
    grid = ["--grid", "lr=0.01,0.06", "--grid", "momentum=0.0,0.5"]
    done = yardmaster("sweeps", "create", EXAMPLE / "job.yaml", "--code", EXAMPLE, *grid, "--metric", "loss",
                      "--minimize", "--parallel", "2", "--wait", "--json")  # fmt: skip
    assert done.code == 0, done.err + done.out
    found = done.json
    assert (found["state"], found["counts"]) == ("ended", {"succeeded": 4})
    bests = {(one["values"]["lr"], one["values"]["momentum"]): one["best"] for one in found["trials"]}
    assert min(bests, key=lambda values: bests[values]) == (0.06, 0.5)
    assert found["best"]["values"] == {"lr": 0.06, "momentum": 0.5}
    assert {one["steps"] for one in found["trials"]} == {60}
    names = {ada.jobs.get(one["job"]).name for one in found["trials"]}
    assert names == {f"valley-{number:03d}" for number in (1, 2, 3, 4)}
    shown = yardmaster("sweeps", "show", "valley")
    assert "minimize loss" in shown.out
    assert "trial 4: lr=0.06, momentum=0.5" in shown.out
    assert "valley" in yardmaster("sweeps", "list").out
    assert yardmaster("sweeps", "delete", "valley", "--with-jobs", "--yes").code == 0
    assert yardmaster("sweeps", "show", "valley").code == 1


def test_a_sweep_is_paused_resumed_and_stopped(yardmaster, ada):
    drawn = ["--random", "lr=0.001..0.1 log", "--trials", "5", "--seed", "3", "--set", 'arguments=["--pause=0.5"]']
    made = yardmaster("sweeps", "create", EXAMPLE / "job.yaml", "--code", EXAMPLE, *drawn, "--set", "name=slow",
                      "--metric", "loss", "--json")  # fmt: skip
    assert made.code == 0, made.err
    assert made.json["count"] == 5
    assert yardmaster("sweeps", "pause", "slow", "--json").json["state"] == "paused"
    assert yardmaster("sweeps", "resume", "slow", "--json").json["state"] == "running"
    assert yardmaster("sweeps", "stop", "slow", "--json").json["state"] in ("stopping", "ended")
    assert ada.sweeps.wait(made.json["id"], timeout=90).state == "ended"
    assert asyncio.run(states(ada)) == ["ended"]


async def states(ada: Yardmaster) -> list[str]:
    return [one.state async for one in AsyncYardmaster.over(ada).sweeps.list()]


@pytest.mark.parametrize(
    "options", [[], ["--grid", "lr"], ["--grid", "lr=1", "--random", "lr=1"], ["--grid", "lr=1", "--grid", "lr=2"]]
)
def test_what_the_command_does_not_understand_is_said(yardmaster, options):
    assert yardmaster("sweeps", "create", EXAMPLE / "job.yaml", *options).code == 2
