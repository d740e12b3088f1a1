"""The conductor: it wakes what changes, one leads, and another takes over."""

from __future__ import annotations

import contextlib
import os
import shutil
import sqlite3
import subprocess
import sys
import threading
import time
import uuid
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from pathlib import Path
from types import SimpleNamespace

import pytest
from django.utils import timezone

from apps.dispatch.leadership import LASTS, lead, resign
from apps.jobs.management.commands import conductor
from apps.jobs.management.commands.conductor import Conductor, watched_engines
from tests.integration.jobs.conftest import engine_settings, stores, world
from tests.real.migrated import migrated
from yardmaster.job.spec import Role
from yardmaster.lifecycle.phases import TaskPhase

__all__ = ["engine_settings", "stores", "world"]

ROOT = Path(__file__).resolve().parents[3]
NOW = datetime(2027, 1, 4, 12, tzinfo=UTC)


def test_one_of_two_leads_and_the_other_takes_over_when_it_falls_silent(db):
    assert lead("conductor", "a", NOW)
    assert not lead("conductor", "b", NOW)
    assert lead("conductor", "a", NOW + LASTS / 2)
    assert not lead("conductor", "b", NOW + LASTS)
    assert lead("conductor", "b", NOW + LASTS * 2)
    assert not lead("conductor", "a", NOW + LASTS * 2)


def test_who_resigns_is_followed_at_once(db):
    lead("conductor", "a", NOW)
    resign("conductor", "a")
    assert lead("conductor", "b", NOW + timedelta(seconds=1))


@pytest.mark.django_db(transaction=True)
def test_a_change_at_the_engine_wakes_the_job_at_once(world, ada, monkeypatch):
    woken: list[uuid.UUID] = []
    arrived = threading.Event()
    monkeypatch.setattr(conductor, "enqueue_now", lambda task, job_id: (woken.append(job_id), arrived.set()))
    job = world.launch(ada)
    world.settle()
    one = Conductor()
    one.renew()
    for follower in one.followers():
        follower.start()
    for _ in range(300):  # the follower's thread has to come to the engine first
        world.engine.set(job, Role.WORKER, 0, TaskPhase.SUCCEEDED)
        if arrived.wait(0.1):
            break
    assert woken[0] == job.pk


@pytest.mark.django_db(transaction=True)
def test_who_does_not_lead_wakes_nobody(world, monkeypatch):
    monkeypatch.setattr(conductor, "enqueue_now", lambda task, job_id: pytest.fail("woken"))
    lead("conductor", "another", datetime.now(UTC))
    one = Conductor()
    one.renew()
    one.changed(uuid.uuid4())


@pytest.mark.django_db(transaction=True)
def test_what_changed_while_nobody_led_is_woken_by_the_next_leader(world, monkeypatch):
    woken: list[uuid.UUID] = []
    monkeypatch.setattr(conductor, "enqueue_now", lambda task, job_id: woken.append(job_id))
    lead("conductor", "another", timezone.now())
    one, job_id = Conductor(), uuid.uuid4()
    one.renew()
    one.changed(job_id)
    assert woken == []
    resign("conductor", "another")
    one.renew()
    assert woken == [job_id]


def test_who_does_not_lead_tries_again_every_second(monkeypatch):
    """By a clock that advances while the conductor waits, and at nothing else."""
    now, tries = [0.0], []

    def wait(seconds: float) -> bool:
        now[0] += seconds
        return now[0] > 20

    one = Conductor()
    monkeypatch.setattr(one, "_stopped", SimpleNamespace(wait=wait))
    monkeypatch.setattr(one, "followers", lambda: [])
    monkeypatch.setattr(one, "renew", lambda: tries.append(now[0]))
    for name in ("report_ready", "report_alive", "resign"):
        monkeypatch.setattr(conductor, name, lambda *_: None)
    monkeypatch.setattr(conductor, "time", SimpleNamespace(monotonic=lambda: now[0]))
    one.run()
    assert tries[0] < 1
    assert max(later - earlier for earlier, later in pairwise(tries)) < 1.5
    assert 10 <= len(tries) <= 21


@pytest.mark.slow
def test_after_kill_9_of_the_leader_another_leads_within_the_lease_time(tmp_path: Path):
    manage, environment = [sys.executable, str(ROOT / "manage.py")], {**os.environ, "YARDMASTER_HOME": str(tmp_path)}
    shutil.copyfile(migrated(), tmp_path / "portal.sqlite3")
    with contextlib.ExitStack() as both:
        leader = conductor_process(both, manage, environment)
        first = next_leader(tmp_path, after="")
        other = conductor_process(both, manage, environment)
        threading.Event().wait(5)  # until it has come up and tries in vain
        assert next_leader(tmp_path, after="") == first
        leader.kill()
        killed_at = time.monotonic()
        assert next_leader(tmp_path, after=first)
        assert time.monotonic() - killed_at <= LASTS.total_seconds() + 10
        assert other.poll() is None


def conductor_process(stack: contextlib.ExitStack, manage: list[str], environment: dict[str, str]) -> subprocess.Popen:
    process = subprocess.Popen([*manage, "conductor"], env=environment)
    stack.callback(process.wait, 10)
    stack.callback(process.kill)
    return process


def next_leader(home: Path, after: str) -> str:
    """Who leads, once it is another one than `after`."""
    deadline = time.monotonic() + 40
    while time.monotonic() < deadline:
        with contextlib.closing(sqlite3.connect(home / "portal.sqlite3")) as database:
            for (holder,) in database.execute("SELECT holder FROM dispatch_leadership WHERE post = 'conductor'"):
                if holder not in ("", after):
                    return str(holder)
        time.sleep(0.1)
    pytest.fail("nobody leads")


def test_an_engine_that_cannot_be_made_is_left_out_and_named(settings, caplog):
    settings.YARDMASTER_ENGINES = {"broken": {"class": "nowhere.Engine"}}
    assert watched_engines() == {}
    assert "broken" in caplog.text
