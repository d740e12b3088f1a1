"""Whether there is anything to say of volumes: for the pages of namespaces and datasets, whose apps know no engines."""

from __future__ import annotations

from django import template

from apps.jobs.engines.volumes import engines_with_volumes

register = template.Library()


@register.simple_tag
def offers_volumes() -> bool:
    """Whether a namespace can have volumes on some engine. Asks the settings, no engine."""
    return bool(engines_with_volumes())
