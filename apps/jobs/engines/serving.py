"""Where the servers of an `in_graph` job can be reached while it runs, and the notebook that begins to drive them.

Who may see the job was decided before. Not here: the notebook's cells (`yardmaster.job.starter_notebook`).
"""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

from apps.jobs.engines.configured import engine_named
from apps.jobs.models import Job
from apps.jobs.state.specs import strategy_of
from yardmaster.engines.base import Serves
from yardmaster.errors import YardmasterError
from yardmaster.job.spec import Role, TrainingSpec
from yardmaster.job.spec_stored import stored_spec
from yardmaster.job.starter_notebook import starter_notebook
from yardmaster.job.strategy import is_cluster, leading_task
from yardmaster.lifecycle.phases import Phase, Wanted

SERVERS_SHOWN = 50
log = logging.getLogger(__name__)
_UP = (Phase.STARTING.value, Phase.RUNNING.value)


@dataclass(frozen=True)
class Server:
    """One server: its place in the cluster, and its address."""

    role: str
    index: int
    target: str

    @property
    def device(self) -> str:
        """As graphs name it."""
        return f"/job:{self.role}/task:{self.index}"


@dataclass(frozen=True)
class Serving:
    """The servers of a job. `target` is the one to connect to; any other would do, too."""

    target: str
    reach: str
    data_dir: str
    """Empty where the job has no inputs."""
    addresses: Mapping[Role, Sequence[str]]

    @cached_property
    def servers(self) -> list[Server]:
        return [
            Server(role.value, index, f"grpc://{address}")
            for role, some in self.addresses.items()
            for index, address in enumerate(some)
        ]

    @property
    def shown(self) -> list[Server]:
        """Of many the first."""
        return self.servers[:SERVERS_SHOWN]

    @property
    def more(self) -> int:
        return max(0, len(self.servers) - SERVERS_SHOWN)


def is_served(job: Job) -> bool:
    """Whether the job's tasks are TensorFlow servers that a program outside drives."""
    return is_cluster(strategy_of(job))


def serving_of(job: Job, spec: TrainingSpec | None = None) -> Serving | None:
    """The job's servers; None where it is of another strategy, is not up, or its engine gives no addresses. Raises what
    the engine raises."""
    if not is_served(job) or job.phase not in _UP or job.wanted == Wanted.STOP.value:
        return None
    engine = engine_named(job.engine)
    spec = spec or stored_spec(job.spec)
    found = engine.servers(spec, job.key) if isinstance(engine, Serves) else None
    if found is None:
        return None
    role, index = leading_task(spec)
    return Serving(
        target=f"grpc://{found.addresses[role][index]}",
        reach=found.reach,
        data_dir=found.data_dir if spec.inputs else "",
        addresses=found.addresses,
    )


def serving_if_known(job: Job, spec: TrainingSpec | None = None) -> Serving | None:
    """The same for those who have more to show: None, too, where the engine does not answer."""
    try:
        return serving_of(job, spec)
    except YardmasterError as error:
        log.info("The servers of job %s are not known now: %s", job.pk, error)
        return None


def notebook_of(job: Job, serving: Serving) -> str:
    """The text of the .ipynb file."""
    return starter_notebook(job.name, serving.target, serving.addresses, reach=serving.reach, data_dir=serving.data_dir)
