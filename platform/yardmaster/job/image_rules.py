"""Which specifications may name an image, and how. Not here: whether the catalogue has it, and for whom (the portal),
and whether the engine runs images (`engines`).
"""

from __future__ import annotations

from collections.abc import Iterator

from yardmaster.errors import Problem
from yardmaster.job.spec import TrainingSpec
from yardmaster.job.spec_images import LONGEST_NAME, is_image_name
from yardmaster.job.spec_limits import SpecLimits, shorten
from yardmaster.job.strategy import is_cluster, runs_script


def image_fields(spec: TrainingSpec) -> dict[str, str]:
    """Every image that the specification names, by the field in which it stands."""
    named = {"image": spec.image} | {f"roles.{role.value}.image": one.image for role, one in spec.roles.items()}
    return {field: name for field, name in named.items() if name}


def image_problems(spec: TrainingSpec, _: SpecLimits) -> Iterator[Problem]:
    """What is wrong with the images that are named."""
    for field, name in image_fields(spec).items():
        if not runs_script(spec) and not is_cluster(spec.strategy):
            message = "A program of the portal runs in the engine's own image, which has what it needs."
            yield Problem(field, "conflict", message, f"Remove {field}.", shorten(name))
        elif not is_image_name(name):
            message = (
                f"An image is named as in the portal's catalogue: at most {LONGEST_NAME} lowercase letters, digits, "
                "dots, dashes and underscores."
            )
            remedy = "Choose one that `yardmaster images list` shows. A reference to a registry is no name."
            yield Problem(field, "bad_value", message, remedy, shorten(name))
