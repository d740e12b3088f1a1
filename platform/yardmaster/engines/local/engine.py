"""The engine that runs a job's tasks as processes of this machine. Linux, and nothing installed beside Python.

It isolates no task: they run as the portal's own user and can read what the portal can. Who may use it is the portal's
matter (`isolates`). The verbs here only write files and wake or start the run's supervisor, which does the rest; the
truth of a run is in its folder, so that any process of the portal may call any verb at any time.
"""

from __future__ import annotations

import dataclasses
import os
import shutil
import socket
import sys
import uuid
from collections.abc import Collection, Iterator, Mapping, Sequence
from datetime import timedelta
from pathlib import Path
from typing import Any

from yardmaster.engines.base import Address, Capacity, HomeUse, Machine, MachineState, Servers, TaskAccess
from yardmaster.engines.drivers import DriverAddress
from yardmaster.engines.local.workbench import Workbench
from yardmaster.engines.supervision import homes, spark
from yardmaster.engines.supervision.control_groups import can_hold_tasks, find_delegated
from yardmaster.engines.supervision.facts import Order, task_name
from yardmaster.engines.supervision.folder import translated
from yardmaster.engines.supervision.launch import task_environment
from yardmaster.engines.supervision.loopback import VARIABLE, LoopbackOnly, can_be_kept, refusal
from yardmaster.engines.supervision.machine import measure
from yardmaster.engines.supervision.runs import SOURCE_ROOT, Needs, Runs
from yardmaster.errors import Misconfigured, Problem, SpecRejected
from yardmaster.ids import JobKey
from yardmaster.job.spec import Role, TrainingSpec
from yardmaster.job.strategy import leading_task, server_roles
from yardmaster.lifecycle.phases import Observation

INHERITED = (
    "PATH", "USER", "LOGNAME", "LANG", "LC_ALL", "LC_CTYPE", "TZ", "LD_LIBRARY_PATH", "CUDA_HOME",
    "XLA_FLAGS", "SSL_CERT_FILE", "SSL_CERT_DIR",
)  # fmt: skip
"""What a task sees of the portal's own environment. Everything else may be a secret."""


_KEPT = "Only from the machine that runs the portal's local tasks."
_OPEN = "From every machine that can connect to this one, without a password."


class LocalEngine:
    """`root` is a folder of its own on a local disk. What is measured of the machine can be set instead: `cpus` in
    cores, `memory` in bytes, `gpus` as CUDA names them, `port_range` as [first, last]. `command` is started in place
    of the runner, `python` is the interpreter of tasks, `workbench_python` that of JupyterLab, `spark` the folder
    with Spark's Python packages, `pass_environment` are more variables that tasks may see, `control_group` is one under
    which tasks get theirs ("" for none; by default it is looked for). Tasks listen on loopback alone (`loopback_only`:
    auto or off); where they cannot be kept to it, jobs that start servers are refused unless `open_servers`."""

    isolates = False
    has_way_out = True
    driver_address = DriverAddress.REGISTERED

    def __init__(
        self,
        root: Path | str,
        *,
        name: str = "local",
        command: Sequence[str] | None = None,
        python: str = sys.executable,
        workbench_python: str = "",
        spark_folder: str = "",
        cpus: float | None = None,
        memory: int | None = None,
        gpus: Sequence[str] | None = None,
        port_range: Sequence[int] | None = None,
        pass_environment: Sequence[str] = (),
        control_group: str | None = None,
        loopback_only: str = LoopbackOnly.AUTO.value,
        open_servers: bool = False,
    ) -> None:
        if not sys.platform.startswith("linux"):
            raise Misconfigured("The local engine needs Linux.", remedy="Choose another engine in YARDMASTER_ENGINES.")
        if port_range is not None and not 1 <= port_range[0] <= port_range[-1] <= 65_535:
            raise Misconfigured(
                f"port_range {list(port_range)} is no range of ports.",
                remedy="Write [first, last], for instance [20000, 29999].",
            )
        if control_group and not can_hold_tasks(Path(control_group)):
            raise Misconfigured(
                f"control_group {control_group} cannot hold tasks.",
                remedy="It must be a writable control group (v2) with memory and cpu in cgroup.subtree_control.",
            )
        if loopback_only not in list(LoopbackOnly):
            raise Misconfigured(f"loopback_only is {loopback_only!r}.", remedy="Write auto or off.")
        self.name = name
        self.root = Path(root).resolve()
        self._runs = Runs(self.root)
        self._python = python if command is None else sys.executable
        self._command = None if command is None else tuple(command)
        self._workbench = Workbench(self.root, workbench_python)
        self._spark = spark_folder
        self._measured = (cpus, memory, gpus)
        self._gpus = [str(gpu) for gpu in gpus] if gpus is not None else None
        self._ports = range(port_range[0], port_range[-1] + 1) if port_range is not None else None
        self._passed = (*INHERITED, *pass_environment)
        self._control_group = control_group
        self._loopback_only = LoopbackOnly(loopback_only)
        self._open_servers = open_servers

    # --- questions ---------------------------------------------------------------------------------------------------

    def capacity(self) -> Capacity:
        """This machine's processors, memory and GPUs, as far as its container lets us use them."""
        total = measure(*self._measured)
        return Capacity(total=total, free=total, largest_task=total)

    def machines(self) -> list[Machine]:
        """This one. What its tasks hold of it is for the portal to subtract."""
        total = self.capacity().total
        return [Machine(socket.gethostname(), MachineState.READY, total, total)]

    def observe(self, keys: Collection[JobKey]) -> Mapping[JobKey, Observation]:
        """One pass over the runs' files. Where a run should continue but its supervisor was killed or the machine was
        started again, another supervisor is started, which continues from the files."""
        return self._runs.observe(keys)

    def refusal(self, spec: TrainingSpec) -> Problem | None:
        """Why a job that starts servers is not run here: other machines would reach them; or a notebook, where there is
        no JupyterLab."""
        if server_roles(spec) and not self._open_servers and not self._keeps_to_loopback():
            return refusal()
        return self._workbench.refusal(spec) or spark.refusal(spec)

    def has_own_spark(self) -> bool:
        """Always, once what `missing_for_spark` says is installed."""
        return True

    def missing_for_spark(self) -> str:
        """See `RunsSpark`."""
        return spark.lacks(self._spark)

    def preview(self, spec: TrainingSpec, key: JobKey, user: uuid.UUID | None = None) -> list[dict[str, Any]]:
        """One entry per process, in the order in which they start. Ports and GPUs are given out only by `submit`."""
        self._refuse_impossible(spec)
        folder, order = self._runs.folder(key), self._order(spec, key, "<the portal's address>", {}, {})
        # All who may see the job may see this, and what the operator passes on may be a secret.
        hidden = dict.fromkeys(order.environment, "<as the portal has it>")
        order = dataclasses.replace(order, environment=hidden)
        entries = []
        for role, index in spec.tasks():
            asked = spec.roles[role].resources
            entries.append(
                {
                    "kind": "process",
                    "task": task_name(role, index),
                    "command": list(order.command),
                    "folder": str(folder.work(role, index)),
                    "environment": task_environment(order, folder, role, index, 0),
                    "limits": {"cpu": asked.cpu, "memory": asked.memory, "gpus": asked.gpus},
                    "has_port": role in server_roles(spec),
                }
            )
        return entries

    def tail(self, key: JobKey, role: Role, index: int, lines: int) -> list[str]:
        """The last lines that the task's first process itself printed (of the last 2 MiB at most)."""
        return self._runs.tail(key, role, index, lines)

    def nudge(self, key: JobKey, role: Role, index: int) -> None:
        self._runs.nudge(key, role, index)

    def servers(self, spec: TrainingSpec, key: JobKey) -> Servers | None:
        """The ports that `submit` gave out; None before that, and when the run was removed."""
        order = self._runs.order(key)
        if order is None:
            return None
        addresses = {Role(role): tuple(hosts) for role, hosts in order.cluster().items()}
        # Each task has its own copy, and can read every other's.
        data_dir = str(self._runs.folder(key).work(*leading_task(spec)) / "data")
        reach = _KEPT if VARIABLE in order.environment else _OPEN
        return Servers(addresses, reach, data_dir)

    def address(self, spec: TrainingSpec, key: JobKey, role: Role, index: int) -> Address | None:
        """The port that `submit` gave out, on loopback; None before that, and when the run was removed."""
        order = self._runs.order(key)
        port = None if order is None else order.ports.get(task_name(role, index))
        return None if port is None else Address("127.0.0.1", port)

    def changes(self) -> Iterator[JobKey]:
        """Runs that have changed, for ever, within about 0.05 s."""
        return self._runs.changes()

    # --- actions -----------------------------------------------------------------------------------------------------

    def submit(self, spec: TrainingSpec, key: JobKey, access: TaskAccess) -> None:
        """Make the run's folder in one step, whole or not at all, and start its supervisor."""
        if not self._runs.exists(key):
            self._refuse_impossible(spec)

        def order(numbers: Mapping[str, int], cards: Mapping[str, tuple[str, ...]]) -> Order:
            self._workbench.make_home(spec, key)
            return self._order(spec, key, access.portal_url, numbers, cards)

        self._runs.submit(key, self._needs(spec), order, access.token)

    def release(self, key: JobKey, roles: Collection[Role]) -> None:
        """SIGTERM to the tasks of these roles, SIGKILL after the time that the spec gives."""
        self._runs.release(key, roles)

    def stop(self, key: JobKey, grace: timedelta) -> None:
        """SIGTERM to every task now, SIGKILL to whatever of it is left after `grace`."""
        self._runs.stop(key, grace)

    def clean_up(self, key: JobKey) -> None:
        """Kill what runs, give back ports and GPUs, remove the folder. Needs no disk space. Raises `Unavailable` where
        the kernel does not end a process in time."""
        self._runs.clean_up(key)

    # --- homes -------------------------------------------------------------------------------------------------------

    def home_size(self) -> int:
        """They are folders, which nothing bounds."""
        return 0

    def check_homes(self) -> None:
        """The engine makes all that they need."""

    def home_use(self, namespace_id: uuid.UUID, owner_id: uuid.UUID) -> HomeUse:
        """Of what is on the disk, a million files and folders at most."""
        return homes.used(self._workbench.home(namespace_id, owner_id))

    def remove_home(self, namespace_id: uuid.UUID, owner_id: uuid.UUID) -> bool:
        """In steps of some seconds."""
        with translated(self.root):
            return homes.remove(self._workbench.home(namespace_id, owner_id))

    # --- parts -------------------------------------------------------------------------------------------------------

    def _needs(self, spec: TrainingSpec) -> Needs:
        return Needs(
            with_ports=tuple(task_name(*task) for task in spec.tasks() if task[0] in server_roles(spec)),
            gpus={task_name(*task): spec.roles[task[0]].resources.gpus for task in spec.tasks()},
            port_range=self._ports,
            known_gpus=self._gpus,
        )

    def _order(
        self,
        spec: TrainingSpec,
        key: JobKey,
        portal_url: str,
        numbers: Mapping[str, int],
        cards: Mapping[str, tuple[str, ...]],
    ) -> Order:
        group = find_delegated() if self._control_group is None else self._control_group
        inherited = {name: os.environ[name] for name in self._passed if name in os.environ}
        environment = {**inherited, "PYTHONPATH": str(SOURCE_ROOT), **self._workbench.variables(spec, key)}
        environment |= spark.variables(spec, self._spark)
        if self._keeps_to_loopback():
            environment[VARIABLE] = "1"
        python = self._workbench.python_for(spec, self._python)
        command = self._command or (python, "-m", "yardmaster_runner")
        return Order(key, spec, portal_url, command, environment, cards, numbers, str(group or ""))

    def _keeps_to_loopback(self) -> bool:
        return self._loopback_only is LoopbackOnly.AUTO and can_be_kept(sys.executable, SOURCE_ROOT)

    def _refuse_impossible(self, spec: TrainingSpec) -> None:
        """Raise `SpecRejected` for what this machine can never give, `Misconfigured` where no task can begin."""
        if shutil.which(self._python) is None:
            raise Misconfigured(
                f"There is no Python for tasks at {self._python}.",
                remedy="Run make setup, or name one that has what scripts import in YARDMASTER_TASK_PYTHON.",
            )
        total = self.capacity().total
        problems = []
        for role, one in spec.roles.items():
            for name, amount in one.resources.extended.items():
                message, remedy = f"The local engine has no {name}.", "Leave it out, or choose another engine."
                field = f"roles.{role.value}.extended.{name}"
                problems.append(Problem(field, "no_such_resource", message, remedy, str(amount)))
        problems.extend(filter(None, [self.refusal(spec)]))
        needed = spec.total().gpus
        if needed > total.gpus:
            message = f"The job requests {needed} GPUs and this machine has {total.gpus}."
            problems.append(Problem("roles", "no_such_resource", message, "Request fewer, or choose another engine."))
        if problems:
            raise SpecRejected(problems)
