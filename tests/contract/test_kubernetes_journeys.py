"""How many modules of the engine a submission goes through, counted while it runs: what a reader has to follow."""

from __future__ import annotations

import sys
from types import FrameType

import pytest

from tests.contract.engine_harness import KubernetesHarness, new_key, spec_of
from yardmaster.engines.base import TaskAccess
from yardmaster.engines.kubernetes import KubernetesEngine
from yardmaster.queueing.ledger import Quota

PACKAGE = "yardmaster.engines.kubernetes."
ACCESS = TaskAccess("http://127.0.0.1:1", "a-token")
MOST_MODULES = 14
"""Of the engine's package, from `submit` to the last write."""


@pytest.fixture(scope="module")
def calls() -> list[tuple[str, str]]:
    """(module, function) of every call in a submission, up to the last write."""
    harness, found = KubernetesHarness(lives=False), list[tuple[str, str]]()
    key = new_key()

    def note(frame: FrameType, event: str, _argument: object) -> None:
        if event == "call":
            found.append((frame.f_globals.get("__name__", ""), frame.f_code.co_name))

    try:
        harness.engine.shape(key.namespace_id, Quota(), ACCESS.portal_url)
        before = sys.getprofile()
        sys.setprofile(note)
        try:
            KubernetesEngine.submit(harness.engine, spec_of(), key, ACCESS)
        finally:
            sys.setprofile(before)
    finally:
        harness.close()
    last_write = max(at for at, call in enumerate(found) if call == (PACKAGE + "client.api", "apply"))
    return found[: last_write + 1]


def test_a_submission_goes_through_few_modules(calls: list[tuple[str, str]]):
    mine = [module for module, _ in calls if module.startswith(PACKAGE)]
    steps = [module for at, module in enumerate(mine) if not at or module != mine[at - 1]]
    modules = list(dict.fromkeys(steps))
    print(f"{len(modules)} modules, {len(steps) - len(modules)} returns:", *modules, sep="\n  ")
    assert len(modules) <= MOST_MODULES


def test_the_map_of_the_cluster_is_computed_once(calls: list[tuple[str, str]]):
    assert [name for _, name in calls].count("cluster_map") == 1


def test_a_run_is_rendered_once(calls: list[tuple[str, str]]):
    assert calls.count((PACKAGE + "render.pods", "pod_template")) == len(spec_of().roles)
