"""The images that the launch form offers: those that jobs of the namespace may use, where the engine runs images."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from django.conf import settings
from django.utils.text import Truncator

from apps.images.models import Image
from apps.images.selectors import images_for
from apps.jobs.engines.images import engines_with_images
from apps.jobs.launch.long_select import select
from apps.jobs.launch.parts import SpecForm
from apps.namespaces.models import Namespace
from yardmaster.job.spec_limits import shorten

MOST_OFFERED = 200
Options = list[tuple[str, str]]


@dataclass(frozen=True)
class ImageChoices:
    """`options` for this namespace and engine. `depends`: with another engine or namespace they may be others."""

    options: Options
    depends: bool = False

    def offer(self, form: SpecForm, empty: str) -> bool:
        """Give the select of a form these options, and what is chosen already; whether there is anything to choose.
        `empty` are the words of none."""
        chosen, options = form.texts()["image"], self.options
        if chosen and all(name != chosen for name, _ in options):
            options = [*options, (chosen, f"{shorten(chosen)} (not available here)")]
        select(form.fields["image"], options, empty)
        return bool(options)


NO_IMAGES = ImageChoices([])


def image_choices(namespace: Namespace, engine: str) -> ImageChoices:
    """What there is to choose for a job of this namespace on this engine; empty: the default one."""
    engines = engines_with_images()
    if (engine or settings.YARDMASTER_DEFAULT_ENGINE) not in engines:
        return ImageChoices([], depends=bool(engines))
    return ImageChoices([(one.name, _title(one)) for one in images_for(namespace)[:MOST_OFFERED]], depends=True)


def _title(image: Image) -> str:
    """As a select shows it: all that decides, before what describes."""
    facts: list[Any] = [image.versions, "GPUs" if image.gpus else "", ", ".join(image.strategies)]
    known = "; ".join(filter(None, facts))
    return Truncator(" – ".join(filter(None, [image.name, known, image.description]))).chars(160)
