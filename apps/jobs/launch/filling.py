"""The launch form with what is likeliest: the newest code, what to run of it, what its script proposes and has used."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from apps.jobs.launch import choices
from apps.jobs.launch.entry_fields import COMMAND, FILE, of_kind
from apps.jobs.launch.forms import LaunchForm, as_data, with_sizes
from apps.jobs.launch.parts import Values
from apps.jobs.launch.proposals import Proposed, with_proposals
from apps.jobs.state.used_sizes import used_before
from apps.namespaces.models import Namespace
from apps.uploads.versioned.selectors import files_of

IN_CODE = "requirements.txt"


@dataclass(frozen=True)
class Asks:
    """What of the form may be filled in. `fill`: fields that are empty. `sizes`: roles that have the sizes of every new
    form. `proposed`: fields that are still as the code has proposed them; None: the code is not asked."""

    fill: bool
    sizes: bool
    proposed: Proposed | None


class Filled(NamedTuple):
    """The form's values; what of them the code has proposed; sizes that the script used before, by role; the scripts to
    choose from; and whether the code names the packages that it needs."""

    values: Values
    proposed: Proposed
    used: Mapping[str, Any]
    entries: list[str]
    has_requirements: bool


def filled(start: Values, namespace: Namespace, codes: Sequence[choices.Choice], asks: Asks, known: Proposed) -> Filled:
    """The form that begins with `start`. `codes`: what there is to choose from, and what is chosen in it. `known` is
    what was proposed so far."""
    values = dict(start)
    if asks.fill and not values["code"] and (newest := choices.newest_in(codes, namespace.slug)):
        values["code"] = newest.id
    version = next((one.row for one in codes if one.id == values["code"]), None)
    files = [] if version is None else list(files_of(version))
    scripts = choices.scripts_in(one.path for one in files)
    if asks.fill:
        values |= {"entry_point": values["entry_point"] or _entry(values, scripts)}
        values["name"] = values["name"] or next((one.name for one in codes if one.id == values["code"]), "")
    if asks.proposed is not None:
        values, known = with_proposals(files, values, start, asks.proposed)
    used = used_before(namespace, values["code"], values["entry_point"]) if asks.sizes else {}
    entries = of_kind(scripts, _kind(values))
    values = with_sizes(values, {role: one.fits for role, one in used.items()})
    return Filled(values, known, used, entries, any(one.path == IN_CODE for one in files))


def _entry(values: Values, scripts: Sequence[str]) -> str:
    """What this form would most likely run; a notebook only where no one has chosen otherwise."""
    kind = _kind(values)
    if kind == FILE:
        pick = choices.likely_script if values["runs"] else choices.likely_entry
        return pick(scripts, values["strategy"])
    return "" if kind == COMMAND else next(iter(of_kind(scripts, kind)), "")


def _kind(values: Values) -> str:
    return LaunchForm(as_data(values)).kind.value
