"""The portal's namespaces on an API server (in a thread): from the quota a manager saves to the last finalizer."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from django.utils import timezone

from apps.administration.services import quota_set
from apps.namespaces.models import EngineNamespace
from apps.removals.models import Data, Removal
from apps.removals.services import user_remove
from celery_worker import tasks
from tests.contract.engine_harness import KubernetesHarness
from tests.integration.jobs.conftest import sent, stores
from tests.integration.jobs.world import World
from yardmaster.engines.kubernetes.render.names import namespace_name

__all__ = ["sent", "stores"]

pytestmark = pytest.mark.django_db
LIMITS = {"cpu": 4, "memory": 8 << 30, "gpus": 1, "storage": None, "running_jobs": 2}
WRITES = ("patch", "delete", "deletecollection")


@pytest.fixture
def harness(settings, stores) -> Iterator[KubernetesHarness]:
    made = KubernetesHarness()
    settings.YARDMASTER_ENGINES = {"cluster": made.as_offered()}
    settings.YARDMASTER_DEFAULT_ENGINE = "cluster"
    settings.TASK_URL = "http://10.0.0.1:8080"
    yield made
    made.close()


def test_a_changed_quota_is_on_the_cluster_as_soon_as_its_message_is_read(harness, ada, admin, sent):
    mine = ada.personal_namespace
    tasks.keep_namespace(str(mine.pk))
    place = ("resourcequotas", namespace_name(mine.pk, harness.engine.options), "yardmaster")
    assert "limits.cpu" not in harness.api.store.get(place)["spec"]["hard"]
    quota_set(namespace=mine, limits=LIMITS, actor=admin)
    tasks.keep_namespace(str(mine.pk))
    assert harness.api.store.get(place)["spec"]["hard"]["limits.cpu"] == "4"


def test_a_quota_that_somebody_deleted_is_back_after_the_next_look(harness, ada, admin):
    mine = ada.personal_namespace
    quota_set(namespace=mine, limits=LIMITS, actor=admin)
    tasks.keep_namespace(str(mine.pk))
    place = ("resourcequotas", namespace_name(mine.pk, harness.engine.options), "yardmaster")
    harness.api.store.delete(place)
    EngineNamespace.objects.update(next_look_at=timezone.now())
    before = harness.api.count(*WRITES)
    tasks.keep_namespace(str(mine.pk))
    assert harness.api.store.get(place)["spec"]["hard"]["limits.cpu"] == "4"
    assert harness.api.count(*WRITES) == before + 1


def test_a_job_of_a_namespace_in_shape_reads_it_and_writes_nothing_of_it(harness, ada):
    """Eight writes per job: none of them may be the namespace's. It is read, as others may have deleted some of it."""
    world = World(harness.engine)  # type: ignore[arg-type]
    tasks.keep_namespace(str(ada.personal_namespace.pk))
    world.now = timezone.now()
    world.look(world.launch(ada))
    job = world.launch(ada)
    del harness.api.requests[:]
    world.look(job)
    kept = ("namespaces", "resourcequotas", "limitranges", "serviceaccounts", "services")
    assert {verb for verb, kind in harness.api.requests if kind in kept} == {"get"}
    assert 0 < harness.api.count("patch") <= 8


def test_a_namespace_that_somebody_deleted_is_made_when_a_submission_meets_it(harness, ada):
    world = World(harness.engine)  # type: ignore[arg-type]
    tasks.keep_namespace(str(ada.personal_namespace.pk))
    name = namespace_name(ada.personal_namespace.pk, harness.engine.options)
    job = world.launch(ada)
    harness.api.store.delete(("namespaces", "", name))
    world.now = timezone.now()
    assert name not in world.look(job).message
    assert harness.api.store.get(("namespaces", "", name))
    assert harness.api.store.get(("configmaps", name, job.key.name))


def test_kubeflow_5269_a_removed_user_leaves_nothing_and_what_is_stuck_is_named(harness, ada, admin):
    mine = ada.personal_namespace
    name = namespace_name(mine.pk, harness.engine.options)
    tasks.keep_namespace(str(mine.pk))
    stuck = ("configmaps", name, "stubborn")
    harness.api.store.write(stuck, {"kind": "ConfigMap", "metadata": {"finalizers": ["example.org/never"]}})
    removal = user_remove(user=ada, data=Data.DELETE, actor=admin)
    tasks.carry_out_removal(str(removal.pk))
    (left,) = Removal.objects.get().left
    assert left["what"] == "namespace on cluster"
    assert "example.org/never" in left["why"]
    harness.api.store.merge(stuck, {"metadata": {"finalizers": None}})
    Removal.objects.update(next_look_at=timezone.now())
    tasks.carry_out_removal(str(removal.pk))
    assert (Removal.objects.get().left, Removal.objects.get().ended_at is None) == ([], False)
    assert [place for place in harness.api.store.objects if name in place] == []


def test_a_portal_that_has_only_a_name_says_what_to_set(harness, ada, settings):
    settings.TASK_URL = "http://portal.example:8080"
    tasks.keep_namespace(str(ada.personal_namespace.pk))
    place = EngineNamespace.objects.get()
    assert "portal.example" in place.problem
    assert "portal_cidrs" in place.remedy
