"""Presets of the launch form: made, changed, put in order and removed by administrators, listed for everyone.

What a preset says is checked as a launch checks it, with a stand-in for the code. What it names may be removed later:
then it says so, and is not offered. Not here: who may do this (the views), and filling in the form (`launch`).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from django.db import IntegrityError, transaction
from django.db.models import Max
from django.utils import timezone

from apps.accounts.models import User
from apps.audit.services import record
from apps.errors import Conflict, Invalid, NotFound
from apps.images.models import Image
from apps.images.selectors import images_named
from apps.jobs.engines.configured import engine_names, engines_for
from apps.jobs.models import LaunchPreset
from apps.jobs.models.preset import LONGEST_DESCRIPTION, LONGEST_NAME
from apps.jobs.state.specs import asked_spec
from apps.namespaces.models import PriorityClass
from yardmaster.errors import Problem, SpecRejected
from yardmaster.job.spec import Strategy, TrainingSpec
from yardmaster.job.spec_limits import is_text, shorten
from yardmaster.job.strategy import only_serves

MOST = 50
KEYS = ("strategy", "roles", "image", "max_runtime", "priority_class")
_STAND_IN = {"name": "preset", "code": "00000000-0000-7000-8000-000000000000", "entry_point": "train.py"}
"""What every job needs and no preset says."""


@dataclass(frozen=True)
class PresetFacts:
    """What is said of a preset. `spec` has some of `KEYS`."""

    name: str
    description: str
    engine: str
    spec: Mapping[str, Any]


@dataclass(frozen=True)
class Listed:
    """A preset with what it names and what is not there any more."""

    preset: LaunchPreset
    problems: tuple[Problem, ...]


def preset_create(*, facts: PresetFacts, actor: User) -> LaunchPreset:
    """Add one, as the last. Raises `Invalid` naming the fields, and `Conflict` where there are too many."""
    found = _checked(facts)
    with transaction.atomic():
        _lock()
        if LaunchPreset.objects.count() >= MOST:
            raise Conflict(f"There are at most {MOST} presets.", "too_many_presets", remedy="Remove some.")
        last = LaunchPreset.objects.aggregate(last=Max("position"))["last"]
        row = LaunchPreset(position=0 if last is None else last + 1, **found)
        _save(row, actor)
        record(actor, "preset.create", f"preset:{row.pk}", **_facts(row))
    return row


def preset_change(*, preset: LaunchPreset, facts: PresetFacts, actor: User) -> LaunchPreset:
    """Change what is said of one. Jobs that were launched keep what they have. Raises `Invalid`."""
    found = _checked(facts)
    with transaction.atomic():
        row = LaunchPreset.objects.select_for_update().filter(pk=preset.pk).first()
        if row is None:
            raise NotFound("There is no such preset.")
        before = _facts(row)
        for name, value in found.items():
            setattr(row, name, value)
        _save(row, actor)
        record(actor, "preset.change", f"preset:{row.pk}", before=before, after=_facts(row), name=row.name)
    return row


def preset_move(*, preset: LaunchPreset, to: int, actor: User) -> None:
    """Make it the one with `to` others before it; beyond the last: the last."""
    with transaction.atomic():
        rows = list(_lock())
        before = next((at for at, row in enumerate(rows) if row.pk == preset.pk), None)
        if before is None:
            raise NotFound("There is no such preset.")
        moved = rows.pop(before)
        rows.insert(max(0, to), moved)
        for position, row in enumerate(rows):
            row.position = position
        LaunchPreset.objects.bulk_update(rows, ["position"])
        place = rows.index(moved)
        record(actor, "preset.move", f"preset:{moved.pk}", name=moved.name, position_before=before, position=place)


def preset_remove(*, preset: LaunchPreset, actor: User) -> None:
    with transaction.atomic():
        deleted, _ = LaunchPreset.objects.filter(pk=preset.pk).delete()
        if deleted:
            record(actor, "preset.remove", f"preset:{preset.pk}", **_facts(preset))


def preset_for(preset_id: UUID) -> LaunchPreset:
    """Raises NotFound."""
    found = LaunchPreset.objects.filter(pk=preset_id).first()
    if found is None:
        raise NotFound("There is no such preset.", "unknown_preset")
    return found


def presets_listed() -> list[Listed]:
    """All of them, in order, each with what it names and what is gone. At most four statements."""
    rows = list(LaunchPreset.objects.order_by("position", "pk"))
    images = images_named({name for row in rows for name in _images(row.spec).values()})
    classes = _classes(row.spec for row in rows)
    gone = {
        name for row in rows for name in _images(row.spec).values() if name not in images or not images[name].enabled
    }
    return [Listed(row, tuple(_gone(row.engine, row.spec, gone, classes))) for row in rows]


def presets_offered(user: User) -> list[LaunchPreset]:
    """Those that can be used now, on engines that this user may launch on."""
    listed = [one.preset for one in presets_listed() if not one.problems]
    engines = set(engines_for(user)) if any(one.engine for one in listed) else set()
    return [one for one in listed if not one.engine or one.engine in engines]


def spec_of(spec: Mapping[str, Any]) -> TrainingSpec:
    """What a preset says as a specification, with a stand-in for the code. Raises `SpecRejected`."""
    serves = str(spec.get("strategy")) in {one.value for one in Strategy if only_serves(one)}
    stand_in = {"name": _STAND_IN["name"]} if serves else _STAND_IN
    return asked_spec({**stand_in, **spec})


def _checked(facts: PresetFacts) -> dict[str, Any]:
    name, description = facts.name.strip(), facts.description.strip()
    problems = []
    if not name or len(name) > LONGEST_NAME or not is_text(name):
        message = f"A name has 1 to {LONGEST_NAME} characters."
        problems.append(Problem("name", "invalid", message, "Choose something like Small.", shorten(name)))
    if len(description) > LONGEST_DESCRIPTION or not is_text(description):
        message = f"A description has at most {LONGEST_DESCRIPTION} characters."
        problems.append(Problem("description", "too_long", message, "Shorten it.", shorten(description)))
    for key in facts.spec:
        if key not in KEYS:
            problems.append(Problem(shorten(str(key)), "unknown", f"A preset has {', '.join(KEYS)}.", "Remove it."))
    try:
        spec_of({key: value for key, value in facts.spec.items() if key in KEYS})
    except SpecRejected as error:
        problems += error.problems
    else:
        problems += _gone(facts.engine, facts.spec, _gone_images(facts.spec), _classes([facts.spec]))
    if problems:
        raise Invalid(problems)
    return {"name": name, "description": description, "engine": facts.engine, "spec": dict(facts.spec)}


def _gone(engine: str, spec: Mapping[str, Any], images: set[str], classes: set[str]) -> Iterable[Problem]:
    """What it names and what is not there. `images`: those that are gone; `classes`: those that are there."""
    if engine and engine not in engine_names():
        message = "The portal has no engine of this name."
        yield Problem("engine", "unknown_engine", message, f"Use one of: {', '.join(engine_names())}.", engine)
    for field, name in _images(spec).items():
        if name in images:
            message = "The catalogue has no such image that new jobs may use."
            yield Problem(field, "unknown_image", message, "Choose another, or add it to the catalogue.", shorten(name))
    if (named := str(spec.get("priority_class") or "")) and named not in classes:
        message = "There is no priority class of this name."
        yield Problem("priority_class", "unknown_class", message, "Choose another, or add it.", shorten(named))


def _images(spec: Mapping[str, Any]) -> dict[str, str]:
    """The images that it names, by field."""
    named = {f"roles.{role}.image": one.get("image") for role, one in (spec.get("roles") or {}).items()}
    return {field: name for field, name in ({"image": spec.get("image")} | named).items() if name}


def _gone_images(spec: Mapping[str, Any]) -> set[str]:
    known = images_named(set(_images(spec).values()))
    return {name for name in _images(spec).values() if not _is_there(known.get(name))}


def _is_there(image: Image | None) -> bool:
    return image is not None and image.enabled


def _classes(specs: Iterable[Mapping[str, Any]]) -> set[str]:
    """Of the classes that these name, those that there are."""
    named = {name for one in specs if (name := one.get("priority_class"))}
    return set(PriorityClass.objects.filter(name__in=named).values_list("name", flat=True)) if named else set()


def _lock() -> Iterable[LaunchPreset]:
    return LaunchPreset.objects.select_for_update().order_by("position", "pk")


def _save(row: LaunchPreset, actor: User) -> None:
    row.changed_at, row.changed_by = timezone.now(), actor
    try:
        with transaction.atomic():
            row.save()
    except IntegrityError as error:
        message = "There is a preset of this name."
        raise Invalid([Problem("name", "unique", message, "Choose another name.", row.name)]) from error


def _facts(row: LaunchPreset) -> dict[str, Any]:
    return {"name": row.name, "description": row.description, "engine": row.engine, "spec": row.spec}
