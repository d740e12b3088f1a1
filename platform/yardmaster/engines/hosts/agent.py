"""The agent on a machine: `python -S -P -m yardmaster.engines.hosts.agent FOLDER`, started by `bootstrap` for as long
as a process of the portal is connected. It has the verbs of the machine's runs; what it knows is in files, so that any
number of agents may be there, and none.

It imports the standard library and the pure core only. Not here: which task runs where (`engine`).
"""

from __future__ import annotations

import contextlib
import os
import platform
import sys
import threading
import time
import traceback
import uuid
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

from yardmaster.engines.hosts import wire
from yardmaster.engines.hosts.claims import Claims, amounts_of, free_beside, resources_in
from yardmaster.engines.hosts.environment import (
    INSTALL,
    INSTALL_WORKBENCH,
    LINKS,
    NO_ENVIRONMENT,
    NO_WORKBENCH,
    SPARK,
    TASKS,
    WORKBENCH,
    Environments,
)
from yardmaster.engines.supervision import homes, spark
from yardmaster.engines.supervision.control_groups import find_delegated
from yardmaster.engines.supervision.facts import Facts, Order, Others, key_from_json, key_to_json, task_name, task_of
from yardmaster.engines.supervision.folder import translated
from yardmaster.engines.supervision.loopback import VARIABLE, can_be_kept
from yardmaster.engines.supervision.machine import measure
from yardmaster.engines.supervision.processes import boot_id
from yardmaster.engines.supervision.runs import SOURCE_ROOT, Needs, Runs
from yardmaster.errors import Misconfigured, QuotaFull, SpecUnreadable, Unavailable, YardmasterError
from yardmaster.ids import JobKey
from yardmaster.job.programs import JUPYTER
from yardmaster.job.spec import NOTHING, Resources, Role
from yardmaster_runner.spark.java import has_java, runtime_in

Arguments = Mapping[str, Any]
_AT_ONCE = 16
_FORGOTTEN_AFTER = 7 * 86_400.0
_LAST_PATIENCE = 5.0
_MOST_TAIL = 1 << 20
INHERITED = ("PATH", "USER", "LOGNAME", "LANG", "LC_ALL", "LC_CTYPE", "TZ", "LD_LIBRARY_PATH", "CUDA_HOME", "HOME")
"""What a task sees of the environment that the SSH server gives."""
LISTEN = "YARDMASTER_LISTEN_ADDRESS"
"""Says to the runner on which address, beside loopback, its script may listen."""


class Agent:
    """The verbs by name, each of JSON to JSON. Called by several threads at once."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.runs = Runs(folder)
        self._claims = Claims(self.runs.layout)
        self._environments = {link: Environments(folder, link) for link in LINKS}
        self.verbs: Mapping[str, Callable[[Arguments], Any]] = {
            "hello": self._hello,
            "capacity": self._capacity,
            "claim": self._claim,
            "unclaim": self._unclaim,
            "submit": self._submit,
            "observe": self._observe,
            "tell": self._tell,
            "release": self._release,
            "stop": self._stop,
            "clean_up": self._clean_up,
            "nudge": self._nudge,
            "tail": self._tail,
            "environment": self._environment,
            "environment_missing": self._environment_missing,
            "environment_install": self._environment_install,
            "home_there": self._home_there,
            "home_use": self._home_use,
            "home_remove": self._home_remove,
        }

    # --- the machine -------------------------------------------------------------------------------------------------

    def _hello(self, asked: Arguments) -> dict[str, Any]:
        return {
            "clock": time.time(),
            "boot": boot_id(),
            "python": platform.python_version(),
            "machine": platform.machine(),
            "folder": str(self.folder),
            "java": has_java(os.environ),
        }

    def _capacity(self, asked: Arguments) -> dict[str, Any]:
        with translated(self.folder):
            held, promised = self._claims.held(), self._claims.promised()
        return {
            "total": amounts_of(_total(asked)),
            "held": [one.to_json() for one in held],
            "promised": amounts_of(promised),
            "environment": self._environments[TASKS].current(),
            "workbench": self._environments[WORKBENCH].current(),
            "spark": self._spark(),
            "python": platform.python_version(),
            "machine": platform.machine(),
            "java": has_java(os.environ),
        }

    def _spark(self) -> str:
        """The folder with Spark's Python packages; empty where there is none, or no Java that runs it."""
        found = self._environments[SPARK].packages()
        return found if has_java(os.environ) or runtime_in(found) else ""

    # --- a run begins ------------------------------------------------------------------------------------------------

    def _claim(self, asked: Arguments) -> dict[str, Any]:
        """Ports and GPUs for the tasks of a run that come here, and the promise of their cores and memory, until this
        process ends. Raises `QuotaFull` where the machine has not that much free."""
        key = key_from_json(asked["key"])
        wanted = sum((resources_in(one) for one in asked["tasks"].values()), NOTHING)
        needs = Needs(
            with_ports=tuple(asked["with_ports"]),
            gpus={name: int(one["gpus"]) for name, one in asked["tasks"].items()},
            port_range=range(asked["ports"][0], asked["ports"][1] + 1) if asked.get("ports") else None,
            known_gpus=asked["machine"].get("gpus"),
        )
        with translated(self.folder), self._claims.locked():
            self._give_back(key)
            free = free_beside(_total(asked), self._claims.held(), self._claims.promised(but=key.name))
            if wanted.cpu > free.cpu or wanted.memory > free.memory or wanted.gpus > free.gpus:
                raise QuotaFull("It now has less free than the job's tasks need.", remedy="It is tried again.")
            numbers = self.runs.claim_ports(key, needs)
            try:
                cards = self.runs.claim_gpus(key, needs)
                self._claims.claim(key.name, wanted)
            except BaseException:
                self._give_back(key)
                raise
        return {"ports": numbers, "gpus": cards}

    def _unclaim(self, asked: Arguments) -> None:
        with translated(self.folder), self._claims.locked():
            self._give_back(key_from_json(asked["key"]))

    def _give_back(self, key: JobKey) -> None:
        """What was claimed for a run that is not there."""
        if not self.runs.exists(key):
            self.runs.layout.ports.free(key.name)
            self.runs.layout.gpus.free(key.name)
            self._claims.free(key.name)

    def _submit(self, asked: Arguments) -> None:
        """Make the run of the order, and start its supervisor; already there: nothing changes."""
        order = Order.from_json(asked["order"])
        facts = {task_of(name): Facts.from_json(*task_of(name), one) for name, one in asked["facts"].items()}
        whole = replace(order, **self._surroundings(order, asked))
        with translated(self.folder), self._claims.locked():
            if self._tombstone(order.key, order.part).exists():
                raise Unavailable("This part of the run was removed before it was made.")
            self._make_home(order, is_kept=bool(asked.get("home_kept")))
            self.runs.publish(whole, asked["token"], facts)
            self._claims.free(order.key.name)
        with translated(self.folder):
            self.runs.keep_supervised(self.runs.folder(order.key))

    def _surroundings(self, order: Order, asked: Arguments) -> dict[str, Any]:
        """What of an order only the machine knows."""
        inherited = {name: os.environ[name] for name in INHERITED if name in os.environ}
        environment = {**inherited, "PYTHONPATH": str(SOURCE_ROOT), **order.environment}
        environment |= spark.variables(order.spec, self._spark())
        if can_be_kept(sys.executable, SOURCE_ROOT):
            environment.update({VARIABLE: "1", LISTEN: order.host})
        elif order.ports and not asked.get("open_servers"):
            raise Unavailable(
                "Its kernel cannot keep tasks from listening on every network.",
                remedy="Use Linux 5.6 or newer with seccomp, or allow it in the settings (docs/hosts.md).",
            )
        if order.spec.program == JUPYTER:
            environment[homes.HOME] = str(self._home(order))
        command = order.command or (self._python_for(order, asked), "-m", "yardmaster_runner")
        return {"environment": environment, "command": command, "control_group": str(find_delegated() or "")}

    def _python_for(self, order: Order, asked: Arguments) -> str:
        """JupyterLab's, or for all else the one that the machine's entry in the list names, else that of the
        environment that was installed."""
        is_notebook = order.spec.program == JUPYTER
        if asked.get("python") and not is_notebook:
            return str(asked["python"])
        environments = self._environments[WORKBENCH if is_notebook else TASKS]
        current = environments.current()
        if not current and is_notebook:
            raise Misconfigured(NO_WORKBENCH, remedy=INSTALL_WORKBENCH)
        if not current:
            raise Misconfigured(NO_ENVIRONMENT, remedy=INSTALL)
        return str(environments.python(current))

    # --- homes -------------------------------------------------------------------------------------------------------

    def _make_home(self, order: Order, *, is_kept: bool) -> None:
        """Of a notebook. Raises `Misconfigured` where there was one (`is_kept`) that is not there any more."""
        if order.spec.program != JUPYTER or self.runs.exists(order.key):
            return
        home = self._home(order)
        if is_kept and not home.is_dir():
            raise Misconfigured(
                f"The files of this Jupyter were at {home}, and are no longer there.",
                remedy="Restore them, or choose Delete files on its page: then it starts with an empty home.",
            )
        homes.make(home)

    def _home(self, order: Order) -> Path:
        return homes.home_in(self.folder, order.key.namespace_id, uuid.UUID(str(order.spec.options["owner"])))

    def _home_asked(self, asked: Arguments) -> Path:
        return homes.home_in(self.folder, uuid.UUID(asked["namespace"]), uuid.UUID(asked["owner"]))

    def _home_there(self, asked: Arguments) -> bool:
        return self._home_asked(asked).is_dir()

    def _home_use(self, asked: Arguments) -> dict[str, Any]:
        found = homes.used(self._home_asked(asked))
        return {"size": found.size, "is_whole": found.is_whole}

    def _home_remove(self, asked: Arguments) -> bool:
        with translated(self.folder):
            return homes.remove(self._home_asked(asked))

    # --- what tasks import -------------------------------------------------------------------------------------------

    def _environment(self, asked: Arguments) -> dict[str, Any]:
        return {"current": self._asked_for(asked).current()}

    def _environment_missing(self, asked: Arguments) -> dict[str, Any]:
        with translated(self.folder):
            names = self._asked_for(asked).missing(asked["digest"], asked["wheels"])
        return {"names": names, "folder": str(self._asked_for(asked).folder(asked["digest"]))}

    def _environment_install(self, asked: Arguments) -> None:
        with translated(self.folder):
            self._asked_for(asked).install(asked["digest"], asked.get("beneath", ""))

    def _asked_for(self, asked: Arguments) -> Environments:
        return self._environments[asked.get("link", TASKS)]

    # --- a run -------------------------------------------------------------------------------------------------------

    def _observe(self, asked: Arguments) -> list[Any]:
        """For each key, in order: None, or what its files say. What is wrong with one run's files costs no other."""
        return [self._seen(key_from_json(data)) for data in asked["keys"]]

    def _seen(self, key: JobKey) -> dict[str, Any] | None:
        try:
            known = self.runs.facts(key)
        except (YardmasterError, OSError) as error:
            return {"tasks": {}, "message": f"Its files cannot be read: {error}", "others": Others().to_json()}
        if known is None:
            return None
        tasks = {task_name(*task): facts.to_json() for task, facts in known.tasks.items()}
        others = self.runs.folder(key).read_others()
        return {"tasks": tasks, "message": known.message, "others": others.to_json()}

    def _tell(self, asked: Arguments) -> None:
        folder = self.runs.folder(key_from_json(asked["key"]))
        with translated(self.folder):
            if folder.exists():
                folder.write_others(folder.read_others().with_news(Others.from_json(asked["others"])))
                folder.wake()
                self.runs.keep_supervised(folder)

    def _release(self, asked: Arguments) -> None:
        self.runs.release(key_from_json(asked["key"]), [Role(role) for role in asked["roles"]])

    def _stop(self, asked: Arguments) -> None:
        self.runs.stop(key_from_json(asked["key"]), timedelta(seconds=float(asked["grace"])))

    def _clean_up(self, asked: Arguments) -> None:
        """Remove this part of the run, and do not make it any more: a request that was sent before may still come."""
        key, part = key_from_json(asked["key"]), str(asked["part"])
        with translated(self.folder), self._claims.locked():
            self._tombstone(key, part).parent.mkdir(mode=0o700, exist_ok=True)
            self._tombstone(key, part).touch(mode=0o600)
        if self._part_there(key) in (None, part):
            self.runs.clean_up(key)
            self._claims.free(key.name)
        self._forget_tombstones()

    def _part_there(self, key: JobKey) -> str | None:
        """Which part of the run is there; None where it cannot be told."""
        with contextlib.suppress(SpecUnreadable):
            order = self.runs.order(key)
            return None if order is None else order.part
        return None

    def _tombstone(self, key: JobKey, part: str) -> Path:
        return self.folder / "removed" / f"{key.name}.{part}"

    def _forget_tombstones(self) -> None:
        """No request is under way for so long."""
        for path in (self.folder / "removed").iterdir():
            with contextlib.suppress(OSError):
                if time.time() - path.stat().st_mtime > _FORGOTTEN_AFTER:
                    path.unlink()

    def _nudge(self, asked: Arguments) -> None:
        self.runs.nudge(key_from_json(asked["key"]), *task_of(asked["task"]))

    def _tail(self, asked: Arguments) -> list[str]:
        lines = self.runs.tail(key_from_json(asked["key"]), *task_of(asked["task"]), int(asked["lines"]))
        kept, size = list[str](), 0
        for line in reversed(lines):
            size += len(line)
            if size > _MOST_TAIL:
                break
            kept.append(line)
        return kept[::-1]


def _total(asked: Arguments) -> Resources:
    """What the machine has, and its entry in the list in place of what is measured."""
    machine = asked["machine"]
    return measure(machine.get("cores"), machine.get("memory"), machine.get("gpus"))


class Conversation:
    """Reads requests until the portal's end is closed, and answers each from a thread."""

    def __init__(self, agent: Agent) -> None:
        self._agent = agent
        self._lock = threading.Lock()
        self._is_watched = False

    def run(self) -> None:
        self._agent.folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        pool = ThreadPoolExecutor(_AT_ONCE)
        with open(0, "rb", closefd=False) as requests:
            for text in requests:
                pool.submit(self._answer, text)
        # What was asked for last is finished; what hangs would keep us for ever.
        pool.shutdown(wait=False, cancel_futures=True)
        ending = threading.Thread(target=pool.shutdown, daemon=True)
        ending.start()
        ending.join(_LAST_PATIENCE)
        os._exit(0)

    def _answer(self, text: bytes) -> None:
        reply: dict[str, Any] = {}
        try:
            asked = wire.message_in(text)
            reply["id"] = asked.get("id")
            if asked["verb"] == "watch":
                self._watch()
                reply["result"] = None
            else:
                reply["result"] = self._agent.verbs[asked["verb"]](asked)
        except YardmasterError as error:
            reply["error"] = wire.error_to_json(error)
        except Exception as error:  # noqa: BLE001 - the portal is told of everything
            sys.stderr.write(traceback.format_exc())
            reply["error"] = {"kind": "unavailable", "message": f"The agent failed: {error!r}", "remedy": ""}
        self._say(reply)

    def _say(self, message: Mapping[str, Any]) -> None:
        with self._lock, contextlib.suppress(OSError):
            data = memoryview(wire.line(message))
            while data:
                data = data[os.write(1, data) :]

    def _watch(self) -> None:
        if not self._is_watched:
            self._is_watched = True
            threading.Thread(target=self._tell_changes, daemon=True).start()

    def _tell_changes(self) -> None:
        for key in self._agent.runs.changes():
            self._say({"changed": [key_to_json(key)]})


if __name__ == "__main__":
    Conversation(Agent(Path(sys.argv[1]))).run()
