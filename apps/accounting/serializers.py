"""What several addresses of the API say of use: hours, and where a budget stands."""

from __future__ import annotations

from typing import Any

from rest_framework import serializers

from apps.accounting.priced import Use, price_list
from yardmaster.accounting.amounts import CPU, GPUS, MEMORY


class HoursSerializer(serializers.Serializer[Any]):
    cpu_hours = serializers.FloatField(help_text="Core-hours held, from reservation to release.")
    memory_gib_hours = serializers.FloatField()
    gpu_hours = serializers.FloatField()
    device_hours = serializers.DictField(child=serializers.FloatField(), help_text="Of other devices, by name.")
    cost = serializers.CharField(allow_null=True, help_text="A decimal number; null where nothing is priced.")


class BudgetLineSerializer(serializers.Serializer[Any]):
    name = serializers.CharField(help_text="The bound: `cpu_hours`, `memory_gib_hours`, `gpu_hours` or `money`.")
    used = serializers.DecimalField(max_digits=30, decimal_places=6)
    limit = serializers.DecimalField(max_digits=30, decimal_places=3)
    percent = serializers.IntegerField()


def hours_data(one: Use) -> dict[str, Any]:
    """The figures of one row, as the API writes them."""
    hours = one.hours
    return {
        "cpu_hours": hours.pop(CPU), "memory_gib_hours": hours.pop(MEMORY), "gpu_hours": hours.pop(GPUS),
        "device_hours": hours, "cost": str(one.money) if price_list() else None,
    }  # fmt: skip
