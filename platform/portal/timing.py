"""The clockwork of jobs, services and sessions, from the environment. What each time of jobs means is said by
`yardmaster.lifecycle.plan.Timing`."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from django.core.exceptions import ImproperlyConfigured

from portal import env
from yardmaster.job.spec import Resources
from yardmaster.lifecycle.plan import Timing
from yardmaster.quantity import parse_cpu, parse_memory


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


def workbench() -> dict[str, Any]:
    """How large sessions of the workbench are, how many a user may run, and when they are stopped."""
    sizes = _sizes(env.words("YARDMASTER_WORKBENCH_SIZES", "small=0.5:1Gi,medium=1:2Gi,large=2:8Gi"))
    of_boards = env.one_of("YARDMASTER_TENSORBOARD_SIZE", list(sizes), next(iter(sizes)))
    return {
        "SIZES": sizes,
        "USUAL_SIZE": {
            "tensorboard": of_boards,
            "spark_history": of_boards,
            "jupyter": env.one_of("YARDMASTER_JUPYTER_SIZE", list(sizes), list(sizes)[min(1, len(sizes) - 1)]),
        },
        "SESSIONS": env.number("YARDMASTER_WORKBENCH_SESSIONS", 10, least=1),
        "IDLE": timedelta(seconds=env.number("YARDMASTER_WORKBENCH_IDLE", 3_600, least=60)),
        "LONGEST_IDLE": timedelta(seconds=env.number("YARDMASTER_WORKBENCH_LONGEST_IDLE", 86_400, least=60)),
        "LONGEST": timedelta(seconds=env.number("YARDMASTER_WORKBENCH_LONGEST", 7 * 86_400, least=3_600)),
        "EVENT_BYTES": env.size("YARDMASTER_TENSORBOARD_BYTES", "4Gi", least=1 << 20),
    }


def _sizes(words: list[str]) -> dict[str, Resources]:
    """`name=CPU:MEMORY` for each preset."""
    found = {}
    for word in words:
        name, equals, amounts = word.partition("=")
        cpu, colon, memory = amounts.partition(":")
        try:
            if not (name.strip() and equals and colon):
                raise ValueError
            found[name.strip()[:32]] = Resources(cpu=parse_cpu(cpu), memory=parse_memory(memory))
        except ValueError as error:
            message = f"YARDMASTER_WORKBENCH_SIZES: {word!r} is no size. Write such as small=0.5:1Gi."
            raise ImproperlyConfigured(message) from error
    return found
