"""What each engine has, for people who choose one. Asks the engines; one that does not answer is shown as such."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from django.conf import settings

from apps.accounts.models import User
from apps.jobs.engines.configured import engine_named, engine_names, why_not
from apps.jobs.engines.device_quotas import DeviceQuota, device_quotas
from apps.jobs.engines.probes import all_known_of
from apps.jobs.models import EngineProbe
from apps.jobs.state import ledger
from yardmaster.engines.base import Engine, Offers, Probe
from yardmaster.errors import YardmasterError
from yardmaster.job.spec import Resources


@dataclass(frozen=True)
class EngineShown:
    """One engine as this user sees it. Amounts are None where the engine does not answer."""

    name: str
    is_default: bool
    allowed: bool
    message: str = ""
    remedy: str = ""
    total: Resources | None = None
    free: Resources | None = None
    largest_task: Resources | None = None
    tasks_reach_portal: bool | None = None
    """None: it was not tried, or could not be determined."""
    network: EngineProbe | None = None
    """What came of trying whether its network keeps tasks apart. For administrators; None: it was not tried."""
    held: Resources | None = None
    """By the portal's own jobs."""
    nodes: int = 0
    """How many machines it has, where they are counted."""
    devices: Sequence[Device] = ()

    @property
    def network_enforced(self) -> bool | None:
        return None if self.network is None else self.network.is_well


@dataclass(frozen=True)
class Device:
    """A device that the operator named: how many there are, how many are free, and how many jobs here hold."""

    name: str
    label: str
    total: int
    free: int
    held: int
    quotas: Sequence[DeviceQuota] = ()
    """Of the namespaces in which this user may launch; none where they may not launch on the engine."""


def engines_with_quotas(user: User) -> list[EngineShown]:
    """The same as `engines_for`, with what this user's namespaces may hold of the devices, and hold."""
    engines = engines_for(user)
    quotas = device_quotas(user, {device.name for one in engines if one.allowed for device in one.devices})
    return [
        replace(one, devices=[replace(device, quotas=quotas[device.name]) for device in one.devices])
        if one.allowed
        else one
        for one in engines
    ]


def engines_for(user: User) -> list[EngineShown]:
    """Every engine of the settings, by name."""
    return [_shown(user, name) for name in engine_names()]


def _shown(user: User, name: str) -> EngineShown:
    is_default = name == settings.YARDMASTER_DEFAULT_ENGINE
    try:
        refusal = why_not(user, name)
        engine = engine_named(name)
        capacity = engine.capacity()
    except YardmasterError as error:
        return EngineShown(name, is_default, False, error.message, error.remedy)
    message, remedy = ("", "") if refusal is None else (refusal.detail, refusal.remedy)
    probes = all_known_of(name)
    reach = probes.get(Probe.REACH.value)
    if refusal is None and reach is not None and not reach.is_well:
        message, remedy = reach.message, reach.remedy
    reserved = ledger.total_of(ledger.held_on(name))
    free = _less(capacity.free, reserved)
    return EngineShown(
        name=name,
        is_default=is_default,
        allowed=refusal is None,
        message=message,
        remedy=remedy,
        tasks_reach_portal=None if reach is None else reach.is_well,
        network=probes.get(Probe.NETWORK.value) if user.is_staff else None,
        total=capacity.total,
        free=free,
        largest_task=capacity.largest_task,
        held=reserved,
        nodes=len(capacity.nodes),
        devices=_devices(engine, capacity.total, free, reserved),
    )


def _devices(engine: Engine, total: Resources, free: Resources, held: Resources) -> list[Device]:
    named = engine.devices() if isinstance(engine, Offers) else {}
    return [
        Device(name, label, total.extended.get(name, 0), free.extended.get(name, 0), held.extended.get(name, 0))
        for name, label in named.items()
    ]


def _less(free: Resources, held: Resources) -> Resources:
    """What is left; never less than nothing."""
    return Resources(
        cpu=max(0.0, round(free.cpu - held.cpu, 3)),
        memory=max(0, free.memory - held.memory),
        gpus=max(0, free.gpus - held.gpus),
        extended={name: max(0, amount - held.extended.get(name, 0)) for name, amount in free.extended.items()},
    )
