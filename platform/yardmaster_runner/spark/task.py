"""A task of a Spark cluster as the runner starts it: its command line, and what its environment gets beside that of
others.
"""

from __future__ import annotations

import os
import socket
from dataclasses import replace
from typing import TYPE_CHECKING, Dict, List, Mapping, Optional

from yardmaster_runner import offered, own_programs, shell_command
from yardmaster_runner.narrower import Listening
from yardmaster_runner.order import Order, Size
from yardmaster_runner.settings import Settings
from yardmaster_runner.spark import cluster, for_notebooks
from yardmaster_runner.spark.cluster import DRIVER, EXECUTOR
from yardmaster_runner.spark.registered import Registered

if TYPE_CHECKING:
    from yardmaster_runner.launch import Folders

LIBRARY = b"tensorflowonspark"
LONGEST_SCRIPT = 1 << 20


def driver(settings: Settings, script: List[str]) -> List[str]:
    """What brings the master up and then becomes `script`."""
    return [settings.python, "-u", "-m", "yardmaster_runner.spark.driver", *script]


def executor(settings: Settings) -> List[str]:
    return [settings.python, "-u", "-m", "yardmaster_runner.spark.executor"]


def variables(settings: Settings, order: Order, folders: "Folders", environment: Mapping[str, str]) -> Dict[str, str]:
    """For a driver and an executor alike. `environment` is what the task has so far; the path of modules gets the
    runner, which takes itself out again before anything of the user's starts. Raises `OSError` without a token."""
    path = os.pathsep.join([own_programs.runner_root(), environment.get("PYTHONPATH", "")])
    of_driver, of_executor = (order.sizes.get(role, Size(1.0, 0)) for role in (DRIVER, EXECUTOR))
    here = cluster.Cluster(
        address=settings.cluster[settings.role][settings.index],
        master=settings.cluster[DRIVER][0],
        executors=order.replicas.get(EXECUTOR, 1),
        cores=max(1, int(of_executor.cpu)),
        driver_memory=of_driver.memory,
        executor_memory=of_executor.memory,
        secret=cluster.secret_of(_token(settings)),
        work_dir=settings.work_dir,
        code_dir=folders.code,
        log_dir=folders.log,
        uses_tensorflow_on_spark=_names_library(folders.code, order.entry_point),
        registered=_registered(settings, order),
    )
    return {
        **cluster.to_variable(here),
        **shell_command.variables(settings.python, environment),
        "PYTHONPATH": path,
    }


def variables_of_session(settings: Settings, order: Order) -> Dict[str, str]:
    """For a JupyterLab session; none where its notebooks use no registered cluster. Their executors are told no token:
    with that of a session they could read what only its owner may."""
    if order.spark is None:
        return {}
    own = settings.cluster[settings.role][settings.index]
    memory = order.sizes.get(settings.role, Size(1.0, 0)).memory
    one = replace(order.spark, offered=offered.folder_in(settings.work_dir))
    folder = os.path.join(settings.work_dir, "spark")
    return cluster.to_variable(for_notebooks.cluster_elsewhere(own, one, memory, folder, settings.home_dir))


def _registered(settings: Settings, order: Order) -> Optional[Registered]:
    """The cluster that was there before, with what its executors are told of the portal."""
    if order.spark is None:
        return None
    where = offered.folder_in(settings.work_dir)
    return replace(order.spark, url=order.spark.url or settings.url, token=_token(settings), offered=where)


def listening(where: Optional[Listening], order: Order) -> Optional[Listening]:
    """Where the script may listen. TensorFlowOnSpark starts servers on ports that nothing knows before: executors on
    other machines have to reach them. The executors of a registered cluster reach the driver, which a notebook may be,
    by an address of its machine, on which it may then listen by name."""
    if where is None:
        return None
    if order.spark is None:
        return replace(where, every_port=True) if order.is_spark else where
    try:
        return replace(where, address=socket.inet_aton(socket.gethostbyname(order.spark.driver_address)))
    except OSError:
        return where  # the driver says that it has no address


def _token(settings: Settings) -> str:
    with open(settings.token_file, encoding="utf-8") as file:
        return file.read().strip()


def _names_library(code_dir: str, entry_point: str) -> bool:
    """Whether the script is written for TensorFlowOnSpark."""
    try:
        with open(os.path.join(code_dir, entry_point), "rb") as file:
            return LIBRARY in file.read(LONGEST_SCRIPT)
    except OSError:
        return False
