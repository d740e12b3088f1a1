"""Twenty rounds: somewhere in a job's life one process is killed outright, is started again where `make up` would do
so, and the job ends as if nothing had been.

Which step and which process go together is drawn from a seed, which stands in the tests' names; another seed is another
twenty rounds (YARDMASTER_KILL_SEED). Five of them are run always, the others with the long tests.
"""

from __future__ import annotations

import os
import random
import signal
import uuid
from pathlib import Path

import pytest

from tests.real.portal import WHOLE
from tests.real.scene import SMALL, Scene, kill, until
from yardmaster_runner.exits import CUT_OFF, StoppedEarly

pytestmark = [pytest.mark.slow, pytest.mark.linux, pytest.mark.timeout(300)]

SEED = int(os.environ.get("YARDMASTER_KILL_SEED", "2011"))
ROUNDS = 20
OTHERS = (pytest.mark.long,)
LINES = 100
ENDLESS = 1_000_000

STOPPED_EARLY = f"yardmaster: {StoppedEarly(signal.SIGTERM)}"
SCRIPT = """
import fcntl, sys, time

flags = dict(one[2:].split("=", 1) for one in sys.argv[1:])
task = flags["job_name"] + "-" + flags["task_index"]
trace = flags["trace"] + "/" + task


def note(word):
    with open(trace, "a") as file:
        file.write(word + "\\n")


guard = open(trace + ".lock", "w")
try:
    fcntl.flock(guard, fcntl.LOCK_EX | fcntl.LOCK_NB)
except OSError:
    note("doubled")
note("start")
if task.startswith("ps"):
    print("serving", flush=True)
    while True:
        time.sleep(60)
for number in range(int(flags["lines"])):
    # In one write: print() makes several of it, and a task that is stopped between two leaves a torn last line.
    sys.stdout.write(f"{task} {number}\\n")
    sys.stdout.flush()
    time.sleep(0.012)
note("end")
"""

STEPS = ("queued", "starting", "running", "finishing", "decided", "stopping")
PORTAL = (*WHOLE, "portal")
"""What `make up` starts again; `portal` is all of it at once."""
TASKS = ("runner", "machine")
"""What takes a task with it, so that it runs again; `machine` is everything there is."""
OURS = ("supervisor", *TASKS)
"""What the local engine starts again."""


def drawn() -> list[tuple[str, str]]:
    """Twenty pairs of a step and a process: every step and every process at least twice."""
    dice = random.Random(SEED)
    victims = [*(PORTAL + OURS) * 2, "worker", "runner"][:ROUNDS]
    steps = (list(STEPS) * 4)[:ROUNDS]
    while True:
        dice.shuffle(steps)
        pairs = list(zip(steps, victims, strict=True))
        # Before admission the engine has nothing that could be killed.
        if len(set(pairs)) == ROUNDS and not any(step == "queued" and victim in OURS for step, victim in pairs):
            return pairs


class Trial:
    """One job, watched from the outside."""

    def __init__(self, scene: Scene, version: str, lines: int) -> None:
        self.scene = scene
        self.lines = lines
        self.trace = scene.traces / uuid.uuid4().hex
        self.trace.mkdir()
        self.job = scene.client.jobs.launch(
            scene.spec(
                version,
                strategy="between_graph",
                roles={"worker": {"replicas": 2, **SMALL}, "ps": {"replicas": 1, **SMALL}},
                arguments=[f"--trace={self.trace}", f"--lines={lines}"],
                retries=6,
                grace_period=3,
            )
        )

    def words(self, task: str) -> list[str]:
        """What the task's script has noted over all of its lives."""
        file: Path = self.trace / task
        return file.read_text().split() if file.exists() else []

    def phase(self) -> str:
        return str(self.scene.row(self.job, "phase")[0])

    def reach(self, step: str) -> None:
        """Wait until the job is at this step of its life."""
        if step == "queued":
            return
        until(lambda: self.phase() != "QUEUED", what="admission")
        if step == "starting":
            return
        until(lambda: all("start" in self.words(f"worker-{n}") for n in (0, 1)), what="the workers' start")
        until(lambda: self.phase() != "STARTING", what="the job to run")
        if step == "finishing":
            until(lambda: "end" in self.words("worker-0"), what="a worker's end")
        elif step == "decided":
            until(lambda: self.phase() == "SUCCEEDED", what="the verdict")
        elif step == "stopping":
            until(lambda: self.scene.portal_has_line(self.job, "worker", 0), what="a line at the portal")
            self.scene.client.jobs.stop(self.job.id)

    def strike(self, victim: str, dice: random.Random) -> None:
        """Kill it, and start again what `make up` would."""
        scene, portal = self.scene, self.scene.portal
        if victim in ("supervisor", "machine"):
            for pid in scene.supervisors(self.job):
                kill(pid)
        if victim == "machine":
            for pid in scene.runners(self.job):
                kill(pid)
        if victim == "runner" and (runners := scene.runners(self.job)):
            kill(dice.choice(runners))
        names = WHOLE if victim in ("portal", "machine") else (victim,) if victim in WHOLE else ()
        for name in names:
            portal.kill(name)
        portal.start(*names)

    def assert_tasks_ran_as_they_should(self, *, were_killed: bool) -> None:
        """Never twice at the same time; once each, or once more for each time they were started again."""
        restarts = {(one["role"], one["index"]): one["restarts"] for one in self.scene.client.jobs.tasks(self.job.id)}
        for index in (0, 1):
            words = self.words(f"worker-{index}")
            assert "doubled" not in words
            starts, ends = words.count("start"), words.count("end")
            if not were_killed:
                assert starts <= 1
                assert restarts["worker", index] == 0
            assert starts <= 1 + restarts["worker", index]
            if self.job.phase == "SUCCEEDED":
                assert starts >= ends >= 1
                assert words[-1] == "end"

    def assert_log_is_whole(self, *, were_killed: bool) -> None:
        """Each life of a task counts from 0 without a hole; the last one to the end."""
        for index in (0, 1):
            found = self.scene.lines(self.job, "worker", index)
            lives: list[list[int]] = []
            assert were_killed or CUT_OFF not in found
            for text in found:
                if text == CUT_OFF:
                    continue  # marks where a killed task may have printed more
                if were_killed and text == STOPPED_EARLY:
                    continue  # started again, and stopped before its script began
                task, _, number = text.partition(" ")
                assert task == f"worker-{index}", text
                if number == "0":
                    lives.append([])
                lives[-1].append(int(number))
            assert all(life == list(range(len(life))) for life in lives), found
            assert len(lives) <= (7 if were_killed else 1)
            if self.job.phase == "SUCCEEDED":
                assert len(lives[-1]) == self.lines
        streams = self.scene.client.jobs.streams(self.job.id)
        assert all(stream["ended"] and not stream["gaps"] for stream in streams), streams


@pytest.fixture(scope="module")
def versions() -> dict[str, str]:
    """The script's code version, once it is uploaded."""
    return {}


@pytest.mark.parametrize(
    ("number", "step", "victim"),
    [pytest.param(number, *pair, marks=OTHERS * (number >= ROUNDS // 4)) for number, pair in enumerate(drawn())],
    ids=[f"seed{SEED}-{step}-{victim}" for step, victim in drawn()],
)
def test_a_killed_process_loses_doubles_and_sticks_nothing(
    portal_scene: Scene, versions: dict[str, str], number: int, step: str, victim: str
):
    if "rounds" not in versions:
        versions["rounds"] = portal_scene.put_code({"main.py": SCRIPT}, "rounds")
    trial = Trial(portal_scene, versions["rounds"], ENDLESS if step == "stopping" else LINES)
    trial.reach(step)
    trial.strike(victim, random.Random(SEED + number))

    trial.job = portal_scene.settled(trial.job)
    assert trial.job.phase == ("STOPPED" if step == "stopping" else "SUCCEEDED"), trial.job.message
    portal_scene.assert_nothing_is_left(trial.job)
    trial.assert_tasks_ran_as_they_should(were_killed=victim in TASKS)
    trial.assert_log_is_whole(were_killed=victim in TASKS)


def test_every_step_and_every_process_has_its_turn():
    pairs = drawn()
    assert len(pairs) == len(set(pairs)) == ROUNDS
    assert {step for step, _ in pairs} == set(STEPS)
    assert {victim for _, victim in pairs} == {*PORTAL, *OURS}
