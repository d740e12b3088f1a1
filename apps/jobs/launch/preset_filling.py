"""The launch form filled in from a preset: what that says takes the place of what stands there, the rest stays."""

from __future__ import annotations

from dataclasses import dataclass

from apps.accounts.models import User
from apps.jobs.launch.forms import rules_of, with_strategy
from apps.jobs.launch.parts import Values
from apps.jobs.launch.spec_values import values_of_spec
from apps.jobs.models import LaunchPreset
from apps.jobs.presets import presets_offered, spec_of
from yardmaster.errors import SpecRejected


@dataclass(frozen=True)
class Offer:
    """The presets of the form, and which one has just filled it in."""

    presets: list[LaunchPreset]
    used: str = ""


def offer_for(user: User, take: str) -> Offer:
    """`take`: the button that was pressed."""
    found = presets_offered(user)
    used = _pressed(found, take)
    return Offer(found, used.name if used else "")


def with_preset(user: User, values: Values, preset_id: str) -> Values:
    """The form with the preset's values; as it was where that is gone, or its rules have changed."""
    preset = _pressed(presets_offered(user), f"fill:{preset_id}")
    if preset is None:
        return values
    try:
        said = values_of_spec(spec_of(preset.spec))
    except SpecRejected:
        return values
    roles = {role: dict(texts) for role, texts in with_strategy(values, said["strategy"])["roles"].items()}
    for role in rules_of(said["strategy"]):
        roles[role.value] = {**roles[role.value], **said["roles"].get(role.value, {"replicas": "0"})}
    named = {name: said[name] for name in ("image", "max_runtime", "priority_class") if preset.spec.get(name)}
    engine = {"engine": preset.engine} if preset.engine else {}
    return values | {"strategy": said["strategy"], "roles": roles} | named | engine


def _pressed(presets: list[LaunchPreset], take: str) -> LaunchPreset | None:
    return next((one for one in presets if take == f"fill:{one.pk}"), None)
