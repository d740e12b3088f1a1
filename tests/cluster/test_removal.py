"""The portal and a real cluster: a quota that is saved, and a user who goes with a job that runs."""

from __future__ import annotations

import time
from collections.abc import Iterator

import pytest
from django.utils import timezone

from apps.accounts.models import User
from apps.administration.services import quota_set
from apps.jobs.engines.configured import engine_named
from apps.jobs.models import Job
from apps.jobs.worker.queue_pass import admit_queue
from apps.jobs.worker.reconcile import reconcile
from apps.namespaces.models import EngineNamespace
from apps.removals.models import Data, Removal
from apps.removals.services import user_remove
from celery_worker import tasks
from tests.cluster.account import Account
from tests.cluster.reach import Cluster, Refused, wait_for
from tests.integration.conftest import PASSWORD
from tests.integration.jobs.conftest import sent, stores
from tests.integration.jobs.world import World
from yardmaster.engines.kubernetes.render.names import namespace_name

__all__ = ["sent", "stores"]

pytestmark = [pytest.mark.cluster, pytest.mark.django_db]
LIMITS = {"cpu": 1, "memory": 1 << 30, "gpus": 0, "storage": None, "running_jobs": 2}
ROLES = {role: {"replicas": 1, "cpu": 0.05, "memory": "64Mi"} for role in ("worker", "ps")}


@pytest.fixture
def world(account: Account, settings, stores, sent) -> World:
    tasks_options = {"image": account.cluster.probe_image, **account.options}
    options = {"kubeconfig": account.cluster.kubeconfig, "tasks": tasks_options}
    settings.YARDMASTER_ENGINES = {
        "cluster": {"class": "yardmaster.engines.kubernetes.KubernetesEngine", "options": options}
    }
    settings.YARDMASTER_DEFAULT_ENGINE = "cluster"
    settings.TASK_URL = "http://192.0.2.1:8080"  # nothing answers there: the tasks wait for it
    return World(engine_named("cluster"))  # type: ignore[arg-type]


@pytest.fixture
def ada(cluster: Cluster, world: World, settings) -> Iterator[User]:
    settings.PASSWORD_HASHERS = ["django.contrib.auth.hashers.MD5PasswordHasher"]
    user = User.objects.create_user("ada", "", PASSWORD)
    name = cluster_name(user)
    yield user
    cluster.remove_namespace(name)


@pytest.fixture
def admin(db) -> User:
    return User.objects.create_user("admin", "", None, is_staff=True)


def cluster_name(user: User) -> str:
    return namespace_name(user.personal_namespace.pk, engine_named("cluster").options)


def look(job: Job) -> str:
    """What the workers do with a job that was launched."""
    admit_queue(job.engine)
    reconcile(job.pk)
    return Job.objects.get(pk=job.pk).phase


def is_kept(cluster: Cluster, user: User) -> bool:
    """Rights that were just given take a moment to be heeded; the portal looks again."""
    tasks.keep_namespace(str(user.personal_namespace.pk))
    try:
        return bool(cluster.get("resourcequota", "yardmaster", cluster_name(user)))
    except Refused:
        return False


def test_a_changed_quota_is_on_the_cluster_within_seconds(cluster: Cluster, world: World, ada, admin):
    wait_for("its namespace", lambda: is_kept(cluster, ada), 20)
    begun = time.monotonic()
    quota_set(namespace=ada.personal_namespace, limits=LIMITS, actor=admin)
    tasks.keep_namespace(str(ada.personal_namespace.pk))
    took = time.monotonic() - begun
    assert cluster.get("resourcequota", "yardmaster", cluster_name(ada))["spec"]["hard"]["limits.cpu"] == "1"
    assert took < 20, "it waited for the minutely look"


def test_kubeflow_5269_a_user_goes_with_running_pods_and_nothing_is_left(cluster: Cluster, world: World, ada, admin):
    name = cluster_name(ada)
    job = world.launch(ada, roles=ROLES, grace_period=2)
    wait_for("the job to run", lambda: look(job) == "RUNNING")
    removal = user_remove(user=ada, data=Data.DELETE, actor=admin)

    def is_over() -> bool:
        Removal.objects.update(next_look_at=timezone.now())
        tasks.carry_out_removal(str(removal.pk))
        for one in Job.objects.all():
            reconcile(one.pk)
        tasks.sweep_uploads()
        return Removal.objects.filter(ended_at__isnull=False).exists()

    wait_for("the removal's end", is_over, 90)
    assert Removal.objects.get().left == []
    assert not User.objects.filter(pk=ada.pk).exists()
    assert not EngineNamespace.objects.exists()
    with pytest.raises(Refused, match="not found"):
        cluster.kubectl("get", "namespace", name)
