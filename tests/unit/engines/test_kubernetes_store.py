"""What watches told, and when it may be believed: however late, doubled and out of order it comes, nothing that was
seen or done is unseen again, and in the end the store says what the server says.
"""

from __future__ import annotations

import random
from typing import Any

import pytest

from tests.unit.engines.kubernetes_objects import KEY, OPTIONS
from yardmaster.engines.kubernetes.client.errors import Expired
from yardmaster.engines.kubernetes.client.objects import version_of
from yardmaster.engines.kubernetes.observe.basis import Basis, Memory, ended_in, is_behind, may_be_believed
from yardmaster.engines.kubernetes.observe.store import KINDS, RunStore
from yardmaster.engines.kubernetes.render import names
from yardmaster.errors import Unavailable
from yardmaster.job.spec import Role
from yardmaster.lifecycle.phases import ABSENT, Observation, TaskPhase, TaskState

SPACE = names.namespace_name(KEY.namespace_id, OPTIONS)
Raw = dict[str, Any]
DEEDS = ["change"] * 2 + ["tell"] * 5 + ["vouch", "list", "write"] + ["observe"] * 3


def thing(name: str, version: int, **more: Any) -> Raw:
    metadata = {"name": name, "namespace": SPACE, "resourceVersion": str(version), "labels": names.labels(KEY)}
    return {"metadata": metadata, **more}


def store() -> RunStore:
    return RunStore(OPTIONS.namespace_prefix)


def versions(store: RunStore, kind: str = "Pod") -> dict[str, int]:
    found = store.view(SPACE, KEY.name)[kind].found
    return {name: int(one["metadata"]["resourceVersion"]) for name, one in found.items()}


class Server:
    """One run's objects on a server, and what its watches have still to tell."""

    def __init__(self, chance: random.Random) -> None:
        self.chance = chance
        self.version = 0
        self.now: dict[str, dict[str, int]] = {kind: {} for kind in KINDS}
        self.gone: dict[tuple[str, str], int] = {}
        self.told: dict[str, list[tuple[str, Raw]]] = {kind: [] for kind in KINDS}
        self.untold: dict[str, list[tuple[str, Raw]]] = {kind: [] for kind in KINDS}

    def change(self) -> None:
        """Something is made, changed or deleted."""
        kind, name = self.chance.choice(KINDS), self.chance.choice("abc")
        self.version += 1
        if name in self.now[kind] and self.chance.random() < 0.4:
            del self.now[kind][name]
            self.gone[kind, name] = self.version
            happened = "DELETED"
        else:
            happened = "MODIFIED" if name in self.now[kind] else "ADDED"
            self.now[kind][name] = self.version
        self.untold[kind].append((happened, thing(name, self.version)))

    def tell(self, store: RunStore) -> None:
        """One event of some kind: of those that are due any one, or one that was told before."""
        kind = self.chance.choice(KINDS)
        if self.untold[kind] and self.chance.random() < 0.8:
            event = self.untold[kind].pop(self.chance.randrange(len(self.untold[kind])))
            self.told[kind].append(event)
            store.take(kind, *event)
        elif self.told[kind]:
            store.take(kind, *self.chance.choice(self.told[kind]))

    def vouch(self, store: RunStore) -> None:
        """A bookmark of a kind that is told to its end."""
        kind = self.chance.choice(KINDS)
        if not self.untold[kind]:
            store.vouch(kind, str(self.version))

    def relist(self, store: RunStore) -> None:
        """What was under way is told afterwards all the same."""
        kind = self.chance.choice(KINDS)
        store.replace(kind, [thing(*one) for one in self.now[kind].items()], str(self.version))

    def look(self) -> Basis:
        return Basis(
            {kind: dict(found) for kind, found in self.now.items()}, dict.fromkeys(KINDS, self.version), frozenset()
        )


def test_nothing_that_was_seen_or_done_is_unseen_again():
    believed = [times_believed(random.Random(seed)) for seed in range(300)]
    assert sum(believed) > 3 * len(believed)


def times_believed(chance: random.Random) -> int:
    """Live through a random history, and hold every view that may be believed against all that was known before."""
    server, mine, memory = Server(chance), store(), Memory()
    floor: dict[tuple[str, str], int] = {}
    believed = 0
    for _ in range(300):
        deed = chance.choice(DEEDS)
        if deed == "change":
            server.change()
        elif deed == "tell":
            server.tell(mine)
        elif deed == "vouch":
            server.vouch(mine)
        elif deed == "list" and chance.random() < 0.2:
            server.relist(mine)
        elif deed == "write":
            server.change()
            memory.wrote(KEY)
            floor.update(floor_of(server))
        elif deed == "observe":
            basis, view = memory.basis(KEY), mine.view(SPACE, KEY.name)
            if basis is None or any(is_behind(view[kind], basis, kind) for kind in KINDS) or chance.random() < 0.1:
                memory.remember(KEY, server.look(), memory.now())
                floor.update(floor_of(server))
                continue
            believed += 1
            for kind in KINDS:
                seen = versions(mine, kind)
                for (known, name), version in floor.items():
                    if known == kind:
                        assert seen.get(name, server.gone.get((kind, name), -1)) >= version, (kind, name)
                floor.update({(kind, name): version for name, version in seen.items()})
    return believed


def floor_of(server: Server) -> dict[tuple[str, str], int]:
    """What is known for certain after a look at the server: of each object its version, or the one at which it went."""
    living = {(kind, name): version for kind, found in server.now.items() for name, version in found.items()}
    return {**server.gone, **living}


@pytest.mark.parametrize("seed", range(50))
def test_in_the_end_the_store_says_what_the_server_says(seed: int):
    chance = random.Random(seed)
    server, mine = Server(chance), store()
    for _ in range(100):
        chance.choice([server.change, server.change, lambda: server.tell(mine), lambda: server.vouch(mine)])()
    while any(server.untold.values()):
        server.tell(mine)
    assert {kind: versions(mine, kind) for kind in KINDS} == server.now
    basis = server.look()
    assert not any(is_behind(one, basis, kind) for kind, one in mine.view(SPACE, KEY.name).items())


# --- single steps ----------------------------------------------------------------------------------------------------


def test_a_late_event_of_what_is_gone_does_not_bring_it_back():
    mine = store()
    mine.take("Pod", "ADDED", thing("a", 5))
    mine.take("Pod", "DELETED", thing("a", 7))
    assert mine.take("Pod", "MODIFIED", thing("a", 6)) is None
    mine.vouch("Pod", "8")
    assert mine.take("Pod", "MODIFIED", thing("a", 6)) is None
    assert versions(mine) == {}


def test_what_was_made_anew_under_the_same_name_is_there():
    mine = store()
    mine.take("Pod", "ADDED", thing("a", 9))
    mine.take("Pod", "DELETED", thing("a", 7))
    assert versions(mine) == {"a": 9}


def test_only_news_are_told():
    mine = store()
    assert mine.take("Job", "ADDED", thing("a", 5)) == KEY
    assert mine.take("Job", "ADDED", thing("a", 5)) is None
    assert mine.runs() == {KEY}


def test_what_belongs_to_others_is_not_kept():
    mine, foreign = store(), thing("a", 5)
    foreign["metadata"]["namespace"] = "another-portal"
    assert mine.take("Pod", "ADDED", foreign) is None
    assert mine.take("Pod", "ADDED", {"metadata": {"name": "b", "resourceVersion": "6"}}) is None
    assert mine.runs() == set()


def test_what_nobody_reads_is_not_kept():
    mine, pod = store(), thing("a", 5, spec={"nodeName": "n", "containers": ["large"]}, status={"phase": "Running"})
    pod["metadata"]["managedFields"] = ["larger"]
    mine.take("Pod", "ADDED", pod)
    kept = mine.view(SPACE, KEY.name)["Pod"].found["a"]
    assert (kept["spec"], kept["status"]) == ({"nodeName": "n"}, {"phase": "Running"})
    assert "managedFields" not in kept["metadata"]


def test_a_history_that_went_back_is_found_out():
    mine = store()
    mine.vouch("Pod", "10")
    with pytest.raises(Expired, match="went back from 10 to 9"):
        mine.vouch("Pod", "9")
    mine.replace("Pod", [thing("a", 3)], "9")
    assert versions(mine) == {"a": 3}


def test_versions_that_are_no_numbers_are_not_compared():
    with pytest.raises(Unavailable, match="no numbers"):
        version_of("abc")


def test_a_run_that_is_absent_and_a_task_that_has_ended_want_a_look():
    basis = Basis({kind: {} for kind in KINDS}, dict.fromkeys(KINDS, 5), frozenset())
    mine = store()
    for kind in KINDS:
        mine.vouch(kind, "5")
    view = mine.view(SPACE, KEY.name)
    runs = Observation(True, (TaskState(Role.WORKER, 0, TaskPhase.RUNNING),))
    ends = Observation(True, (TaskState(Role.WORKER, 0, TaskPhase.FAILED),))
    assert may_be_believed(view, runs, basis)
    assert not may_be_believed(view, ABSENT, basis)
    assert not may_be_believed(view, ends, basis)
    assert may_be_believed(view, ends, Basis(basis.versions, basis.listed_at, ended_in(ends)))


def test_a_look_that_began_before_a_write_says_nothing_after_it():
    memory, basis = Memory(), Basis({}, {}, frozenset())
    early = memory.now()
    memory.wrote(KEY)
    memory.remember(KEY, basis, early)
    assert memory.basis(KEY) is None
    memory.remember(KEY, basis, memory.now())
    assert memory.basis(KEY) is basis


def test_an_earlier_look_that_ends_later_does_not_count():
    memory, old, new = Memory(), Basis({}, {}, frozenset()), Basis({}, {}, frozenset({(Role.PS, 0)}))
    early, late = memory.now(), memory.now()
    memory.remember(KEY, new, late)
    memory.remember(KEY, old, early)
    assert memory.basis(KEY) is new


def test_who_is_forgotten_is_looked_at_anew():
    memory, basis = Memory(most=1), Basis({}, {}, frozenset())
    other = type(KEY)(KEY.namespace_id, KEY.job_id, 2)
    early = memory.now()
    memory.wrote(KEY)
    memory.remember(other, basis, memory.now())
    memory.remember(KEY, basis, early)
    assert memory.basis(KEY) is None
