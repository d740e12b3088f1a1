"""What a job costs the cluster's API server in writes over its whole life, whatever its roles and however it ends: the
portal's own steps, on an API server in a thread and a cluster that goes on by hand."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import timedelta
from itertools import combinations

import pytest
from django.utils import timezone

from apps.jobs.models import Job, TaskFact
from apps.jobs.services import job_stop
from apps.stores import log_store
from celery_worker import tasks
from tests.contract.engine_harness import KubernetesHarness
from tests.integration.jobs.conftest import stores
from tests.integration.jobs.world import World
from yardmaster.job.spec import Role, Strategy
from yardmaster.job.strategy import ROLES, never_ending_roles
from yardmaster.logs.keys import StreamKey

__all__ = ["stores"]

pytestmark = pytest.mark.django_db
MOST = 8
WRITES = ("create", "patch", "delete", "deletecollection")
OF_RUNS = ("configmaps", "secrets", "jobs", "statefulsets", "pods", "networkpolicies")


def sets_of_roles() -> dict[frozenset[Role], Strategy]:
    """Every set of roles that some strategy allows, each with one that does."""
    found: dict[frozenset[Role], Strategy] = {}
    for strategy, rules in ROLES.items():
        optional = [role for role, rule in rules.items() if rule.least == 0]
        for count in range(len(optional) + 1):
            for more in combinations(optional, count):
                found.setdefault(frozenset(rules) - frozenset(optional) | frozenset(more), strategy)
    return found


SETS = sets_of_roles()


@pytest.fixture
def harness(settings, stores) -> Iterator[KubernetesHarness]:
    made = KubernetesHarness(lives=False)
    settings.YARDMASTER_ENGINES = {"cluster": made.as_offered()}
    settings.YARDMASTER_DEFAULT_ENGINE = "cluster"
    settings.TASK_URL = "http://10.0.0.1:8080"
    yield made
    made.close()


class Life:
    """One job of these roles, from its launch to its last write."""

    def __init__(self, harness: KubernetesHarness, user, roles: frozenset[Role], **changes: object) -> None:
        self.harness, self.strategy, self.roles = harness, SETS[roles], roles
        self.world = World(harness.engine)  # type: ignore[arg-type]
        tasks.keep_namespace(str(user.personal_namespace.pk))
        self.world.now = timezone.now()
        wanted = {role.value: {"replicas": 1, "cpu": 1, "memory": "1Gi"} for role in Role if role in roles}
        self.job = self.world.launch(user, strategy=self.strategy.value, roles=wanted, reclaim_delay=0, **changes)
        del harness.api.requests[:]

    def starts(self) -> None:
        self.world.settle()
        self.harness.cluster.step()
        assert self.now().phase == "STARTING"

    def runs(self) -> None:
        self.starts()
        self.harness.cluster.let_begin(self.job.key.name)
        self.goes_on()
        assert self.now().phase == "RUNNING"

    def goes_on(self) -> None:
        """A second passes on the cluster, and the portal looks."""
        for _ in range(6):
            self.harness.cluster.step()
        self.world.now += timedelta(seconds=1)
        Job.objects.filter(pk=self.job.pk, next_look_at__isnull=False).update(next_look_at=self.world.now)
        self.world.settle()

    def ends(self, role: Role, exit_code: int) -> None:
        self.harness.let_end(self.job.key, role, 0, exit_code)

    def now(self) -> Job:
        return self.world.again(self.job)

    @property
    def leading(self) -> Role:
        return next((role for role in (Role.CHIEF, Role.DRIVER) if role in self.roles), Role.WORKER)

    def until_over(self) -> int:
        """How many writes all of it took."""
        for _ in range(20):
            if self.now().is_over:
                break
            self.goes_on()
        assert self.now().is_over
        for _ in range(6):
            self.harness.cluster.step()
        assert not [place for place in self.harness.api.store.objects if self.job.key.name in place[2]]
        return self.harness.api.count(*WRITES)


def succeeds(life: Life) -> str:
    life.runs()
    for role in life.roles - never_ending_roles(life.strategy) - {Role.EVALUATOR}:
        life.ends(role, 0)
    return "SUCCEEDED"


def fails(life: Life) -> str:
    life.runs()
    life.ends(life.leading, 1)
    return "FAILED"


def is_stopped(life: Life) -> str:
    life.runs()
    job_stop(user=life.job.owner, job=life.now())
    return "STOPPED"


def is_stopped_while_it_starts(life: Life) -> str:
    life.starts()
    job_stop(user=life.job.owner, job=life.now())
    return "STOPPED"


def takes_too_long(life: Life) -> str:
    life.runs()
    life.world.now += timedelta(seconds=601)
    return "FAILED"


ENDINGS = [succeeds, fails, is_stopped, is_stopped_while_it_starts, takes_too_long]


@pytest.mark.parametrize("ending", ENDINGS, ids=lambda one: one.__name__)
@pytest.mark.parametrize("roles", SETS, ids=lambda some: "+".join(sorted(some)))
def test_no_job_takes_more_than_eight_writes(harness, ada, roles: frozenset[Role], ending: Callable[[Life], str]):
    life = Life(harness, ada, roles, max_runtime=600, retries=0)
    phase = ending(life)
    assert life.until_over() <= MOST
    assert life.now().phase == phase
    facts = TaskFact.objects.filter(job=life.job)
    assert {(one.role, one.index) for one in facts} == {(role.value, 0) for role in roles}
    assert {one.phase for one in facts} <= {"SUCCEEDED", "FAILED", "RELEASED"}
    assert all(one.finished_at for one in facts)


def test_the_sets_are_all_that_there_are():
    """Should a strategy allow another set of roles, it is tried as well: this says which those are today."""
    assert sorted("+".join(sorted(some)) for some in SETS) == [
        "chief+evaluator+ps+worker",
        "chief+evaluator+worker",
        "chief+ps+worker",
        "chief+worker",
        "driver+executor",
        "evaluator+worker",
        "ps+worker",
        "worker",
    ]


def test_what_a_task_printed_before_its_runner_began_outlives_the_stop(harness, ada):
    """The stop takes the pods of all tasks along, also of those that have ended."""
    life = Life(harness, ada, frozenset({Role.CHIEF, Role.WORKER}), retries=0)
    life.runs()
    (pod,) = [one for one in harness.api.store.find("pods") if one["metadata"]["labels"]["yardmaster/role"] == "chief"]
    harness.api.store.logs[pod["metadata"]["namespace"], pod["metadata"]["name"]] = "exec format error\n"
    life.ends(Role.CHIEF, 1)
    life.until_over()
    stream = StreamKey(life.job.pk, 1, Role.CHIEF, 0)
    assert [line.text for line in log_store().read(stream, 0, 10).lines] == [b"exec format error"]
