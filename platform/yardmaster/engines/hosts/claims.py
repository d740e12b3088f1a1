"""What of a machine is promised to runs that are not made yet, and what runs hold of it: so that two that are placed at
the same time do not get the same memory.

A claim is a file that names its maker: once that process is gone, or the run is there, it counts no more.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from yardmaster.engines.supervision.facts import Order
from yardmaster.engines.supervision.folder import Layout, RunFolder, read_json, write_json
from yardmaster.engines.supervision.ledger import locked
from yardmaster.engines.supervision.processes import ProcessId, identify
from yardmaster.errors import SpecUnreadable
from yardmaster.job.spec import NOTHING, Resources

Amounts = Mapping[str, Any]
_MOST_CORES, _MOST_MEMORY, _MOST_GPUS = 100_000.0, 1 << 50, 10_000


@dataclass(frozen=True)
class Held:
    """What one task that has not ended takes. `owner` says whose it is: several portals may use a machine."""

    job_id: str
    role: str
    owner: str
    resources: Resources

    def to_json(self) -> list[Any]:
        return [self.job_id, self.role, self.owner, amounts_of(self.resources)]


def amounts_of(resources: Resources) -> dict[str, Any]:
    """As JSON."""
    return {"cpu": resources.cpu, "memory": resources.memory, "gpus": resources.gpus}


def resources_in(amounts: Amounts) -> Resources:
    """Raises `KeyError`, `TypeError`, `ValueError` or `OverflowError` for what are no amounts of a machine."""
    found = Resources(cpu=float(amounts["cpu"]), memory=int(amounts["memory"]), gpus=int(amounts["gpus"]))
    if not (0 <= found.cpu <= _MOST_CORES and 0 <= found.memory <= _MOST_MEMORY and 0 <= found.gpus <= _MOST_GPUS):
        raise ValueError("no amounts of a machine")
    return found


class Claims:
    """The claims on the machine whose runs are in `layout`."""

    def __init__(self, layout: Layout) -> None:
        self._layout = layout
        self._folder = layout.root / "claims"
        self._orders: dict[str, Order] = {}

    def locked(self) -> contextlib.AbstractContextManager[None]:
        """While what is free is looked at and claimed. Raises `OSError`."""
        return locked(self._folder)

    def claim(self, run: str, resources: Resources) -> None:
        """Promise this much to a run of this process's. Raises `OSError`."""
        me = identify(os.getpid())
        assert me is not None  # /proc has an entry for its reader
        maker = [me.pid, me.started, me.boot]
        write_json(self._folder / f"{run}.json", {"maker": maker, "amounts": amounts_of(resources)})

    def free(self, run: str) -> None:
        with contextlib.suppress(FileNotFoundError):
            (self._folder / f"{run}.json").unlink()

    def held(self) -> list[Held]:
        """By every task that has not ended, of every portal."""
        found: list[Held] = []
        for folder in self._folders():
            order = None
            with contextlib.suppress(OSError):  # a run whose files cannot be read holds what cannot be known
                order = self._order(folder)
            for task in order.tasks() if order is not None else []:
                if order is not None and not folder.read_facts(*task).state.phase.is_ended:
                    role = task[0].value
                    found.append(Held(str(order.key.job_id), role, order.owner, order.spec.roles[task[0]].resources))
        return found

    def promised(self, but: str = "") -> Resources:
        """To runs that are not there yet, without `but`."""
        total = NOTHING
        try:
            paths = sorted(self._folder.glob("*.json"))
        except FileNotFoundError:
            return total
        for path in paths:
            data = read_json(path) or {}
            with contextlib.suppress(KeyError, TypeError, ValueError):
                if path.stem == but or (self._layout.runs / path.stem).exists():
                    continue
                if not ProcessId(*data["maker"]).is_alive():
                    path.unlink(missing_ok=True)
                    continue
                total = total + resources_in(data["amounts"])
        return total

    def _folders(self) -> list[RunFolder]:
        try:
            names = sorted(os.listdir(self._layout.runs))
        except FileNotFoundError:
            return []
        self._orders = {name: order for name, order in self._orders.items() if name in names}
        return [RunFolder(self._layout.runs / name) for name in names if not name.startswith(".")]

    def _order(self, folder: RunFolder) -> Order | None:
        """An order never changes, so that each is read once."""
        name = folder.path.name
        if name not in self._orders or not folder.exists():
            self._orders.pop(name, None)
            with contextlib.suppress(SpecUnreadable):
                order = folder.read_order()
                if order is not None:
                    self._orders[name] = order
        return self._orders.get(name)


def free_beside(total: Resources, held: list[Held], promised: Resources) -> Resources:
    """What is left of a machine."""
    taken = sum((one.resources for one in held), promised)
    return Resources(
        cpu=round(max(0.0, total.cpu - taken.cpu), 3),
        memory=max(0, total.memory - taken.memory),
        gpus=max(0, total.gpus - taken.gpus),
    )
