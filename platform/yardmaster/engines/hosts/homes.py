"""On which machine the files of each Jupyter are, and what follows for where it may run.

    homes/<namespace>.<owner>.json   the machine that has the home, written before the home is made; whether it was made

A home is on one machine for good: it goes nowhere else while its files are there. If the portal has no note of it, the
machines are asked.
"""

from __future__ import annotations

import os
import uuid
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from yardmaster.engines.base import HomeUse
from yardmaster.engines.hosts.connection import Links
from yardmaster.engines.hosts.environment import INSTALL_WORKBENCH, NO_WORKBENCH
from yardmaster.engines.hosts.inventory import Host, Inventory, Listed
from yardmaster.engines.hosts.surveying import Survey
from yardmaster.engines.supervision.folder import read_json, write_json
from yardmaster.errors import Unavailable
from yardmaster.ids import JobKey
from yardmaster.job.programs import JUPYTER
from yardmaster.job.spec import TrainingSpec

_MOST_SIZE = 1 << 50
"""Bytes of a home that are believed: namespaces are charged for them."""
Whose = tuple[uuid.UUID, uuid.UUID]
"""The namespace and the owner of a home."""
_GONE = "List it again; if it is gone for good: python manage.py machines --forget {}"


@dataclass(frozen=True)
class Place:
    """`made`: the machine said that it had made the home."""

    machine: str
    made: bool = False


class Homes:
    """`root` is the engine's folder on the portal's disk."""

    def __init__(self, root: Path, inventory: Inventory | Listed, links: Links) -> None:
        self._folder, self._inventory, self._links = root / "homes", inventory, links

    # --- starts ------------------------------------------------------------------------------------------------------

    def able(self, spec: TrainingSpec, key: JobKey, surveys: Collection[Survey]) -> list[Survey]:
        """The machines that may run it: of a Jupyter that has files, theirs; of another, those that have JupyterLab; of
        all else, every one. Raises `Unavailable` where that is none now."""
        if spec.program != JUPYTER:
            return list(surveys)
        place = self._found(key.namespace_id, _owner(spec))
        if place is not None:
            return [self._with_files(place.machine, surveys)]
        found = [one for one in surveys if one.has_workbench and one.away_since is None]
        if not found:
            raise Unavailable("None of the machines that answer has JupyterLab.", remedy=INSTALL_WORKBENCH)
        return found

    def _with_files(self, machine: str, surveys: Iterable[Survey]) -> Survey:
        words = f"The files of this Jupyter are on the machine {machine}"
        found = next((one for one in surveys if one.host.name == machine), None)
        if found is None:
            raise Unavailable(f"{words}, which is not in the list any more.", remedy=_GONE.format(machine))
        if found.node.closed:
            raise Unavailable(
                f"{words}, which is {found.node.closed}.",
                remedy="It starts when the machine takes tasks again." if found.error is None else found.error.remedy,
            )
        if not found.has_workbench:
            remedy = f"Install it: python manage.py machines --install {machine} --workbench"
            raise Unavailable(f"{words}. {NO_WORKBENCH}", remedy=remedy)
        return found

    def take(self, spec: TrainingSpec, key: JobKey, machines: Iterable[str]) -> None:
        """The home of a Jupyter will be on the machine that was chosen. Raises `Unavailable` where another call has
        chosen another meanwhile."""
        if spec.program != JUPYTER:
            return
        (machine,) = machines
        found = self._note(self._path(key.namespace_id, _owner(spec)), Place(machine))
        if found is None or found.machine != machine:
            raise Unavailable("The files of this Jupyter are on another machine.", remedy="It is tried again.")

    def _note(self, path: Path, place: Place) -> Place | None:
        """Write a note where there is none. Returns what is noted then."""
        self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        draft = path.with_name(f".{path.name}.{uuid.uuid4().hex}")
        write_json(draft, {"machine": place.machine, "made": place.made}, durable=True)
        try:
            os.link(draft, path)
        except FileExistsError:
            return self._noted(path)
        finally:
            draft.unlink()
        return place

    def is_kept(self, spec: TrainingSpec, key: JobKey) -> bool:
        """Whether this is a Jupyter that has a home already."""
        place = self._noted(self._path(key.namespace_id, _owner(spec))) if spec.program == JUPYTER else None
        return place is not None and place.made

    def note_made(self, spec: TrainingSpec, key: JobKey) -> None:
        """Its machine has made it."""
        if spec.program == JUPYTER and not self.is_kept(spec, key):
            path = self._path(key.namespace_id, _owner(spec))
            place = self._noted(path)
            if place is not None:
                write_json(path, {"machine": place.machine, "made": True}, durable=True)

    # --- what they take ----------------------------------------------------------------------------------------------

    def use(self, namespace_id: uuid.UUID, owner_id: uuid.UUID) -> HomeUse:
        """See `KeepsHomes.home_use`. Raises `Unavailable` where the machine that has it does not answer."""
        place = self._found(namespace_id, owner_id)
        if place is None:
            return HomeUse(0)
        answer = self._links.call(self._host(place.machine), "home_use", **_asked(namespace_id, owner_id))
        try:
            return HomeUse(min(max(0, int(answer["size"])), _MOST_SIZE), bool(answer["is_whole"]))
        except (KeyError, TypeError, ValueError, OverflowError) as error:
            raise Unavailable(f"{place.machine} sent an invalid answer.") from error

    def remove(self, namespace_id: uuid.UUID, owner_id: uuid.UUID) -> bool:
        """See `KeepsHomes.remove_home`. Raises the same."""
        place = self._found(namespace_id, owner_id)
        if place is None:
            return True
        if self._links.call(self._host(place.machine), "home_remove", **_asked(namespace_id, owner_id)) is not True:
            return False
        self._path(namespace_id, owner_id).unlink(missing_ok=True)
        return True

    def forget_machine(self, machine: str) -> int:
        """Of homes on a machine that is gone for good, know nothing any more. Returns how many there were."""
        whose = self.by_machine().get(machine, [])
        for namespace_id, owner_id in whose:
            self._path(namespace_id, owner_id).unlink(missing_ok=True)
        return len(whose)

    def by_machine(self) -> dict[str, list[Whose]]:
        """Whose homes each machine has, as it is noted, also of machines that are not in the list any more."""
        found: dict[str, list[Whose]] = {}
        for whose, machine in self.machines().items():
            found.setdefault(machine, []).append(whose)
        return found

    def machines(self) -> dict[Whose, str]:
        """The machine of every home that is noted."""
        noted = ((_whose(path), self._noted(path)) for path in sorted(self._folder.glob("*.json")))
        return {whose: place.machine for whose, place in noted if whose is not None and place is not None}

    # --- parts -------------------------------------------------------------------------------------------------------

    def _found(self, namespace_id: uuid.UUID, owner_id: uuid.UUID) -> Place | None:
        """As it is noted; else the machine that has one, which is noted then: the note may have been lost with the
        portal's disk."""
        path = self._path(namespace_id, owner_id)
        noted = self._noted(path)
        if noted is not None:
            return noted
        asked = _asked(namespace_id, owner_id)
        hosts = self._inventory.hosts()
        answers = self._links.call_all({name: (host, "home_there", asked) for name, host in hosts.items()})
        there = next((name for name, answer in answers.items() if answer is True), None)
        return None if there is None else self._note(path, Place(there, made=True))

    def _host(self, machine: str) -> Host:
        host = self._inventory.hosts().get(machine)
        if host is None:
            message = f"The files of this Jupyter are on the machine {machine}, which is not in the list any more."
            raise Unavailable(message, remedy=_GONE.format(machine))
        return host

    def _path(self, namespace_id: uuid.UUID, owner_id: uuid.UUID) -> Path:
        return self._folder / f"{namespace_id}.{owner_id}.json"

    def _noted(self, path: Path) -> Place | None:
        found = read_json(path)
        return None if found is None else Place(str(found.get("machine", "")), bool(found.get("made")))


def _whose(path: Path) -> Whose | None:
    """Of a note, by its name; None where it is none."""
    namespace, _, owner = path.stem.partition(".")
    try:
        return uuid.UUID(namespace), uuid.UUID(owner)
    except ValueError:
        return None


def _owner(spec: TrainingSpec) -> uuid.UUID:
    return uuid.UUID(str(spec.options["owner"]))


def _asked(namespace_id: uuid.UUID, owner_id: uuid.UUID) -> Mapping[str, str]:
    return {"namespace": str(namespace_id), "owner": str(owner_id)}
