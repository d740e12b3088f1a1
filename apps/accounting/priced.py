"""Use with what it costs, by the prices that were valid on its days."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import datetime
from decimal import Decimal

from django.conf import settings

from apps.accounting.sums import Key, Only
from apps.accounting.use import use
from yardmaster.accounting.amounts import Amounts, hours_of
from yardmaster.accounting.calendar import DAY, begin_of, day_of
from yardmaster.accounting.prices import CENTS, PriceList, cost


def price_list() -> PriceList:
    """That of the settings; empty where nothing is priced."""
    found: PriceList = settings.YARDMASTER_PRICES
    return found


@dataclass
class Use:
    """`cost` is exact; `money` is what is shown of it."""

    amounts: Amounts = field(default_factory=Counter)
    cost: Decimal = Decimal()

    def add(self, other: Use) -> None:
        self.amounts.update(other.amounts)
        self.cost += other.cost

    @property
    def hours(self) -> dict[str, Decimal]:
        return hours_of(self.amounts)

    @property
    def money(self) -> Decimal:
        return self.cost.quantize(CENTS)


def priced_use(
    begin: datetime, end: datetime, by: Iterable[str], only: Only | None = None, step: str = ""
) -> dict[Key, Use]:
    """As `use.use`; once for each list of prices that was valid in the time."""
    by, prices = tuple(by), price_list()
    found: dict[Key, Use] = {}
    for first, last in prices.parts(day_of(begin), day_of(end) + DAY):
        part = use(max(begin, begin_of(first)), min(end, begin_of(last)), by, only, step)
        for key, amounts in part.items():
            found.setdefault(key, Use()).add(Use(amounts, cost(amounts, prices.at(first))))
    return found


def total_of(several: Iterable[Use]) -> Use:
    """All of them together."""
    found = Use()
    for one in several:
        found.add(one)
    return found
