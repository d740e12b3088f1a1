"""How many tasks can be told of each other: up to the byte that Linux takes, and a clear refusal beyond."""

from __future__ import annotations

import json
import mmap
import re
import subprocess
import sys
import uuid
from dataclasses import replace

import pytest

from tests.unit.core.generators import make_spec
from tests.unit.engines.kubernetes_objects import OPTIONS
from yardmaster.engines.base import TaskAccess
from yardmaster.engines.kubernetes.render import manifests, names
from yardmaster.engines.kubernetes.render.names import LONGEST
from yardmaster.engines.kubernetes.render.options import TaskOptions
from yardmaster.errors import Problem, SpecRejected
from yardmaster.ids import JobKey
from yardmaster.job.spec import Role, Strategy, TrainingSpec
from yardmaster.job.spec_limits import DEFAULT_LIMITS
from yardmaster.job.strategy import ROLES, task_environment

FULL_NAMES = replace(OPTIONS, namespace_prefix="y" * 20, service_domain="training.example.internal")
KEY = JobKey(uuid.UUID(int=7), uuid.UUID(int=9), 999)


def too_many_peers(spec: TrainingSpec, options: TaskOptions) -> list[Problem]:
    return names.too_many_peers(spec, KEY, options, names.cluster_map(spec, KEY, options))


def longest_variable(spec: TrainingSpec, options: TaskOptions) -> int:
    return names.longest_variable(spec, KEY, names.cluster_map(spec, KEY, options))


def job_of(workers: int, strategy: Strategy = Strategy.BETWEEN_GRAPH) -> TrainingSpec:
    spec = make_spec(strategy)
    return replace(spec, roles={**spec.roles, Role.WORKER: replace(spec.roles[Role.WORKER], replicas=workers)})


def number_of(problem: Problem) -> int:
    """The number of replicas that the remedy names."""
    found = re.match(r"Request at most (\d+)\.", problem.remedy)
    assert found, problem.remedy
    return int(found[1])


def what_begins(spec: TrainingSpec) -> list[str]:
    """Every `NAME=value` that a container, or the script in it, begins with."""
    access = TaskAccess("http://portal:8080", "the-token")
    made = manifests.Run.of(spec, KEY, access, FULL_NAMES).workloads
    containers = [one["spec"]["template"]["spec"]["containers"][0] for one in made]
    found = [f"{one['name']}={one.get('value', '')}" for container in containers for one in container["env"]]
    cluster = names.cluster_map(spec, KEY, FULL_NAMES)
    told = task_environment(spec, Role.WORKER, spec.replicas(Role.WORKER) - 1, cluster)
    return [*found, *(f"{name}={value}" for name, value in told.items())]


@pytest.mark.skipif(
    not sys.platform.startswith("linux") or mmap.PAGESIZE != 4096, reason="Linux's bound, of usual pages"
)
def test_the_bound_is_the_one_of_linux():
    subprocess.run(["/bin/true"], env={"NAME": "x" * (LONGEST - len("NAME="))}, check=True)
    with pytest.raises(OSError, match="Argument list too long"):
        subprocess.run(["/bin/true"], env={"NAME": "x" * (LONGEST + 1 - len("NAME="))}, check=True)


@pytest.mark.parametrize("strategy", [one for one in Strategy if Role.WORKER in ROLES[one]])
def test_with_short_names_all_tasks_that_a_job_may_have_are_told(strategy):
    most = ROLES[strategy][Role.WORKER].most or DEFAULT_LIMITS.tasks
    assert too_many_peers(job_of(most, strategy), replace(OPTIONS, namespace_prefix="y" * 20)) == []


@pytest.mark.parametrize("strategy", [Strategy.BETWEEN_GRAPH, Strategy.MULTI_WORKER_MIRRORED, Strategy.IN_GRAPH])
def test_the_number_that_is_named_fits_and_the_next_does_not(strategy):
    (problem,) = too_many_peers(job_of(DEFAULT_LIMITS.tasks, strategy), FULL_NAMES)
    assert (problem.field, problem.code, problem.value) == ("roles.worker.replicas", "too_many_tasks", "1000")
    assert "service_domain" in problem.remedy
    most = number_of(problem)
    assert too_many_peers(job_of(most, strategy), FULL_NAMES) == []
    assert len(too_many_peers(job_of(most + 1, strategy), FULL_NAMES)) == 1
    longest = max(len(one.encode()) for one in what_begins(job_of(most, strategy)))
    assert longest == longest_variable(job_of(most, strategy), FULL_NAMES) <= LONGEST
    assert LONGEST - longest < 200, "one more would have fitted"


def test_the_first_attempt_is_bounded_as_the_last_is():
    spec = job_of(DEFAULT_LIMITS.tasks)
    first = replace(KEY, attempt=1)
    cluster = names.cluster_map(spec, first, FULL_NAMES)
    assert len(json.dumps(cluster)) < names.longest_variable(spec, first, cluster)
    assert names.longest_variable(spec, first, cluster) == longest_variable(spec, FULL_NAMES)


def test_the_role_with_most_tasks_is_named_and_the_rest_is_left_as_it_is():
    spec = job_of(500)
    spec = replace(spec, roles={**spec.roles, Role.PS: replace(spec.roles[Role.PS], replicas=498)})
    (problem,) = too_many_peers(spec, FULL_NAMES)
    most = number_of(problem)
    fits = replace(spec, roles={**spec.roles, Role.WORKER: replace(spec.roles[Role.WORKER], replicas=most)})
    assert problem.field == "roles.worker.replicas"
    assert 300 < most < 500
    assert too_many_peers(fits, FULL_NAMES) == []


def test_where_nothing_is_left_for_the_role_it_asks_for_fewer():
    long = replace(FULL_NAMES, service_domain="a" * 250)
    spec = job_of(500)
    spec = replace(spec, roles={**spec.roles, Role.PS: replace(spec.roles[Role.PS], replicas=499)})
    (problem,) = too_many_peers(spec, long)
    assert problem.remedy.startswith("Request fewer tasks.")


def test_the_engine_refuses_with_it_before_anything_is_made():
    spec = job_of(DEFAULT_LIMITS.tasks)
    run = manifests.Run.of(spec, KEY, TaskAccess("http://portal:8080", "the-token"), FULL_NAMES)
    with pytest.raises(SpecRejected) as refused:
        run.refuse_impossible()
    assert list(refused.value.problems) == too_many_peers(spec, FULL_NAMES)
