"""The conductor: it wakes what changes, one leads, and another takes over."""

from __future__ import annotations

import threading
import uuid
from datetime import UTC, datetime, timedelta

import pytest

from apps.jobs.leadership import LASTS, lead, resign
from apps.jobs.management.commands import conductor
from apps.jobs.management.commands.conductor import Conductor, watched_engines
from tests.integration.jobs.conftest import engine_settings, stores, world
from yardmaster.phases import TaskPhase
from yardmaster.spec import Role

__all__ = ["engine_settings", "stores", "world"]

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
    monkeypatch.setattr(conductor, "wake_now", lambda job_id: (woken.append(job_id), arrived.set()))
    job = world.launch(ada)
    world.settle()
    one = Conductor()
    one.renew()
    for follower in one.followers():
        follower.start()
    for _ in range(50):  # the follower's thread has to come to the engine first
        world.engine.set(job, Role.WORKER, 0, TaskPhase.SUCCEEDED)
        if arrived.wait(0.1):
            break
    assert woken[0] == job.pk


@pytest.mark.django_db(transaction=True)
def test_who_does_not_lead_wakes_nobody(world, monkeypatch):
    monkeypatch.setattr(conductor, "wake_now", lambda job_id: pytest.fail("woken"))
    lead("conductor", "another", datetime.now(UTC))
    one = Conductor()
    one.renew()
    one.changed(uuid.uuid4())


def test_an_engine_that_cannot_be_made_is_left_out_and_named(settings, caplog):
    settings.YARDMASTER_ENGINES = {"broken": {"class": "nowhere.Engine"}}
    assert watched_engines() == {}
    assert "broken" in caplog.text
