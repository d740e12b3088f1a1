"""What an engine keeps for a namespace follows the portal: made, changed, mended, and gone for good."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.utils import timezone

from apps.accounts.services import user_delete
from apps.administration.services import quota_set
from apps.audit.models import AuditEvent
from apps.dispatch.messages import KEEP_NAMESPACE
from apps.jobs.engines.namespaces import (
    LOOK_EVERY,
    bounds_of,
    engine_namespace_ready,
    engine_namespaces_keep,
    engine_namespaces_sweep,
)
from apps.namespaces.models import EngineNamespace, Namespace, Quota
from apps.namespaces.services import team_create
from celery_worker import tasks
from tests.integration.jobs.conftest import sent, stores
from tests.integration.namespaces.placed import placed_world
from yardmaster.errors import EngineNamespaceMissing, Misconfigured, Unavailable
from yardmaster.job.spec import Role
from yardmaster.lifecycle.phases import TaskPhase
from yardmaster.queueing.ledger import Quota as Bounds

__all__ = ["placed_world", "sent", "stores"]

LIMITS = {"cpu": 4, "memory": 8 << 30, "gpus": 1, "storage": None, "running_jobs": 2}


@pytest.fixture
def engine(placed_world):
    return placed_world.engine


def place_of(namespace: Namespace) -> EngineNamespace:
    return EngineNamespace.objects.get(namespace_id=namespace.pk)


def test_a_new_namespace_gets_its_place_with_its_quota(engine, ada, settings):
    engine_namespaces_keep(ada.personal_namespace.pk)
    assert engine.namespaces == {ada.personal_namespace.pk: Bounds()}
    assert place_of(ada.personal_namespace).shaped_at is not None


def test_a_changed_quota_reaches_the_engine_by_a_message(engine, ada, admin, sent, django_capture_on_commit_callbacks):
    mine = ada.personal_namespace
    engine_namespaces_keep(mine.pk)
    with django_capture_on_commit_callbacks(execute=True):
        quota_set(namespace=mine, limits=LIMITS, actor=admin)
    assert (KEEP_NAMESPACE, str(mine.pk)) in sent
    tasks.keep_namespace(str(mine.pk))
    assert engine.namespaces[mine.pk] == Bounds(4, 8 << 30, 1, 2)


def test_a_changed_quota_whose_message_was_lost_is_found_by_the_sweep(engine, ada, admin, sent):
    mine = ada.personal_namespace
    engine_namespaces_keep(mine.pk)
    assert (KEEP_NAMESPACE, str(mine.pk)) not in sent_by_sweep(sent)
    quota_set(namespace=mine, limits=LIMITS, actor=admin)
    assert (KEEP_NAMESPACE, str(mine.pk)) in sent_by_sweep(sent)


def test_a_namespace_without_a_place_is_found_by_the_sweep(engine, admin, ada, sent):
    team = team_create(slug="vision", title="", manager=ada, actor=admin)
    assert (KEEP_NAMESPACE, str(team.pk)) in sent_by_sweep(sent)
    engine_namespaces_keep(team.pk)
    assert (KEEP_NAMESPACE, str(team.pk)) not in sent_by_sweep(sent)


def sent_by_sweep(sent):
    del sent[:]
    tasks.sweep_namespaces()
    return sent


def test_each_place_is_looked_at_again_and_again_to_mend_what_others_changed(engine, ada, sent):
    mine = ada.personal_namespace
    engine_namespaces_keep(mine.pk)
    del engine.namespaces[mine.pk], engine.asked[:]
    engine_namespaces_keep(mine.pk)
    assert engine.asked == [], "not due yet"
    now = timezone.now() + LOOK_EVERY + timedelta(seconds=1)
    assert engine_namespaces_sweep(now) >= 1
    engine_namespaces_keep(mine.pk, clock=lambda: now)
    assert mine.pk in engine.namespaces


def test_a_change_that_comes_during_a_look_is_not_lost(engine, ada, admin):
    """The look that is under way read the old quota: what it writes must not say that all is well."""
    mine = ada.personal_namespace
    engine_namespaces_keep(mine.pk)
    EngineNamespace.objects.update(next_look_at=timezone.now())
    engine.after_verb = lambda verb: quota_set(namespace=mine, limits=LIMITS, actor=admin)
    engine_namespaces_keep(mine.pk)
    engine.after_verb = lambda verb: None
    assert place_of(mine).next_look_at <= timezone.now()
    engine_namespaces_keep(mine.pk)
    assert engine.namespaces[mine.pk].cpu == 4


def test_who_looks_at_the_same_time_leaves_it_to_the_first(engine, ada):
    mine = ada.personal_namespace
    engine_namespaces_keep(mine.pk)
    EngineNamespace.objects.update(next_look_at=timezone.now())
    del engine.asked[:]
    engine.before_verb = lambda verb: engine_namespaces_keep(mine.pk) if len(engine.asked) < 3 else None
    engine_namespaces_keep(mine.pk)
    assert len(engine.asked) == 1


def test_an_engine_that_is_away_is_asked_again_ever_more_seldom_and_says_so(engine, ada):
    mine, now = ada.personal_namespace, timezone.now()
    pauses = []
    for _ in range(3):
        engine.fail_next("shape", Unavailable("away", remedy="wait"))
        engine_namespaces_keep(mine.pk, clock=lambda now=now: now)
        place = place_of(mine)
        assert (place.problem, place.remedy) == ("away", "wait")
        pauses.append((place.next_look_at - now).total_seconds())
        now = place.next_look_at
    assert pauses == [2, 4, 8]
    engine_namespaces_keep(mine.pk, clock=lambda: now)
    assert (place_of(mine).problem, place_of(mine).setbacks) == ("", 0)


def test_a_lowered_quota_leaves_running_jobs_what_they_hold(placed_world, engine, ada, admin):
    """What of them is started again must find room; the portal's ledger admits nothing new."""
    job = placed_world.launch(ada)
    placed_world.settle()
    assert placed_world.again(job).phase == "RUNNING"
    quota_set(namespace=ada.personal_namespace, limits={**LIMITS, "cpu": 1, "memory": 1 << 30}, actor=admin)
    assert bounds_of(ada.personal_namespace.pk, "placed") == Bounds(3, 3 << 30, 1, 2)
    placed_world.engine.succeed(job)
    placed_world.until_quiet()
    assert bounds_of(ada.personal_namespace.pk, "placed").cpu == 1


def test_limits_by_name_reach_the_engine(engine, ada, admin):
    mine = ada.personal_namespace
    quota_set(namespace=mine, limits={**LIMITS, "extended": {"amd.com/gpu": 4}}, actor=admin)
    engine_namespaces_keep(mine.pk)
    assert engine.namespaces[mine.pk] == Bounds(4, 8 << 30, 1, 2, extended={"amd.com/gpu": 4})


def test_a_namespace_without_a_quota_row_is_unlimited(engine, ada):
    Quota.objects.all().delete()
    assert bounds_of(ada.personal_namespace.pk, "placed") == Bounds()


class TestBeforeASubmission:
    def test_the_place_is_made_where_it_is_missing(self, placed_world, engine, ada):
        placed_world.launch(ada)
        placed_world.settle()
        assert engine.asked == [("shape", ada.personal_namespace.pk)]

    def test_one_that_is_in_shape_is_not_asked_for(self, placed_world, engine, ada):
        engine_namespaces_keep(ada.personal_namespace.pk, clock=placed_world.clock)
        del engine.asked[:]
        for _ in range(3):
            engine_namespace_ready(ada.personal_namespace.pk, "placed", clock=placed_world.clock)
        assert engine.asked == []

    def test_a_quota_that_was_just_changed_comes_before_the_job(self, placed_world, engine, ada, admin):
        mine = ada.personal_namespace
        engine_namespaces_keep(mine.pk)
        quota_set(namespace=mine, limits=LIMITS, actor=admin)
        engine_namespace_ready(mine.pk, "placed")
        assert engine.namespaces[mine.pk].cpu == 4

    def test_options_that_were_changed_come_before_the_job_and_once(self, placed_world, engine, ada, settings):
        mine = ada.personal_namespace
        engine_namespaces_keep(mine.pk)
        settings.TASK_URL = "http://10.0.0.9:8080"
        del engine.asked[:]
        for _ in range(2):
            engine_namespace_ready(mine.pk, "placed")
        assert engine.asked == [("shape", mine.pk)]

    def test_a_change_that_another_worker_is_about_to_make_is_not_waited_for(self, engine, ada, admin):
        """That worker has claimed the place and may be slow: the job must not find the old quota."""
        mine = ada.personal_namespace
        engine_namespaces_keep(mine.pk)
        quota_set(namespace=mine, limits=LIMITS, actor=admin)
        EngineNamespace.objects.update(next_look_at=timezone.now() + LOOK_EVERY)
        engine_namespace_ready(mine.pk, "placed")
        assert engine.namespaces[mine.pk].cpu == 4

    def test_a_job_waits_for_a_place_that_cannot_be_made(self, placed_world, engine, ada):
        engine.fail_next("shape", *[Unavailable("the cluster is away")] * 2)
        job = placed_world.launch(ada)
        placed_world.settle()
        assert placed_world.again(job).message == "the cluster is away"
        placed_world.until_running(job)

    def test_one_that_the_submission_misses_is_made_and_the_submission_goes_on_in_the_same_look(
        self, placed_world, engine, ada
    ):
        engine_namespaces_keep(ada.personal_namespace.pk, clock=placed_world.clock)
        engine.fail_next("submit", EngineNamespaceMissing("The cluster has no ServiceAccount tasks."))
        job = placed_world.launch(ada)
        del engine.asked[:]
        placed_world.settle()
        assert engine.asked == [("shape", ada.personal_namespace.pk)]
        assert (placed_world.again(job).phase, placed_world.again(job).setbacks) == ("RUNNING", 0)

    def test_one_that_stays_incomplete_is_said_and_tried_again(self, placed_world, engine, ada):
        engine.fail_next("submit", *[EngineNamespaceMissing("The cluster has no ServiceAccount tasks.")] * 4)
        job = placed_world.launch(ada)
        placed_world.settle()
        assert placed_world.again(job).message == "The cluster has no ServiceAccount tasks."
        placed_world.until_running(job)

    @pytest.mark.parametrize("reason", ["NamespaceIncomplete", "ImagePull"])
    def test_tasks_that_lack_something_of_it_have_it_looked_at_once(self, placed_world, engine, ada, reason: str):
        engine.begin_at_once = False
        job = placed_world.launch(ada)
        placed_world.settle()
        engine.set(job, Role.WORKER, 0, TaskPhase.PENDING, reason=reason, message="not found")
        placed_world.look(job)
        assert place_of(ada.personal_namespace).next_look_at == placed_world.now
        engine_namespaces_keep(ada.personal_namespace.pk, clock=placed_world.clock)
        placed_world.look(job)
        assert place_of(ada.personal_namespace).next_look_at > placed_world.now

    def test_kubeflow_5269_a_namespace_that_is_removed_does_not_come_back(self, engine, ada):
        Namespace.objects.filter(owner=ada).update(closed_at=timezone.now())
        with pytest.raises(Misconfigured, match="being removed"):
            engine_namespace_ready(ada.personal_namespace.pk, "placed")
        engine_namespaces_keep(ada.personal_namespace.pk)
        assert engine.namespaces == {}


def test_a_deleted_user_leaves_no_place(engine, ada, admin, sent, django_capture_on_commit_callbacks):
    mine = ada.personal_namespace
    engine_namespaces_keep(mine.pk)
    with django_capture_on_commit_callbacks(execute=True):
        user_delete(user=ada, actor=admin)
    assert sent[-1] == (KEEP_NAMESPACE, str(mine.pk))
    tasks.keep_namespace(str(mine.pk))
    assert (engine.namespaces, EngineNamespace.objects.count()) == ({}, 0)
    event = AuditEvent.objects.get(action="engine_namespace.removed")
    assert event.facts.items() >= {"slug": "ada", "engine": "placed"}.items()


def test_a_place_whose_namespace_vanished_is_removed(engine, ada):
    mine = ada.personal_namespace
    engine_namespaces_keep(mine.pk)
    Namespace.objects.filter(pk=mine.pk).delete()
    engine_namespaces_keep(mine.pk, clock=lambda: timezone.now() + LOOK_EVERY)
    assert engine.namespaces == {}


def test_an_engine_that_the_settings_no_longer_have_is_named(engine, ada, settings):
    engine_namespaces_keep(ada.personal_namespace.pk)
    EngineNamespace.objects.update(goes=True, next_look_at=timezone.now())
    settings.YARDMASTER_ENGINES = {}
    engine_namespaces_keep(ada.personal_namespace.pk)
    assert "placed" in place_of(ada.personal_namespace).problem


def test_engines_without_places_are_left_in_peace(ada, settings):
    settings.YARDMASTER_ENGINES = {"fake": {"class": "yardmaster.engines.fake.FakeEngine", "options": {}}}
    engine_namespace_ready(ada.personal_namespace.pk, "fake")
    engine_namespaces_keep(ada.personal_namespace.pk)
    assert not EngineNamespace.objects.exists()
