"""One random schedule: two processes of the portal bring jobs forward on one cluster, while requests go wrong, watches
come late, pods end in every way, and others delete what is not theirs. Then it becomes calm, and the truth is counted.

Nothing here has threads or waits: a seed says all. Between any two requests of a verb something else may happen.
"""

from __future__ import annotations

import random
from collections import Counter
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

from tests.contract.engine_harness import ACCESS, SMALL, new_key, spec_of
from tests.fakes.kubernetes_cluster import Cluster
from tests.fakes.kubernetes_store import Object, ObjectKey, Store
from tests.fakes.kubernetes_wire import Wire
from yardmaster.engines.kubernetes import KubernetesEngine
from yardmaster.engines.kubernetes.client.api import Api
from yardmaster.engines.kubernetes.client.errors import Expired
from yardmaster.engines.kubernetes.observe.watching import Watching
from yardmaster.engines.kubernetes.render import names
from yardmaster.errors import YardmasterError
from yardmaster.ids import JobKey, short
from yardmaster.job.spec import Role, RoleSpec, Strategy, TrainingSpec
from yardmaster.job.strategy import leading_task
from yardmaster.lifecycle.phases import ABSENT, Observation, Phase, Wanted
from yardmaster.lifecycle.plan import CleanUp, FreeQuota, Move, Release, Remembered, Restart, Stop, Submit, Wait, plan
from yardmaster.queueing.ledger import Quota

BEGIN = datetime(2027, 1, 4, 12, tzinfo=UTC)
OF_RUNS = ("configmaps", "jobs", "statefulsets", "pods", "secrets")
NOT_THEIRS = ("configmaps", "jobs", "statefulsets", "pods", "pods", "secrets")
LONGEST_CALM = 400
ROUNDS_OF_GARBAGE = 4
"""The owner's belongings, the token's, their pods, and the pods' end."""


class WatchedStore(Store):
    """Notes what is made, and that nobody makes a second pod of a task while the first one lives."""

    def __init__(self) -> None:
        super().__init__()
        self.made: Counter[tuple[str, str]] = Counter()
        self.doubled: list[str] = []

    def write(self, place: ObjectKey, new: Object) -> Object:
        if place[0] in OF_RUNS and place not in self.objects:
            self.made[place[0], new["metadata"]["labels"][names.RUN]] += 1
            pods = (one for other, one in self.objects.items() if other[0] == "pods")
            if place[0] == "pods" and any(_is_same_task(new, one) for one in pods):
                self.doubled.append(place[2])
        return super().write(place, new)


class Row:
    """A job as the portal's database has it. `history` is what really happened to it."""

    def __init__(self, spec: TrainingSpec, key: JobKey) -> None:
        self.key = key
        self.job = Remembered(spec, Phase.STARTING, Wanted.RUN, BEGIN, BEGIN, reserved=frozenset(spec.roles))
        self.reason = ""
        self.is_held = False
        self.history: set[str] = set()
        """Words: `succeeded`, `failed`, `hurt` (others deleted something), `owner deleted`, `stopped`."""

    @property
    def decides(self) -> Role:
        return leading_task(self.job.spec)[0]

    @property
    def is_done(self) -> bool:
        return self.job.cleaned_up_at is not None and not self.job.reserved and self.job.phase.is_final


class WatchingByHand(Watching):
    def start(self) -> None:
        """The schedule says when a watch goes on."""


class Process:
    """One process of the portal: an engine of its own, with watches that go on when they are told to."""

    def __init__(self, schedule: Schedule) -> None:
        self.wire = Wire(schedule.store, schedule.chance, schedule.meanwhile)
        self.schedule, self.beliefs = schedule, 0
        self.ended: dict[JobKey, set[tuple[Role, int]]] = {}
        """Of each run, the tasks that had ended when this process last asked the server."""
        api = Api(self.wire)  # type: ignore[arg-type]
        self.watching = WatchingByHand(api, "yardmaster-")
        self.engine = KubernetesEngine(tasks={"image": "tasks:1"}, api=api, watch=True, watching=self.watching)

    def observe(self, key: JobKey) -> Observation:
        """What the engine says; where it asked nobody, that is held against what this process knows."""
        asked, known = len(self.wire.requests), dict(self.wire.learnt)
        try:
            seen = self.engine.observe([key])[key]
        except YardmasterError:
            self.wire.learnt = known  # what a look that failed found was told to nobody
            raise
        if ("list", "configmaps") in self.wire.requests[asked:]:
            self.ended[key] = _ended(seen)
        else:
            self.beliefs += 1
            self.schedule.odd += [
                f"{key.name}: {one}" for one in (*self._forgotten(key), *self._untrue_ends(key, seen))
            ]
        return seen

    def _untrue_ends(self, key: JobKey, seen: Observation) -> list[str]:
        """What has ended, as this process never heard from the server, nor does the server say so."""
        unheard = _ended(seen) - self.ended.get(key, set())
        if seen.exists and not unheard:
            return []
        truth = self.schedule.truth()[key]
        found = [f"{task} has not ended" for task in unheard - _ended(truth)]
        return [*found, "it is there"] if truth.exists and not seen.exists else found

    def _forgotten(self, key: JobKey) -> list[str]:
        """Objects that this process has seen or written in a later version than its watches have told."""
        namespace, found = f"yardmaster-{short(key.namespace_id)}", []
        for kind, view in self.watching.store.view(namespace, key.name).items():
            for (plural, space, name), version in self.wire.learnt.items():
                if (plural, space) == (f"{kind.lower()}s", namespace):
                    told = view.found.get(name)
                    gone = self.schedule.store.gone.get((plural, space, name), 0)
                    if (int(told["metadata"]["resourceVersion"]) if told else gone) < version:
                        found.append(f"{plural}/{name} is known at {version}")
        return found

    def watch(self, number: int) -> None:
        """One stream of one kind, to its end. After other troubles than 410 a watch's thread would wait."""
        for _ in range(2):
            try:
                self.watching.watches[number].once()
            except Expired:
                continue
            except YardmasterError:
                return
            return


class Schedule:
    """`live_through` it, then `calm_down`, then read `problems`."""

    def __init__(self, seed: int, jobs: int = 2) -> None:
        self.chance = random.Random(seed)
        self.finishes = seed % 2 == 0
        """Whether the portal ends runs as a whole, as it does; else it uses the verbs that keep what there was."""
        self.now = BEGIN
        self.store = WatchedStore()
        self.cluster = Cluster(self.store, lives=False)
        self.is_between = True
        self.odd: list[str] = []
        self.rows = [Row(self._spec(), new_key()) for _ in range(jobs)]
        self.processes = [Process(self) for _ in range(2)]
        self.is_between = False

    def _spec(self) -> TrainingSpec:
        roles = {Role.WORKER: RoleSpec(self.chance.randint(1, 2), SMALL), Role.PS: RoleSpec(1, SMALL)}
        strategy = self.chance.choice((Strategy.BETWEEN_GRAPH, Strategy.PARAMETER_SERVER))
        if strategy is Strategy.PARAMETER_SERVER:
            roles[Role.CHIEF] = RoleSpec(1, SMALL)
        return spec_of(strategy, roles=roles, retries=self.chance.randint(0, 2))

    # --- the storm ---------------------------------------------------------------------------------------------------

    def live_through(self, steps: int) -> None:
        for _ in range(steps):
            self.one_step()

    def one_step(self) -> None:
        deed = self.chance.choices(
            [self.portal_step, self.watch_step, self.cluster.step, self.task_step, self.others_delete, self.people_stop,
             self.time_goes_on, self.server_forgets],
            [10, 6, 4, 2, 0.3, 0.2, 1, 0.3],
        )[0]  # fmt: skip
        deed()

    def meanwhile(self) -> None:
        """Between two requests: now and then, something else."""
        if not self.is_between and self.chance.random() < 0.15:
            self.is_between = True
            self.one_step()
            self.is_between = False

    def watch_step(self) -> None:
        process = self.chance.choice(self.processes)
        for number in range(4):
            if self.chance.random() < 0.5:
                process.watch(number)

    def time_goes_on(self) -> None:
        self.now += timedelta(seconds=self.chance.randint(1, 20))

    def server_forgets(self) -> None:
        self.store.forget_history()

    def people_stop(self) -> None:
        row = self.chance.choice(self.rows)
        row.job = replace(row.job, wanted=Wanted.STOP)
        row.history.add("stopped")

    def others_delete(self) -> None:
        plural = self.chance.choice(NOT_THEIRS)
        found = self.store.find(plural)
        if not found:
            return
        one = self.chance.choice(found)
        self.store.delete(_place(plural, one))
        row = self._row_of(one)
        row.history.add("hurt")

    def task_step(self) -> None:
        """A task begins, ends well or badly, or is evicted."""
        row = self.chance.choice(self.rows)
        self.cluster.let_begin(row.key.name)
        running = [
            one for one in self.store.find("pods", labels=f"{names.RUN}={row.key.name}")
            if one["status"]["phase"] == "Running" and "deletionTimestamp" not in one["metadata"]
        ]  # fmt: skip
        if running:
            self._end(row, self.chance.choice(running))

    def _end(self, row: Row, pod: Object) -> None:
        role, index = pod["metadata"]["labels"][names.ROLE], _index(pod)
        how = self.chance.choices(["succeeds", "fails", "is evicted"], [6, 1, 2])[0]
        if how == "is evicted":
            self.cluster.evict(row.key.name, role, index)
        elif how == "fails":
            row.history.add("failed")
            self.cluster.end(row.key.name, role, index, 1)
        elif role == row.decides.value:
            row.history.add(f"succeeded {index}")
            self.cluster.end(row.key.name, role, index, 0)

    # --- the portal --------------------------------------------------------------------------------------------------

    def portal_step(self) -> None:
        """One process takes one job that nobody has, looks, and does the next step; what fails is done again later."""
        free = [row for row in self.rows if not row.is_held and not row.is_done]
        if not free:
            return
        row, process = self.chance.choice(free), self.chance.choice(self.processes)
        row.is_held = True
        try:
            self.bring_forward(row, process)
        except YardmasterError:
            pass
        finally:
            row.is_held = False

    def bring_forward(self, row: Row, process: Process) -> None:
        engine = process.engine
        seen = ABSENT if row.job.cleaned_up_at else process.observe(row.key)
        step = plan(row.job, seen, self.now)
        match step:
            case Submit():
                engine.shape(row.key.namespace_id, Quota(), ACCESS.portal_url)
                engine.submit(row.job.spec, row.key, ACCESS)
            case Restart():
                engine.restart(row.key)
            case Stop() | Release() if self.finishes:
                engine.finish(row.key)
            case Stop(grace):
                engine.stop(row.key, grace)
            case Release(roles):
                engine.release(row.key, roles)
            case CleanUp():
                engine.clean_up(row.key)
        if self.chance.random() >= 0.1:  # else killed between the deed and its trace
            row.job = replace(row.job, **self._trace(row, step))

    def _trace(self, row: Row, step: Any) -> dict[str, Any]:
        match step:
            case Move(phase, verdict):
                row.reason = verdict.reason if verdict else row.reason
                final = {"decided_at": self.now} if phase.is_final else {}
                return {"phase": phase, "started_at": row.job.started_at or self.now, **final}
            case Stop():
                return {"stop_sent_at": self.now}
            case Release():
                return {"released_at": self.now}
            case FreeQuota(roles):
                return {"reserved": row.job.reserved - roles}
            case CleanUp():
                return {"cleaned_up_at": self.now, "reserved": frozenset()}
            case Wait():
                self.now += timedelta(seconds=1)
        return {}

    # --- the calm ----------------------------------------------------------------------------------------------------

    def calm_down(self) -> None:
        """Nothing goes wrong any more, and the watches catch up."""
        self.is_between = True
        for process in self.processes:
            process.wire.is_calm = True
        for _ in range(3):
            self.cluster.step()
        for process in self.processes:
            for number in range(4):
                process.watch(number)

    def finish(self) -> None:
        """Every task that still runs ends well, and the portal does what is left to do."""
        for _ in range(LONGEST_CALM):
            if all(row.is_done for row in self.rows):
                break
            self.task_step()
            self.cluster.step()
            self.watch_step()
            self.portal_step()
            self.now += timedelta(seconds=5)
        for _ in range(ROUNDS_OF_GARBAGE):
            self.cluster.step()

    def truth(self) -> dict[JobKey, Observation]:
        """As a process sees it that has just begun, and asks the server."""
        wire = Wire(self.store, self.chance)
        wire.is_calm = True
        engine = KubernetesEngine(tasks={"image": "tasks:1"}, api=Api(wire))  # type: ignore[arg-type]
        return dict(engine.observe([row.key for row in self.rows]))

    def problems(self) -> list[str]:
        """What is not as it must be after everything."""
        left = [place for place in self.store.objects if place[0] in OF_RUNS]
        found = self.odd + [f"left: {place}" for place in left] + [f"doubled: {name}" for name in self.store.doubled]
        for row in self.rows:
            found += [f"{row.key.name}: {problem}" for problem in self._problems_of(row)]
        return found

    def _problems_of(self, row: Row) -> list[str]:
        """Verdicts need causes; a run that nobody touched is made once."""
        found, history, phase = [], row.history, row.job.phase
        if not row.is_done:
            found.append(f"not done: {row.job}")
        if phase is Phase.SUCCEEDED and "succeeded 0" not in history:
            found.append("succeeded without a worker 0 that did")
        if phase is Phase.FAILED and not history & {"failed", "hurt"}:
            found.append(f"failed without a cause: {row.reason}")
        if phase is Phase.STOPPED and "stopped" not in history:
            found.append("stopped, and nobody asked")
        if "hurt" not in history and self.store.made["configmaps", row.key.name] > 1:
            found.append("submitted twice")
        return found

    def _row_of(self, found: Object) -> Row:
        return next(row for row in self.rows if row.key.name == found["metadata"]["labels"][names.RUN])


def _ended(seen: Observation) -> set[tuple[Role, int]]:
    return {(task.role, task.index) for task in seen.tasks if task.phase.is_ended}


def _is_same_task(one: Object, other: Object) -> bool:
    """Whether both are the same task, and the other one lives."""
    mine, its = one["metadata"]["labels"], other["metadata"]["labels"]
    same = (mine[names.RUN], mine[names.ROLE], _index(one)) == (its[names.RUN], its[names.ROLE], _index(other))
    lives = other["status"]["phase"] in ("Pending", "Running") and "deletionTimestamp" not in other["metadata"]
    return same and lives


def _index(pod: Object) -> int:
    metadata = pod["metadata"]
    return int(metadata["annotations"].get(names.JOB_INDEX) or metadata["labels"].get(names.SET_INDEX))


def _place(plural: str, found: Object) -> ObjectKey:
    return plural, found["metadata"]["namespace"], found["metadata"]["name"]
