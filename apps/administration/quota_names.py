"""Which resources of other kinds the engines have: GPU models, MIG slices, RDMA devices, by the names of quotas.

Read from what workers keep of each engine; no engine is asked. Not here: limits of them (`quota_table`, `quota_bulk`).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from apps.jobs.engines.configured import engine_names
from apps.jobs.models import EngineNow
from yardmaster.job.spec_rules import is_extended_name

MOST_SHOWN = 100
"""Names that a page suggests."""


@dataclass(frozen=True)
class Offered:
    """`names`: of all engines. `is_complete`: every engine of the settings has answered at least once."""

    names: tuple[str, ...]
    is_complete: bool

    def unknown_of(self, limits: Mapping[str, Any]) -> list[str]:
        """The names among these limits that no engine has. None of them while an engine has not answered yet. A limit
        that is taken away (None) is not looked at."""
        if not self.is_complete:
            return []
        return sorted(name for name, limit in limits.items() if limit is not None and name not in self.names)


def offered() -> Offered:
    """What engines had when they answered last. One statement."""
    names = engine_names()
    rows = EngineNow.objects.filter(engine__in=names, answered_at__isnull=False).values_list("engine", "total")
    return _offered(names, dict(rows))


def _offered(engines: Iterable[str], totals: Mapping[str, Mapping[str, float]]) -> Offered:
    has = {name for total in totals.values() for name, amount in total.items() if amount and is_extended_name(name)}
    return Offered(tuple(sorted(has)), is_complete=set(engines) <= totals.keys())
