"""The clockwork of jobs and services, from the environment. What each time of jobs means is said by
`yardmaster.lifecycle.plan.Timing`."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from portal import env
from yardmaster.lifecycle.plan import Timing


def timing() -> Timing:
    return Timing(
        look_again=timedelta(seconds=env.number("YARDMASTER_LOOK_AGAIN", 15, least=1)),
        start_timeout=timedelta(seconds=env.number("YARDMASTER_START_TIMEOUT", 1800, least=1)),
        engine_patience=timedelta(seconds=env.number("YARDMASTER_ENGINE_PATIENCE", 300, least=1)),
        away_limit=timedelta(seconds=env.number("YARDMASTER_ENGINE_AWAY_LIMIT", 3 * 86_400, least=1)),
        most_returns=env.number("YARDMASTER_MOST_RETURNS", 12, least=0),
        refusal_patience=timedelta(seconds=env.number("YARDMASTER_REFUSAL_PATIENCE", 60, least=1)),
        growth_patience=timedelta(seconds=env.number("YARDMASTER_GROWTH_PATIENCE", 600, least=1)),
        image_patience=timedelta(seconds=env.number("YARDMASTER_IMAGE_PATIENCE", 300, least=1)),
    )


def serving() -> dict[str, Any]:
    """What a model server gets that does not say, and when it is stopped."""
    return {
        "CPU": float(env.number("YARDMASTER_SERVICE_CPU", 1, least=1)),
        "MEMORY": env.size("YARDMASTER_SERVICE_MEMORY", "2Gi", least=64 << 20),
        "IDLE": timedelta(seconds=env.number("YARDMASTER_SERVICE_IDLE", 900, least=60)),
        "LONGEST_IDLE": timedelta(seconds=env.number("YARDMASTER_SERVICE_LONGEST_IDLE", 86_400, least=60)),
    }
