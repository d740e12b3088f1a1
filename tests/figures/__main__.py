"""The command behind `make figures`. `--verbose` lists what was counted."""

from __future__ import annotations

import os
import sys

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "portal.settings")
os.environ.setdefault("YARDMASTER_LOG_LEVEL", "CRITICAL")  # no broker runs here, and nothing here misses it

import django

from tests import environment
from tests.figures.journeys import Journey, journey_section
from tests.figures.reading import import_section, module_section, tail_section
from tests.figures.sources import modules
from tests.figures.table import shown
from tests.figures.times import time_section


def main(arguments: list[str]) -> int:
    if unknown := set(arguments) - {"--verbose"}:
        print(f"Unknown: {' '.join(sorted(unknown))}. There is --verbose.", file=sys.stderr)
        return 2
    found = modules()
    sections = [module_section(found), import_section(found), tail_section(found), journey_section(_journeys())]
    print(shown([*sections, time_section()], verbose=bool(arguments)))
    return 0


def _journeys() -> list[Journey]:
    django.setup()
    from tests.figures.engine_journeys import submission
    from tests.figures.portal_journeys import portal_journeys
    from tests.figures.scene import portal

    with portal():
        found = portal_journeys()
    return [*found, submission()]


if __name__ == "__main__":
    try:
        sys.exit(main(sys.argv[1:]))
    finally:
        environment.pytest_unconfigure()
