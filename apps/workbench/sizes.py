"""The sizes that sessions come in: presets of the settings. Users choose a name, administrators the amounts."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from django.conf import settings

from apps.errors import Invalid
from apps.workbench.models import Kind
from yardmaster.errors import Problem
from yardmaster.job.spec import Resources
from yardmaster.quantity import format_bytes, format_cpu


@dataclass(frozen=True)
class Size:
    """One preset."""

    name: str
    resources: Resources

    @property
    def words(self) -> str:
        """`small: 0.5 CPU, 1 GiB`."""
        return f"{self.name}: {format_cpu(self.resources.cpu)} CPU, {format_bytes(self.resources.memory)}"


def sizes() -> Mapping[str, Size]:
    """All presets by name, the smallest first as the settings list them."""
    return {name: Size(name, resources) for name, resources in settings.YARDMASTER_WORKBENCH["SIZES"].items()}


def usual_size(kind: str) -> str:
    """The preset of a session for which none is chosen."""
    return str(settings.YARDMASTER_WORKBENCH["USUAL_SIZE"][Kind(kind).value])


def size_named(name: str | None, kind: str) -> Size:
    """The preset with this name, or the usual one of the kind. Raises `Invalid`."""
    known = sizes()
    wanted = name or usual_size(kind)
    if wanted not in known:
        message = f"There is no size {wanted[:40]}."
        raise Invalid([Problem("size", "bad_value", message, f"Use one of {', '.join(known)}.", wanted[:40])])
    return known[wanted]


def size_words(name: str) -> str:
    """The preset with its amounts; of one that the settings have no more, its name."""
    found = sizes().get(name)
    return found.words if found else name
