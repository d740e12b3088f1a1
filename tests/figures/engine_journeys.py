"""The journey of a submission to Kubernetes: from the engine's `submit` to the last write to the API server."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from tests.contract.engine_harness import ACCESS, KubernetesHarness, new_key, spec_of
from tests.figures.journeys import Journey
from tests.figures.tracing import Trace, in_package
from yardmaster.engines.registry import EngineRegistry
from yardmaster.job.spec import TrainingSpec
from yardmaster.queueing.ledger import Quota

WRITES = ("create", "patch", "update", "delete", "deletecollection")


def submission() -> Journey:
    """Of two workers and a parameter server into a namespace that is there. `more` has how many requests are written,
    and how often the map of the cluster is computed: distinct results of the engine's functions that have for each
    role as many addresses as it has tasks."""
    with _cluster() as harness:
        engine: Any = EngineRegistry({"kubernetes": harness.as_offered()}).get("kubernetes")
        key, spec, package = new_key(), spec_of(), type(engine).__module__.rpartition(".")[0]
        engine.shape(key.namespace_id, Quota(cpu=64), ACCESS.portal_url)
        maps, marks = _Maps(spec, package), []
        trace = Trace(type(engine).submit.__code__, maps.look)
        ask = harness.api.fault_for

        def noted(verb: str, plural: str) -> int | str | None:
            if verb in WRITES:
                marks.append(len(trace.calls))
            return ask(verb, plural)

        harness.api.fault_for = noted  # type: ignore[method-assign]
        trace.follow(lambda: engine.submit(spec, key, ACCESS))
        engine.close()
    more = (("API writes", len(marks)), ("cluster map computed", len(maps.found)))
    calls = trace.calls[: marks[-1]]
    return Journey("submission to Kubernetes", calls, in_package(package), goal="≤ 7", more=more)


@contextmanager
def _cluster() -> Iterator[KubernetesHarness]:
    harness = KubernetesHarness()
    try:
        yield harness
    finally:
        harness.close()


class _Maps:
    """Keeps each result that is a map of the cluster, so that no two of them are the same object."""

    def __init__(self, spec: TrainingSpec, package: str) -> None:
        self._sizes = {role.value: one.replicas for role, one in spec.roles.items()}
        self._is_ours = in_package(package)
        self.found: list[object] = []

    def look(self, module: str, value: object) -> None:
        if self._is_ours(module) and self._is_map(value) and not any(one is value for one in self.found):
            self.found.append(value)

    def _is_map(self, value: object) -> bool:
        if not isinstance(value, dict) or {str(getattr(role, "value", role)) for role in value} != set(self._sizes):
            return False
        return all(
            isinstance(hosts, list | tuple) and len(hosts) == self._sizes[str(getattr(role, "value", role))]
            and all(isinstance(host, str) and ":" in host for host in hosts)
            for role, hosts in value.items()
        )  # fmt: skip
