"""The clockwork of jobs, from the environment. What each time means is said by `yardmaster.lifecycle.plan.Timing`."""

from __future__ import annotations

from datetime import timedelta

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
