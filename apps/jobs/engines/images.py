"""Which image each task of a job runs in: found in the catalogue, checked, and pinned at a launch, a check and a retry.

Not here: the catalogue (`apps.images`), and running anything in an image (the engines).
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass, replace

from apps.images.models import Image
from apps.images.selectors import images_named, may_use
from apps.jobs.engines.configured import engine_named, engine_names
from apps.namespaces.models import Namespace
from yardmaster.code.surroundings import OWN_IMAGE, ImageFacts
from yardmaster.engines.base import Engine, RunsImages
from yardmaster.errors import Problem, SpecRejected, YardmasterError
from yardmaster.job.image_rules import image_fields
from yardmaster.job.spec import Role, TrainingSpec
from yardmaster.job.spec_limits import shorten
from yardmaster.queueing.resources import asks_for_one


@dataclass(frozen=True)
class Pinned:
    """The specification with what its images are; what is wrong with those; and what a check of the code is to know of
    them all together."""

    spec: TrainingSpec
    problems: tuple[Problem, ...] = ()
    facts: ImageFacts = OWN_IMAGE


def runs_images(engine: Engine) -> bool:
    """Whether tasks on this engine can run in images of the catalogue."""
    return isinstance(engine, RunsImages) and engine.runs_images()


def engines_with_images() -> list[str]:
    """Those that can be made now."""
    found = []
    for name in engine_names():
        try:
            if runs_images(engine_named(name)):
                found.append(name)
        except YardmasterError:
            continue
    return found


def images_pin(namespace: Namespace, spec: TrainingSpec, engine: str) -> Pinned:
    """What the specification's images are now. What it had pinned before does not count."""
    fields = image_fields(spec)
    if not fields:
        return Pinned(replace(spec, pinned_images=()))
    if not runs_images(engine_named(engine)):
        return Pinned(spec, tuple(_not_run(field, name, engine) for field, name in fields.items()))
    images = images_named(set(fields.values()))
    problems = [one for field, name in fields.items() for one in _problems(field, name, images, namespace, spec)]
    if problems:
        return Pinned(spec, tuple(problems))
    pinned = replace(spec, pinned_images=tuple(images[name].pinned for name in sorted(images)))
    return Pinned(pinned, facts=_facts(pinned, images))


def spec_pinned(namespace: Namespace, spec: TrainingSpec, engine: str) -> TrainingSpec:
    """The specification with its images pinned. Raises `SpecRejected` with what is wrong with them."""
    found = images_pin(namespace, spec, engine)
    if found.problems:
        raise SpecRejected(found.problems)
    return found.spec


def _not_run(field: str, name: str, engine: str) -> Problem:
    others = ", ".join(engines_with_images())
    message = f"The engine {engine} runs no images: its tasks run in the Python of its own installation."
    remedy = f"Remove {field}, or launch on an engine that runs images" + (f": {others}." if others else ".")
    return Problem(field, "images_not_run", message, remedy, shorten(name))


def _problems(
    field: str, name: str, images: dict[str, Image], namespace: Namespace, spec: TrainingSpec
) -> Iterator[Problem]:
    image = images.get(name)
    choose = f"Choose one that `yardmaster images list --namespace {namespace.slug}` shows, or ask an administrator."
    if image is None or not may_use(image, namespace):  # the same words: others do not learn of a team's images
        message = f"There is no image {shorten(name)} that the namespace {namespace.slug} may use."
        yield Problem(field, "unknown_image", message, choose, shorten(name))
        return
    if not image.enabled:
        yield Problem(field, "image_disabled", "New jobs may no longer use this image.", choose, name)
    if image.strategies and spec.strategy.value not in image.strategies:
        message = f"This image is not made for {spec.strategy.value}, only for {', '.join(image.strategies)}."
        yield Problem(field, "image_strategy", message, "Choose another image or another strategy.", name)
    with_gpus = [role.value for role in _roles(field, spec) if _asks_for_gpus(spec, role)]
    if with_gpus and not image.gpus:
        message = f"This image cannot use GPUs, and roles.{with_gpus[0]} asks for some."
        yield Problem(field, "image_without_gpus", message, "Choose an image for GPUs, or ask for none.", name)


def _roles(field: str, spec: TrainingSpec) -> Collection[Role]:
    """Those whose tasks run in the image that stands at this field."""
    if field == "image":
        return [role for role, one in spec.roles.items() if not one.image]
    return [role for role in spec.roles if field == f"roles.{role.value}.image"]


def _asks_for_gpus(spec: TrainingSpec, role: Role) -> bool:
    return asks_for_one(spec.roles[role].resources.as_amounts())


def _facts(spec: TrainingSpec, images: dict[str, Image]) -> ImageFacts:
    """Of all roles together: what is not known of one of the images is not known."""
    used = [spec.image_of(role) for role in spec.roles]
    return ImageFacts.common([OWN_IMAGE if one is None else _facts_of(images[one.name]) for one in used])


def _facts_of(image: Image) -> ImageFacts:
    packages = None if image.packages is None else frozenset(image.packages)
    return ImageFacts(packages, image.python, image.tensorflow)
