"""Which strategy a TFJob's replicas stand for, and how many tasks of which role that makes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from yardmaster.errors import Problem, SpecRejected
from yardmaster.job.spec import Role, Strategy
from yardmaster.job.tfjob.parts import Findings, Kind

_REPLICAS = "spec.tfReplicaSpecs"


@dataclass(frozen=True)
class Shape:
    """The strategy, and of which of the TFJob's roles each role of the job is made."""

    strategy: Strategy
    sources: Mapping[Role, Role]
    counts: Mapping[Role, int]


def shape_of(found: Mapping[Role, int], *, is_dynamic: bool, has_host_flags: bool, findings: Findings) -> Shape:
    """A TFJob names no strategy: it is read from its roles. Raises `SpecRejected` where no task trains."""
    counts = dict(found)
    for role in (Role.CHIEF, Role.EVALUATOR):
        if counts.get(role, 0) > 1:
            message = f"A job has one {role.value}; the TFJob asks for {counts[role]}."
            findings.note(Kind.CHANGED, f"{_REPLICAS}.{role.value.capitalize()}.replicas", message)
            counts[role] = 1
    if not counts.get(Role.CHIEF) and not counts.get(Role.WORKER):
        message = "No replica of the TFJob trains: it has neither a Chief nor a Worker."
        raise SpecRejected([Problem(_REPLICAS, "role_missing", message, "Add a Worker with at least one replica.")])
    shape = _with_servers(counts, is_dynamic, has_host_flags, findings) if counts.get(Role.PS) else _without(counts)
    words = _WORDS[shape.strategy]
    findings.note(Kind.TAKEN, _REPLICAS, f"The strategy is {shape.strategy.value}: {words[0]}", words[1])
    return shape


_WORDS = {
    Strategy.SINGLE: ("one task trains.", ""),
    Strategy.MULTI_WORKER_MIRRORED: ("several tasks train, without a parameter server.",
        "If they do not speak to each other, write batch."),
    Strategy.BETWEEN_GRAPH: (
        "parameter servers, and workers that each have a session of their own.",
        "If the script uses ParameterServerStrategy of TensorFlow 2, write parameter_server, with a chief.",
    ),
    Strategy.PARAMETER_SERVER: (
        "parameter servers and workers, which a chief drives.",
        "If the script is of TensorFlow 1 (tf.train.Server, an estimator), write between_graph.",
    ),
}  # fmt: skip


def _with_servers(counts: dict[Role, int], is_dynamic: bool, has_host_flags: bool, findings: Findings) -> Shape:
    if not counts.get(Role.WORKER):
        return _chief_as_worker(Strategy.BETWEEN_GRAPH, counts, findings)
    is_driven = bool(counts.get(Role.CHIEF)) and not has_host_flags
    strategy = Strategy.PARAMETER_SERVER if is_driven else Strategy.BETWEEN_GRAPH
    if is_dynamic and not is_driven:
        message = "enableDynamicWorker is for a script that a chief drives, and the TFJob has no Chief."
        findings.note(Kind.CHANGED, "spec.enableDynamicWorker", message)
    return _shape(strategy, counts, findings)


def _without(counts: dict[Role, int]) -> Shape:
    trains = counts.get(Role.CHIEF, 0) + counts.get(Role.WORKER, 0)
    if trains == 1 and not counts.get(Role.EVALUATOR):
        source = Role.WORKER if counts.get(Role.WORKER) else Role.CHIEF
        return Shape(Strategy.SINGLE, {Role.WORKER: source}, {Role.WORKER: 1})
    if not counts.get(Role.WORKER):
        return _chief_as_worker(Strategy.MULTI_WORKER_MIRRORED, counts, Findings())
    return _shape(Strategy.MULTI_WORKER_MIRRORED, counts, Findings())


def _chief_as_worker(strategy: Strategy, counts: dict[Role, int], findings: Findings) -> Shape:
    """Each strategy has workers; one alone leads as a chief does."""
    message = "The Chief is worker 0: the job has no other worker."
    findings.note(Kind.CHANGED, f"{_REPLICAS}.Chief", message)
    rest: dict[Role, int] = {role: count for role, count in counts.items() if role is not Role.CHIEF}
    made = _shape(strategy, rest | {Role.WORKER: 1}, findings)
    return Shape(made.strategy, {**made.sources, Role.WORKER: Role.CHIEF}, made.counts)


def _shape(strategy: Strategy, counts: Mapping[Role, int], findings: Findings) -> Shape:
    kept = {role: count for role, count in counts.items() if count}
    if strategy is Strategy.BETWEEN_GRAPH and kept.pop(Role.EVALUATOR, 0):
        message = "The Evaluator is left out: between_graph has none."
        remedy = "Evaluate in the chief, or afterwards in a job of its own."
        findings.note(Kind.LEFT_OUT, f"{_REPLICAS}.Evaluator", message, remedy)
    return Shape(strategy, {role: role for role in kept}, kept)
