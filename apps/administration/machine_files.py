"""Whose files lie on the machines of the engine `hosts`: the homes of Jupyters, as the engine's notes say."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from apps.accounts.models import User
from apps.namespaces.models import Namespace
from yardmaster.quantity import some_of

if TYPE_CHECKING:
    from yardmaster.engines.hosts import HostsEngine

MOST_NAMED = 10
"""In a sentence; the page and the API name all."""
_GONE = "(removed)"


@dataclass(frozen=True)
class KeptFiles:
    """The files of one user's Jupyters in one namespace, by short names."""

    owner: str
    namespace: str

    def __str__(self) -> str:
        return f"{self.owner} in {self.namespace}"


def files_by_machine(engine: HostsEngine) -> Mapping[str, tuple[KeptFiles, ...]]:
    """Those on each machine that has some, also on machines that are not in the list any more, in order. Two
    statements, or none where no machine has any."""
    found = engine.homes.by_machine()
    if not found:
        return {}
    pairs = {pair for some in found.values() for pair in some}
    spaces = dict(Namespace.objects.filter(pk__in={one for one, _ in pairs}).values_list("pk", "slug"))
    owners = dict(User.objects.filter(pk__in={one for _, one in pairs}).values_list("pk", "username"))
    return {
        machine: tuple(
            sorted(
                (KeptFiles(owners.get(owner, _GONE), spaces.get(space, _GONE)) for space, owner in some),
                key=str,
            )
        )
        for machine, some in found.items()
    }


def named(files: tuple[KeptFiles, ...]) -> str:
    """`ada in vision, bo in speech and 3 more`."""
    return some_of(files, MOST_NAMED)
