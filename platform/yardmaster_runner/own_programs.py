"""The portal's own programs that run in the place of a script, in the task's Python: which module each one is, and how
it learns what to do. Who adds a program adds its module here, and its options to `yardmaster.job.programs`.

A program is run as `python -m <module>` and reads its orders with `orders`. Not here: what it does.
"""

from __future__ import annotations

import json
import os
import signal
import sys
import threading
from dataclasses import asdict, dataclass, field
from types import FrameType
from typing import Any, Dict, Mapping, Optional

from yardmaster_runner.signal_event import SignalEvent

MODULES = {
    "prepare": "yardmaster_runner.prepare.task",
    "predict": "yardmaster_runner.predict.task",
    "model_server": "yardmaster_runner.serving",
    "tensorboard": "yardmaster_runner.workbench.tensorboard",
    "spark_history": "yardmaster_runner.workbench.spark_history",
    "jupyter": "yardmaster_runner.workbench.jupyter",
    "volume_copy": "yardmaster_runner.volume_copy",
    "volume_remove": "yardmaster_runner.volume_remove",
}
VARIABLE = "YARDMASTER_PROGRAM"


@dataclass(frozen=True)
class Orders:
    """What a program is to do. `task` of `tasks` is this one's number, from 0; `code_dir` has the code beside it, or is
    empty. What is left in `output_dir` is published where the job publishes something."""

    options: Mapping[str, Any]
    data_dir: str
    code_dir: str
    log_dir: str
    model_dir: str
    output_dir: str
    task: int
    tasks: int
    listing: str = ""
    """Where a file with all files of the inputs is, of which the data folder may have some alone."""
    inputs: Mapping[str, str] = field(default_factory=dict)
    """The version of each input, by its name."""
    cache_dir: str = ""
    """What the runner fetched (`cache`)."""
    data_volume: str = ""
    """The top of the namespace's data volume, where the job has something of it; `log_volume` of its log volume."""
    log_volume: str = ""
    home_dir: str = ""
    """What a notebook works in (`Settings`)."""


def to_variable(orders: Orders) -> Dict[str, str]:
    """The orders as a variable of the program's environment."""
    return {VARIABLE: json.dumps(asdict(orders))}


def orders(environment: Mapping[str, str] = os.environ) -> Orders:
    """What `to_variable` wrote. Raises KeyError where the process was not started by the runner."""
    return Orders(**json.loads(environment[VARIABLE]))


def stopping() -> threading.Event:
    """Set once the process is told to stop (SIGTERM). For the main thread."""
    stop = SignalEvent()

    def stopped(number: int, frame: Optional[FrameType]) -> None:
        stop.set()

    signal.signal(signal.SIGTERM, stopped)
    return stop


def say(line: str) -> None:
    """A line of the task's log, at once."""
    sys.stdout.write(line + "\n")
    sys.stdout.flush()


def listing_in(work_dir: str) -> str:
    return os.path.join(work_dir, "input-files")


def runner_root() -> str:
    """What has to be on the module search path so that `yardmaster_runner` is found: a folder, or the runner's file."""
    return os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
