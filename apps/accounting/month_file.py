"""The report of a month as a table: by namespace, with how much of each budget is used; or by namespace and user.

The page and the API give the same file. Not here: what was used (`month_report`).
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import date
from typing import Any

from django.http import HttpResponse

from apps.accounting.month_report import Month
from apps.accounting.priced import Use, price_list
from apps.accounting.report_file import csv_response
from yardmaster.accounting.amounts import CPU, GPUS, MEMORY

HOURS_HEAD = ("cpu_hours", "memory_gib_hours", "gpu_hours", "device_hours", "cost", "currency")
NAMESPACE, USER = "namespace", "user"
TABLES = (NAMESPACE, USER)
"""By namespace, or by namespace and user."""


def month_file(first: date, found: Month, table: str = NAMESPACE) -> HttpResponse:
    """One of `TABLES`, with the total in the last line."""
    if table == USER:
        return csv_response(f"use-{first:%Y-%m}-by-user", _by_user(found))
    return csv_response(f"use-{first:%Y-%m}", _by_namespace(found))


def hours_cells(one: Use) -> list[Any]:
    """The cells under `HOURS_HEAD`."""
    figures = one.hours
    known = [f"{figures.pop(name):f}" for name in (CPU, MEMORY, GPUS)]
    devices = {name: f"{value:f}" for name, value in figures.items()}
    return [*known, devices or "", str(one.money) if price_list() else "", price_list().currency]


def _by_user(found: Month) -> list[Sequence[Any]]:
    lines = [[one.name, one.user, *hours_cells(one.use)] for one in found.pairs]
    return [["namespace", "user", *HOURS_HEAD], *lines, ["total", "", *hours_cells(found.total)]]


def _by_namespace(found: Month) -> list[Sequence[Any]]:
    lines = [
        [one.name, *hours_cells(one.use), one.standing.percent if one.standing.lines else ""]
        for one in found.namespaces
    ]  # fmt: skip
    return [["namespace", *HOURS_HEAD, "budget_percent"], *lines, ["total", *hours_cells(found.total), ""]]
