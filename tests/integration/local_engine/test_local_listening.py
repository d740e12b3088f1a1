"""What the local engine does with jobs that start servers, where it can keep them to loopback and where it cannot."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from portal.demo.cluster import OPEN, surroundings_for
from tests.contract.engine_harness import ACCESS, LocalHarness, new_key, spec_of
from yardmaster.engines.local import LocalEngine
from yardmaster.engines.supervision import loopback
from yardmaster.engines.supervision.runs import SOURCE_ROOT
from yardmaster.errors import Misconfigured, SpecRejected
from yardmaster.job.spec import Resources, Role, RoleSpec, Strategy

ALONE = {Role.WORKER: RoleSpec(1, Resources(cpu=0.1, memory=64 << 20))}

pytestmark = pytest.mark.linux


def told(harness: LocalHarness, spec) -> bool:
    """Whether this engine's tasks are told to keep to loopback."""
    key = harness.submit(spec)
    order = harness.engine._runs.order(key)
    assert order is not None
    return order.environment.get(loopback.VARIABLE) == "1"


def test_where_it_cannot_servers_are_refused_before_and_at_submission_and_single_jobs_run(tmp_path: Path):
    harness = LocalHarness(tmp_path, loopback_only="off")
    try:
        for ask in (harness.engine.preview, lambda spec, key: harness.engine.submit(spec, key, ACCESS)):
            with pytest.raises(SpecRejected) as caught:
                ask(spec_of(), new_key())
            assert [one.code for one in caught.value.problems] == ["open_servers"]
        assert harness.engine.refusal(spec_of(Strategy.SINGLE, roles=ALONE)) is None
        assert not told(harness, spec_of(Strategy.SINGLE, roles=ALONE))
    finally:
        harness.close()


@pytest.mark.parametrize("is_open", [False, True])
def test_servers_run_where_they_can_be_kept_or_need_not_be_and_their_page_says_who_reaches_them(
    tmp_path: Path, is_open: bool
):
    is_kept = loopback.can_be_kept(sys.executable, SOURCE_ROOT) and not is_open
    options = {"loopback_only": "off" if is_open else "auto", "open_servers": not is_kept}
    harness = LocalHarness(tmp_path, **options)
    try:
        assert told(harness, spec_of()) == is_kept
        found = harness.engine.servers(spec_of(), harness.keys[0])
        assert found is not None
        assert found.reach.startswith("Only from the machine" if is_kept else "From every machine")
    finally:
        harness.close()


def test_a_word_that_means_nothing_is_refused(tmp_path: Path):
    with pytest.raises(Misconfigured, match="loopback_only is 'maybe'"):
        LocalEngine(tmp_path, loopback_only="maybe")


def test_an_interpreter_that_does_not_start_cannot(tmp_path: Path):
    assert not loopback.can_be_kept(str(tmp_path / "python"), SOURCE_ROOT)


def test_the_demonstration_runs_where_it_cannot_and_says_so():
    around = surroundings_for("local", {"YARDMASTER_LOCAL_LOOPBACK_ONLY": "off"})
    assert around.settings == OPEN
    assert "other machines can reach them" in around.note
    if loopback.can_be_kept(sys.executable, SOURCE_ROOT):
        assert surroundings_for("local", {}).note == ""
