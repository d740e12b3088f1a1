"""Machines that answer as agents do, in memory, and the connections to them: for what real ones cannot be made to do at
the right moment, such as answering nonsense, or falling silent between two requests.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from yardmaster.engines.hosts import HostsEngine
from yardmaster.engines.hosts.connection import Away, Call
from yardmaster.engines.hosts.inventory import Host
from yardmaster.engines.supervision.facts import Facts, Order, Others, Task, fresh, key_from_json, task_name, task_of
from yardmaster.errors import YardmasterError
from yardmaster.lifecycle.phases import TaskPhase

TOTAL = {"cpu": 0.7, "memory": 8 << 30, "gpus": 0}


@dataclass
class FakeMachine:
    """Has its parts of runs by name of the run. `answers` stands in for the answer of a verb, or raises in its place;
    `after` is called once a verb was done."""

    orders: dict[str, Order] = field(default_factory=dict)
    facts: dict[str, dict[Task, Facts]] = field(default_factory=dict)
    heard: dict[str, Others] = field(default_factory=dict)
    removed: list[str] = field(default_factory=list)
    homes: set[str] = field(default_factory=set)
    """Owners of the homes of Jupyters."""
    kept: list[bool] = field(default_factory=list)
    """Of each submission, whether a home was to be there."""
    asked: list[str] = field(default_factory=list)
    answers: dict[str, Callable[[], Any]] = field(default_factory=dict)
    after: dict[str, Callable[[], Any]] = field(default_factory=dict)
    is_silent: bool = False

    def do(self, verb: str, asked: Mapping[str, Any]) -> Any:
        if self.is_silent:
            raise Away("The machine does not answer: No route to host.")
        self.asked.append(verb)
        if verb in self.answers:
            return self.answers[verb]()
        answer = getattr(self, f"_{verb}")(asked)
        if verb in self.after:
            self.after[verb]()
        return answer

    def _capacity(self, asked: Mapping[str, Any]) -> Any:
        held = []
        for run, order in self.orders.items():
            for task, facts in self.facts[run].items():
                if not facts.state.phase.is_ended:
                    size = order.spec.roles[task[0]].resources
                    amounts = {"cpu": size.cpu, "memory": size.memory, "gpus": size.gpus}
                    held.append([str(order.key.job_id), task[0].value, order.owner, amounts])
        nothing = {"cpu": 0, "memory": 0, "gpus": 0}
        return {"total": TOTAL, "held": held, "promised": nothing, "environment": ""}

    def _claim(self, asked: Mapping[str, Any]) -> Any:
        return {"ports": {task: 2000 + at for at, task in enumerate(asked["with_ports"])}, "gpus": {}}

    def _unclaim(self, asked: Mapping[str, Any]) -> None: ...

    def _submit(self, asked: Mapping[str, Any]) -> None:
        order = Order.from_json(asked["order"])
        known = {task_of(name): Facts.from_json(*task_of(name), one) for name, one in asked["facts"].items()}
        self.kept.append(bool(asked.get("home_kept")))
        if "owner" in order.spec.options:
            self.homes.add(str(order.spec.options["owner"]))
        if order.key.name not in self.orders:
            self.orders[order.key.name] = order
            begun = {task: known.get(task, fresh(*task)) for task in order.tasks()}
            self.facts[order.key.name] = {
                task: one if one.state.phase.is_ended else one.with_state(phase=TaskPhase.RUNNING)
                for task, one in begun.items()
            }

    def _observe(self, asked: Mapping[str, Any]) -> Any:
        runs = [f"{_run(key)}" for key in asked["keys"]]
        return [self._described(run) if run in self.orders else None for run in runs]

    def _described(self, run: str) -> dict[str, Any]:
        tasks = {task_name(*task): facts.to_json() for task, facts in self.facts[run].items()}
        return {"tasks": tasks, "message": "", "others": self.heard.get(run, Others()).to_json()}

    def _tell(self, asked: Mapping[str, Any]) -> None:
        run = _run(asked["key"])
        self.heard[run] = self.heard.get(run, Others()).with_news(Others.from_json(asked["others"]))

    def _clean_up(self, asked: Mapping[str, Any]) -> None:
        run = _run(asked["key"])
        self.removed.append(asked["part"])
        if run in self.orders and self.orders[run].part == asked["part"]:
            del self.orders[run]

    def _home_there(self, asked: Mapping[str, Any]) -> bool:
        return asked["owner"] in self.homes

    def _home_use(self, asked: Mapping[str, Any]) -> Any:
        return {"size": 7 if asked["owner"] in self.homes else 0, "is_whole": True}

    def _home_remove(self, asked: Mapping[str, Any]) -> bool:
        self.homes.discard(asked["owner"])
        return True

    def _release(self, asked: Mapping[str, Any]) -> None: ...

    def _stop(self, asked: Mapping[str, Any]) -> None: ...


def _run(key: list[Any]) -> str:
    return key_from_json(key).name


class FakeLinks:
    """What `Links` has, to machines in memory."""

    def __init__(self, machines: Mapping[str, FakeMachine]) -> None:
        self.machines = machines

    def call(self, host: Host, verb: str, **arguments: Any) -> Any:
        return self.machines[host.name].do(verb, arguments)

    def call_all(self, calls: Mapping[Hashable, Call]) -> dict[Hashable, Any]:
        found: dict[Hashable, Any] = {}
        for one, (host, verb, arguments) in calls.items():
            try:
                found[one] = self.call(host, verb, **arguments)
            except YardmasterError as error:
                found[one] = error
        return found

    def is_connected(self, machine: str) -> bool:
        return not self.machines[machine].is_silent

    def link(self, machine: str) -> object:
        return self.machines[machine]

    def offset(self, machine: str) -> float:
        return 0.0

    def close(self) -> None: ...


class Park:
    """Three machines, `a`, `b` and `c`, each with space for two tasks, and an engine that has them."""

    def __init__(self, folder: Path, **options: Any) -> None:
        self.machines = {name: FakeMachine() for name in "abc"}
        self.file = folder / "machines.toml"
        self.list_all()
        self.engine = HostsEngine(folder / "hosts", self.file, owner="us", command=["/bin/true"], **options)
        links = FakeLinks(self.machines)
        self.engine.links = links  # type: ignore[assignment]
        for part in (self.engine._surveyor, self.engine._observer, self.engine._submitter, self.engine.homes):
            part._links = links  # type: ignore[assignment]

    def list_all(self, *but: str) -> None:
        """The file lists all machines, without these."""
        entries = [
            f'[[machine]]\nname = "{name}"\naddress = "10.0.0.{number}"\nuser = "u"\n'
            for number, name in enumerate("abc", 1)
            if name not in but
        ]
        self.file.write_text("".join(entries) + "# " + "x" * len(but) + "\n")

    def orders(self) -> dict[str, set[str]]:
        """The tasks that each machine has."""
        return {
            name: {task_name(*task) for order in one.orders.values() for task in order.tasks()}
            for name, one in self.machines.items()
            if one.orders
        }

    def end(self, run: str, task: Task, phase: TaskPhase) -> None:
        for one in self.machines.values():
            if task in one.facts.get(run, {}):
                facts = one.facts[run][task]
                one.facts[run][task] = replace(facts.with_state(phase=phase), leader=None)
