"""An optional part of the contract (`base`): the address that a driver announces to executors of a Spark cluster.

They run elsewhere and connect to the driver. So only tasks that other machines reach can be drivers of theirs.
"""

from __future__ import annotations

from enum import StrEnum
from typing import Protocol, runtime_checkable


class DriverAddress(StrEnum):
    """Where such executors reach a driver."""

    REGISTERED = "registered"
    """At the address that is registered with their cluster: all tasks of the engine are on the portal's machine."""
    OWN = "own"
    """At the address of the task itself: that of its machine, or of its pod."""


@runtime_checkable
class RunsDrivers(Protocol):
    """Optional: an engine whose tasks can be such drivers. None: not as its operator has set it up."""

    driver_address: DriverAddress | None


def driver_address_on(engine: object) -> DriverAddress | None:
    """That of this engine; None: executors elsewhere do not reach its tasks."""
    return engine.driver_address if isinstance(engine, RunsDrivers) else None
