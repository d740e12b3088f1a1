"""The engines of other tests fail as their names say, and only so."""

from __future__ import annotations

from datetime import timedelta

import pytest

from tests.contract.engine_harness import ACCESS, new_key, spec_of, task_in
from yardmaster.engines.base import Namespaces, Remains
from yardmaster.engines.fake import (
    EngineThatIsAway,
    EngineThatLosesAnswers,
    EngineThatRefuses,
    EngineWithNamespaces,
    FakeEngine,
)
from yardmaster.errors import SpecRejected, Unavailable
from yardmaster.ids import new_id
from yardmaster.job.spec import Role
from yardmaster.lifecycle.phases import ABSENT, TaskPhase
from yardmaster.queueing.ledger import Quota


def test_a_told_failure_comes_once_and_the_deed_is_not_done():
    engine, key = FakeEngine(), new_key()
    engine.fail_next("submit", Unavailable("first"), Unavailable("second"))
    for word in ("first", "second"):
        with pytest.raises(Unavailable, match=word):
            engine.submit(spec_of(), key, ACCESS)
    assert engine.observe([key])[key] == ABSENT
    engine.submit(spec_of(), key, ACCESS)
    assert engine.observe([key])[key].exists
    assert engine.calls == [("submit", key)] * 3
    assert engine.access_of(key) == ACCESS


def test_a_stubborn_task_runs_until_the_run_is_tidied():
    engine, key = FakeEngine(), new_key()
    engine.stubborn.add((Role.PS, 0))
    engine.submit(spec_of(), key, ACCESS)
    engine.begin(key)
    engine.stop(key, timedelta(0))
    assert task_in(engine.observe([key])[key], Role.PS, 0).phase is TaskPhase.RUNNING
    engine.clean_up(key)
    assert engine.observe([key])[key] == ABSENT


def test_a_lost_run_is_absent():
    engine, key = FakeEngine(), new_key()
    engine.submit(spec_of(), key, ACCESS)
    engine.lose(key)
    assert engine.observe([key])[key] == ABSENT


def test_the_engine_that_is_away_answers_nothing():
    engine, key = EngineThatIsAway(), new_key()
    for verb in (engine.capacity, lambda: engine.observe([key]), lambda: engine.clean_up(key)):
        with pytest.raises(Unavailable):
            verb()


def test_the_engine_that_refuses_takes_no_spec():
    with pytest.raises(SpecRejected):
        EngineThatRefuses().submit(spec_of(), new_key(), ACCESS)


def test_the_engine_that_loses_answers_has_done_the_deed():
    engine, key = EngineThatLosesAnswers(), new_key()
    with pytest.raises(Unavailable):
        engine.submit(spec_of(), key, ACCESS)
    assert engine.observe([key])[key].exists
    engine.submit(spec_of(), key, ACCESS)
    with pytest.raises(Unavailable):
        engine.clean_up(key)
    assert engine.observe([key])[key] == ABSENT


def test_an_engine_with_places_keeps_the_newest_quota_and_says_what_is_left():
    engine, namespace_id = EngineWithNamespaces(), new_id()
    assert isinstance(engine, Namespaces)
    assert not isinstance(FakeEngine(), Namespaces)
    assert list(engine.shape(namespace_id, Quota(cpu=1), "http://10.0.0.1")) == ["quota"]
    assert list(engine.shape(namespace_id, Quota(cpu=1), "http://10.0.0.1")) == []
    engine.finalizers[namespace_id] = ("a finalizer",)
    assert engine.remove(namespace_id) == Remains(gone=False, left=("a finalizer",))
    del engine.finalizers[namespace_id]
    assert engine.remove(namespace_id).gone
    assert engine.remove(namespace_id).gone
