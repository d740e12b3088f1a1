"""What use costs: a price per hour and resource, from a day on. Decimal arithmetic alone. Pure.

The price that was valid on a day counts for that day's use; what has none costs nothing.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from decimal import Decimal, InvalidOperation
from itertools import pairwise
from typing import Any

from yardmaster.accounting.amounts import per_hour

CENTS = Decimal("0.01")
MOST_PRICES = 1000


class NotPrices(ValueError):
    """What was given is no list of prices. The message says why."""


@dataclass(frozen=True)
class Valid:
    """The prices per hour by resource, from this day on until the next list."""

    since: date
    prices: Mapping[str, Decimal]


@dataclass(frozen=True)
class PriceList:
    """`lists` in the order of their days. Without any, nothing is priced."""

    currency: str = ""
    lists: Sequence[Valid] = ()

    def __bool__(self) -> bool:
        return bool(self.lists)

    def at(self, day: date) -> Mapping[str, Decimal]:
        """The prices of this day."""
        valid = [one for one in self.lists if one.since <= day]
        return valid[-1].prices if valid else {}

    def parts(self, begin: date, end: date) -> list[tuple[date, date]]:
        """[begin, end) cut where prices change."""
        cuts = [begin, *(one.since for one in self.lists if begin < one.since < end), end]
        return list(pairwise(cuts))


def cost(amounts: Mapping[str, int], prices: Mapping[str, Decimal]) -> Decimal:
    """Exact where the amounts are whole hours; else to 28 digits. Not rounded to cents: sums are."""
    return sum(
        (prices[name] * amount / per_hour(name) for name, amount in amounts.items() if name in prices), Decimal()
    )


def price_list(given: Mapping[str, Any]) -> PriceList:
    """Read `{"currency": "EUR", "prices": [{"from": "2026-01-01", "cpu": "0.03", …}]}`; empty: nothing is priced.
    Raises `NotPrices`."""
    if not given:
        return PriceList()
    if set(given) != {"currency", "prices"} or not isinstance(given["prices"], list):
        raise NotPrices('write {"currency": "EUR", "prices": [{"from": "2026-01-01", "cpu": "0.03"}]}')
    currency = given["currency"]
    if not isinstance(currency, str) or not 1 <= len(currency) <= 8:
        raise NotPrices("currency is a text of 1 to 8 characters, such as EUR")
    lists = sorted(map(_valid, given["prices"][:MOST_PRICES]), key=lambda one: one.since)
    if len({one.since for one in lists}) < len(given["prices"]):
        raise NotPrices('two lists of prices are valid from the same day: give each its own "from"')
    return PriceList(currency, tuple(lists))


def _valid(given: Any) -> Valid:
    if not isinstance(given, dict) or not isinstance(given.get("from"), str):
        raise NotPrices('each list of prices has a "from", such as "2026-01-01"')
    try:
        since = date.fromisoformat(given["from"])
    except ValueError as error:
        raise NotPrices(f'"from": {given["from"]!r} is no day such as "2026-01-01"') from error
    return Valid(since, {name: _price(name, value) for name, value in given.items() if name != "from"})


def _price(name: str, value: Any) -> Decimal:
    """Written as text, so that 0.1 is a tenth and nothing near it."""
    try:
        price = Decimal(value) if isinstance(value, str) else Decimal("NaN")
    except InvalidOperation as error:
        raise NotPrices(f'the price of {name} is {value!r}: write such as "0.03"') from error
    if not price.is_finite() or not 0 <= price < 10**9:
        raise NotPrices(f'the price of {name} is {value!r}: write such as "0.03", in quotes and not below 0')
    return price
