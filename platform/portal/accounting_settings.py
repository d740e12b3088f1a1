"""Budgets and prices, from the environment. Not here: the budgets that namespaces have (that is data)."""

from __future__ import annotations

import json
from datetime import timedelta
from decimal import Decimal, InvalidOperation
from typing import Any

from django.core.exceptions import ImproperlyConfigured

from portal import env
from yardmaster.accounting.budgets import CPU_HOURS, GPU_HOURS, MEMORY_HOURS, MONEY, SPENT
from yardmaster.accounting.prices import NotPrices, PriceList, price_list

_MOST = Decimal(10) ** 11


def accounting() -> tuple[PriceList, dict[str, Decimal | None], tuple[int, ...], timedelta]:
    """The prices, the budget of namespaces without one of their own, the percents at which to warn, and after how long
    without progress parameter servers count as idle."""
    budget = {
        CPU_HOURS: _amount("YARDMASTER_DEFAULT_BUDGET_CPU_HOURS", env.text("YARDMASTER_DEFAULT_BUDGET_CPU_HOURS")),
        MEMORY_HOURS: _amount(
            "YARDMASTER_DEFAULT_BUDGET_MEMORY_HOURS", env.text("YARDMASTER_DEFAULT_BUDGET_MEMORY_HOURS")
        ),
        GPU_HOURS: _amount("YARDMASTER_DEFAULT_BUDGET_GPU_HOURS", env.text("YARDMASTER_DEFAULT_BUDGET_GPU_HOURS")),
        MONEY: _amount("YARDMASTER_DEFAULT_BUDGET_MONEY", env.text("YARDMASTER_DEFAULT_BUDGET_MONEY")),
    }
    idle = timedelta(seconds=env.number("YARDMASTER_IDLE_SERVERS_AFTER", 3_600, least=60))
    return _prices(env.table("YARDMASTER_PRICES")), budget, _levels(env.words("YARDMASTER_BUDGET_WARNINGS", "80")), idle


def _prices(given: dict[str, Any]) -> PriceList:
    try:
        return price_list(given)
    except NotPrices as error:
        raise ImproperlyConfigured(f"YARDMASTER_PRICES: {error}.") from error


def _amount(name: str, value: str) -> Decimal | None:
    """Unset: no limit."""
    if not value:
        return None
    try:
        found = Decimal(value)
    except InvalidOperation as error:
        raise ImproperlyConfigured(f"{name}={value!r} is no number, such as 100 or 0.5.") from error
    if not found.is_finite() or not 0 <= found < _MOST:
        raise ImproperlyConfigured(f"{name}={value!r} is not between 0 and {_MOST}: unset it for no limit.")
    return found


def _levels(words: list[str]) -> tuple[int, ...]:
    if not all(word.isascii() and word.isdigit() and 0 < int(word) < SPENT for word in words):
        raise ImproperlyConfigured(
            f"YARDMASTER_BUDGET_WARNINGS={json.dumps(words)}: write percents between 1 and 99, such as 50,80."
        )
    return tuple(sorted({int(word) for word in words}))
