"""Observing from the watches: what it spares the server, and that nothing is believed which is not so."""

from __future__ import annotations

import contextlib
import os
import threading
from collections.abc import Iterator
from dataclasses import replace
from datetime import timedelta

import pytest

from tests.contract import engine_harness
from tests.contract.engine_harness import (
    ACCESS,
    QUICK,
    KubernetesHarness,
    all_ended,
    has_phase,
    lists_of,
    new_key,
    spec_of,
    wait_for,
    wait_until,
)
from tests.fakes.kubernetes_api import DOUBLED_AND_REORDERED, GONE_IN_THE_MIDDLE, HALF_AN_ANSWER, NO_ANSWER
from yardmaster.engines.kubernetes import KubernetesEngine
from yardmaster.engines.kubernetes.client.errors import Busy, trouble_of
from yardmaster.engines.kubernetes.observe.reading import PendingEvents
from yardmaster.engines.kubernetes.observe.watching import Pace, Watching
from yardmaster.engines.kubernetes.render import names
from yardmaster.ids import JobKey
from yardmaster.job.spec import Role
from yardmaster.lifecycle.phases import ABSENT, TaskPhase

KINDS = ("configmaps", "jobs", "statefulsets", "pods")
SOON = timedelta(seconds=1)


@pytest.fixture
def harness() -> Iterator[KubernetesHarness]:
    made = KubernetesHarness(watch=True)
    yield made
    made.close()


@pytest.fixture
def key(harness: KubernetesHarness) -> JobKey:
    return running(harness)


def running(harness: KubernetesHarness) -> JobKey:
    key = new_key()
    harness.engine.submit(spec_of(), key, ACCESS)
    harness.let_begin(key)
    return key


def watched(harness: KubernetesHarness, engine: KubernetesEngine, *keys: JobKey) -> None:
    """Until this process observes these runs without asking."""
    wait_for(lambda: lists_of(harness, lambda: engine.observe(keys)) == 0)


def until_open(harness: KubernetesHarness, processes: int = 1) -> None:
    """What a watch has listed is believed a moment before its stream is open: until all of these processes are."""
    wait_for(lambda: harness.api.count("watch") >= processes * len(KINDS))


def hold_watches(harness: KubernetesHarness) -> None:
    """They stay open and say nothing more."""
    harness.api.held.update(KINDS)


# --- what it spares --------------------------------------------------------------------------------------------------


def test_runs_that_are_quiet_are_observed_without_a_single_list(harness: KubernetesHarness):
    keys = [running(harness) for _ in range(5)]
    watched(harness, harness.engine, *keys)
    until_open(harness)
    del harness.api.requests[:]
    for _ in range(20):
        seen = harness.engine.observe(keys)
        assert all(task.phase is TaskPhase.RUNNING for one in seen.values() for task in one.tasks)
    assert harness.api.requests == []


def test_a_process_has_one_watch_per_kind_for_all_its_runs_and_readers(harness: KubernetesHarness):
    changes = harness.engine.changes()
    keys = [running(harness) for _ in range(3)]
    watched(harness, harness.engine, *keys)
    assert next(changes) in keys
    until_open(harness)
    assert sorted(what for verb, what in harness.api.requests if verb == "watch") == sorted(KINDS)


def test_what_has_ended_is_asked_about_once(harness: KubernetesHarness, key: JobKey):
    harness.let_end(key, Role.WORKER, 0, 0)
    wait_until(harness.engine, key, has_phase(Role.WORKER, 0, TaskPhase.SUCCEEDED))
    watched(harness, harness.engine, key)
    until_open(harness)
    assert lists_of(harness, lambda: [harness.engine.observe([key]) for _ in range(10)]) == 0


def test_events_are_asked_for_less_often_the_longer_a_run_is_held_up(key: JobKey):
    held_up, asked, now = PendingEvents(5.0), [], 0.0
    while now < 200:
        if held_up.known(key, now) is None:
            asked.append(now)
            held_up.keep(key, [], now)
        now += 1
    assert asked == [0, 5, 15, 35, 75, 135, 195]
    held_up.forget([key])
    assert held_up.known(key, now) is None


# --- what is believed ------------------------------------------------------------------------------------------------


def test_a_run_is_not_absent_because_this_process_hears_late_of_what_another_did(harness: KubernetesHarness):
    first = running(harness)
    other = harness.another_process()
    watched(harness, other, first)
    hold_watches(harness)
    key = new_key()
    harness.engine.submit(spec_of(), key, ACCESS)
    assert other.observe([key])[key].exists
    harness.engine.clean_up(key)
    assert other.observe([key])[key] == ABSENT


def test_a_workload_is_not_removed_because_its_watch_is_late(harness: KubernetesHarness, key: JobKey):
    """The owner is told of, its workloads and pods are not yet: that looks as if others had deleted them."""
    other = harness.another_process()
    watched(harness, other, key)
    harness.api.held.update(("jobs", "statefulsets", "pods"))
    late = new_key()
    harness.engine.submit(spec_of(), late, ACCESS)
    harness.let_begin(late)
    wait_for(lambda: other._watching.store.view(namespace(harness, late), late.name)["ConfigMap"].found != {})
    seen = other.observe([late])[late]
    assert {task.phase for task in seen.tasks} == {TaskPhase.RUNNING}


@pytest.mark.parametrize(
    "deed",
    [
        lambda engine, key: engine.stop(key, SOON),
        lambda engine, key: engine.release(key, list(Role)),
        lambda engine, key: engine.clean_up(key),
    ],
)
def test_who_has_ended_a_run_sees_it_end_though_the_watches_are_silent(harness: KubernetesHarness, key: JobKey, deed):
    watched(harness, harness.engine, key)
    hold_watches(harness)
    deed(harness.engine, key)
    wait_for(lambda: harness.api.store.find("pods") == [])
    seen = harness.engine.observe([key])[key]
    assert seen == ABSENT or all_ended(seen)


def test_what_was_seen_directly_is_not_unseen_by_a_late_watch(harness: KubernetesHarness, key: JobKey):
    watched(harness, harness.engine, key)
    hold_watches(harness)
    harness.let_end(key, Role.WORKER, 0, 0)
    ended = has_phase(Role.WORKER, 0, TaskPhase.SUCCEEDED)
    harness.engine._reader.wrote(key)  # whatever makes it ask
    wait_for(lambda: ended(harness.engine._reader._observe([key])[key]))
    assert all(ended(harness.engine.observe([key])[key]) for _ in range(5))


def test_watches_that_are_broken_for_long_are_not_believed(harness: KubernetesHarness, key: JobKey):
    watched(harness, harness.engine, key)
    harness.api.refuse("watch", "pods", 500, times=10_000)
    harness.api.end_watches()
    wait_for(lambda: not harness.engine._watching.is_live())
    assert lists_of(harness, lambda: harness.engine.observe([key])) >= 4
    harness.api.faults.clear()
    watched(harness, harness.engine, key)


def test_a_watch_that_says_nothing_at_all_is_taken_for_dead(harness: KubernetesHarness, key: JobKey):
    other = harness.another_process(pace=replace(QUICK, quiet=2.0))
    watched(harness, other, key)
    until_open(harness, processes=2)
    before = harness.api.count("watch")
    harness.api.held.add("pods")
    wait_for(lambda: harness.api.count("watch") > before)


@pytest.mark.parametrize(
    "mood", [GONE_IN_THE_MIDDLE, DOUBLED_AND_REORDERED, HALF_AN_ANSWER, NO_ANSWER, 410, 429, 500, 504]
)
def test_after_every_mood_the_watches_tell_the_truth_again(harness: KubernetesHarness, key: JobKey, mood):
    watched(harness, harness.engine, key)
    for plural in KINDS:
        harness.api.refuse("watch", plural, mood, times=2)
    harness.api.end_watches()
    harness.let_end(key, Role.WORKER, 0, 0)
    harness.cluster.evict(key.name, "worker", 1)
    for _ in range(3):
        harness.api.end_watches()
        threading.Event().wait(0.05)
    wait_until(harness.engine, key, has_phase(Role.WORKER, 0, TaskPhase.SUCCEEDED))
    wait_for(lambda: all(fault.times == 0 for fault in harness.api.faults))
    wait_until(harness.engine, key, has_phase(Role.WORKER, 1, TaskPhase.RUNNING))
    watched(harness, harness.engine, key)
    assert harness.engine.observe([key]) == harness.another_process(watch=False).observe([key])


def test_a_server_that_comes_back_with_an_older_state_is_believed(harness: KubernetesHarness):
    """As after the restore of a backup: what was made since is gone, and old versions are not remembered."""
    early = running(harness)
    backup = harness.api.store.snapshot()
    late = running(harness)
    watched(harness, harness.engine, early, late)
    harness.api.come_back_with(backup)
    wait_until(harness.engine, late, lambda seen: seen == ABSENT)
    watched(harness, harness.engine, early)
    assert {task.phase for task in harness.engine.observe([early])[early].tasks} == {TaskPhase.RUNNING}


def test_a_server_that_is_busy_says_how_long_to_stay_away():
    busy = trouble_of(429, b'{"message": "too many requests"}', "watch pods", "7")
    assert isinstance(busy, Busy)
    assert busy.seconds == 7
    assert trouble_of(429, b"", "watch pods", "Wed, 21 Oct 2026 07:28:00 GMT").seconds == 1.0
    assert trouble_of(503, b"", "watch pods", "99999").seconds == 60.0


def test_a_forked_process_begins_with_watches_of_its_own(harness: KubernetesHarness, key: JobKey, monkeypatch):
    watched(harness, harness.engine, key)
    parents = harness.engine._reader
    with contextlib.ExitStack() as at_the_end:
        at_the_end.callback(parents._watching.close)
        at_the_end.callback(monkeypatch.undo)
        monkeypatch.setattr(os, "getpid", lambda: -1)
        assert harness.engine._reader is not parents
        at_the_end.callback(harness.engine.close)
        watched(harness, harness.engine, key)
        until_open(harness, processes=2)


# --- how they end ----------------------------------------------------------------------------------------------------


def test_a_watch_that_hears_nothing_ends_in_the_ordinary_way(
    harness: KubernetesHarness, key: JobKey, caplog, monkeypatch
):
    """Servers send no bookmark of a kind of which nothing has happened since they began."""
    harness.engine.close()
    hold_watches(harness)
    # Two streams last longer than `stale_after`: in the end it is not for its list that it is live.
    pace = Pace(lasts=2, quiet=25.0, stale_after=3.5, shortest_pause=0.2, longest_pause=0.5)
    api, were_live = harness.engine._api, list[bool]()
    watching, ask = Watching(api, harness.engine.options.namespace_prefix, pace), api.watch
    monkeypatch.setattr(api, "watch", lambda *asked: were_live.append(watching.is_live()) or ask(*asked))
    watches = harness.api.count("watch")
    watching.start()
    wait_for(watching.is_live)
    lists = harness.api.count("list")
    wait_for(lambda: harness.api.count("watch") >= watches + 3 * len(KINDS))
    assert watching.is_live()
    assert all(were_live[2 * len(KINDS) :]), "also between two streams"
    assert harness.api.count("list") == lists
    watching.close()
    assert caplog.messages == []


def test_the_server_ends_a_watch_before_it_is_taken_for_dead():
    usual = Pace()
    assert usual.lasts + 10 <= usual.quiet
    assert usual.lasts > usual.longest_pause  # so that no pause follows one that stood to its end


def test_a_closed_engine_has_no_watch_left_and_says_nothing(
    harness: KubernetesHarness, key: JobKey, caplog, monkeypatch
):
    # No stream ends by itself in the time that a close may take on a slow machine.
    monkeypatch.setattr(engine_harness, "QUICK", replace(engine_harness.QUICK, lasts=300, quiet=310.0))
    monkeypatch.setattr("yardmaster.engines.kubernetes.observe.watching._TO_CLOSE", 20.0)
    before = set(threading.enumerate())
    other = harness.another_process()
    watched(harness, other, key)
    other.capacity()
    changes = other.changes()
    hold_watches(harness)
    mine = [one for one in set(threading.enumerate()) - before if one.name.startswith("watch-")]
    assert len(mine) == len(KINDS) + 2
    other.close()
    assert not any(one.is_alive() for one in mine)
    assert list(changes) == [key]
    assert caplog.messages == []
    assert {task.phase for task in other.observe([key])[key].tasks} == {TaskPhase.RUNNING}


def namespace(harness: KubernetesHarness, key: JobKey) -> str:
    return names.namespace_name(key.namespace_id, harness.engine.options)
