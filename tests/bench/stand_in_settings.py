"""The portal's settings with an engine on which every job runs on and on, for measurements with thousands of jobs."""

from __future__ import annotations

from portal.settings import *  # noqa: F403

YARDMASTER_ENGINES = {"local": {"class": "tests.bench.steady.SteadyEngine", "options": {}}}
