"""What each role means to a strategy, as data, and what a task receives about its peers. Who adds a strategy adds one
entry here.

The words of the latter are the runner's own module (`yardmaster_runner.cluster`), so that a preview shows what a task
really gets. Not here: which numbers are allowed beyond these (`spec_rules`), what is done with the answers (`success`,
`restarts`), and addresses: the engine knows them, `cluster` maps each role with a server to its `host:port` list.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from types import MappingProxyType
from typing import Any

from yardmaster.job.spec import Role, Strategy, TrainingSpec
from yardmaster_runner import cluster as words
from yardmaster_runner.cluster import distribution_environment


class Scope(StrEnum):
    """What must restart when a task of a role was lost."""

    TASK = "task"
    """The lost task alone: the others continue meanwhile."""
    CLUSTER = "cluster"
    """Every task together: the others cannot continue without what was lost."""


@dataclass(frozen=True)
class RoleRule:
    """One role within one strategy. `most` None: no limit but that on all tasks together."""

    least: int
    most: int | None = None
    never_ends: bool = False
    """Its tasks serve until they are released; the job does not wait for them to end."""
    has_server: bool = True
    """It is part of the cluster map that all tasks get."""
    on_loss: Scope = Scope.TASK


_EVALUATOR = RoleRule(least=0, most=1, has_server=False)
_ENDLESS_PS = RoleRule(least=1, never_ends=True)

ROLES: Mapping[Strategy, Mapping[Role, RoleRule]] = MappingProxyType(
    {
        Strategy.SINGLE: {Role.WORKER: RoleRule(least=1, most=1, has_server=False)},
        # Variables live on the PS, each worker has a session of its own: any one may come back alone.
        Strategy.BETWEEN_GRAPH: {
            Role.CHIEF: RoleRule(least=0, most=1),
            Role.WORKER: RoleRule(least=1),
            Role.PS: _ENDLESS_PS,
        },
        # The chief drives everything and survives the loss of a worker, but not that of a PS. A new chief cannot
        # adopt servers that hold resources of the old one.
        Strategy.PARAMETER_SERVER: {
            Role.CHIEF: RoleRule(least=1, most=1, on_loss=Scope.CLUSTER),
            Role.WORKER: RoleRule(least=1, never_ends=True),
            Role.PS: RoleRule(least=1, never_ends=True, on_loss=Scope.CLUSTER),
            Role.EVALUATOR: _EVALUATOR,
        },
        # Collectives need every member, with the same incarnation.
        Strategy.MULTI_WORKER_MIRRORED: {
            Role.CHIEF: RoleRule(least=0, most=1, on_loss=Scope.CLUSTER),
            Role.WORKER: RoleRule(least=1, on_loss=Scope.CLUSTER),
            Role.EVALUATOR: _EVALUATOR,
        },
        # Plain servers: who drives them is outside, and knows what to do when one comes back without its variables.
        Strategy.IN_GRAPH: {
            Role.CHIEF: RoleRule(least=0, most=1, never_ends=True),
            Role.WORKER: RoleRule(least=1, never_ends=True),
            Role.PS: _ENDLESS_PS,
        },
        # Independent tasks, each with its part of the work: one that is lost starts its part again.
        Strategy.BATCH: {Role.WORKER: RoleRule(least=1, has_server=False)},
        # One program that serves one port, for users: a model server, a TensorBoard, a notebook.
        Strategy.SERVICE: {Role.WORKER: RoleRule(least=1, most=1, never_ends=True)},
        # Spark gives the work of an executor that is lost to the others and to the one in its place. Without the driver
        # nothing is left: a new one begins with executors of its own.
        Strategy.SPARK: {
            Role.DRIVER: RoleRule(least=1, most=1, on_loss=Scope.CLUSTER),
            Role.EXECUTOR: RoleRule(least=1, never_ends=True),
        },
    }
)


def only_serves(strategy: Strategy) -> bool:
    """Whether all that runs are servers: no script, and only a stop ends them."""
    return all(rule.never_ends for rule in ROLES[strategy].values())


def runs_script(spec: TrainingSpec) -> bool:
    """Whether a script of the user's code is what runs: no server, and no program of the portal's own."""
    return not only_serves(spec.strategy) and not spec.program


def never_ending_roles(strategy: Strategy) -> frozenset[Role]:
    """Roles whose tasks only end when they are released."""
    return frozenset(role for role, rule in ROLES[strategy].items() if rule.never_ends)


def is_cluster(strategy: Strategy) -> bool:
    """Whether its servers are TensorFlow's, for a program outside that drives them."""
    return strategy is Strategy.IN_GRAPH


def is_spark(strategy: Strategy) -> bool:
    """Whether its tasks are a Spark cluster, and its script the driver of an application."""
    return strategy is Strategy.SPARK


PUBLISHING = (Strategy.SINGLE, Strategy.BATCH, Strategy.SPARK)
"""What their tasks leave in output directories can be published."""


def publishing_tasks(spec: TrainingSpec) -> list[tuple[Role, int]]:
    """The tasks whose output directories are published: those that end by themselves. Of Spark the driver alone."""
    return [(role, index) for role, index in spec.tasks() if not ROLES[spec.strategy][role].never_ends]


def is_service(strategy: Strategy) -> bool:
    """Whether its one task serves a port for users, through the portal."""
    return strategy is Strategy.SERVICE


def server_roles(spec: TrainingSpec) -> tuple[Role, ...]:
    """The job's roles that have a server, hence an address, in the spec's order."""
    return tuple(role for role in spec.roles if ROLES[spec.strategy][role].has_server)


def leading_task(spec: TrainingSpec) -> tuple[Role, int]:
    """The chief, or worker 0 where there is no chief role: the one that decides under the rule `chief`, and to which
    clients of an `in_graph` job connect. The driver of a Spark application."""
    if Role.DRIVER in spec.roles:
        return (Role.DRIVER, 0)
    return (Role.CHIEF, 0) if Role.CHIEF in spec.roles else (Role.WORKER, 0)


# --- what a task receives about its peers -----------------------------------------------------------------------------

TF_CONFIG = "TF_CONFIG"


def tf_config(
    spec: TrainingSpec, cluster: Mapping[str, Sequence[str]], role: Role, index: int
) -> dict[str, Any] | None:
    """TF_CONFIG's value, or None where a task must not have one (jobs of one task)."""
    return words.tf_config(spec.strategy.value, cluster, role.value, index, len(spec.tasks()))


def classic_flags(spec: TrainingSpec, cluster: Mapping[str, Sequence[str]], role: Role, index: int) -> list[str]:
    """`--ps_hosts --worker_hosts --job_name --task_index` for `between_graph`; nothing for the others."""
    return words.classic_flags(spec.strategy.value, cluster, role.value, index)


def task_environment(
    spec: TrainingSpec, role: Role, index: int, cluster: Mapping[str, Sequence[str]]
) -> dict[str, str]:
    """What a task's environment gets beside the user's own variables, which are never overwritten."""
    config = tf_config(spec, cluster, role, index)
    found = distribution_environment(spec.strategy.value, spec.environment)
    if config is not None:
        found[TF_CONFIG] = json.dumps(config)
    return found
