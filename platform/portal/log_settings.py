"""How the portal writes its own log. Not here: where it goes and how it is bounded (`own_log`)."""

from __future__ import annotations

from typing import Any

import structlog

from portal import env
from portal.client_errors import ClientErrors, bounded

_BEFORE_THE_END: list[Any] = [
    structlog.contextvars.merge_contextvars,
    structlog.stdlib.add_logger_name,
    structlog.stdlib.add_log_level,
    structlog.processors.TimeStamper(fmt="iso"),
]


def log_settings(level: str, most_client_errors: int) -> dict[str, Any]:
    """Django's `LOGGING`: events of this level and above, and in a minute at most so many that clients caused."""
    return {
        "version": 1,
        "disable_existing_loggers": False,
        "formatters": {
            "events": {
                "()": structlog.stdlib.ProcessorFormatter,
                "processors": [
                    structlog.processors.format_exc_info,
                    bounded,
                    structlog.stdlib.ProcessorFormatter.remove_processors_meta,
                    structlog.processors.JSONRenderer()
                    if env.flag("YARDMASTER_LOG_JSON")
                    else structlog.dev.ConsoleRenderer(colors=False, exception_formatter=structlog.dev.plain_traceback),
                ],
                "foreign_pre_chain": _BEFORE_THE_END,
            }
        },
        "filters": {"clients": {"()": ClientErrors, "most": most_client_errors, "level": level}},
        "handlers": {"console": {"class": "logging.StreamHandler", "formatter": "events", "filters": ["clients"]}},
        "root": {"handlers": ["console"], "level": level},
        # Two lines per request drown the rest; YARDMASTER_LOG_REQUESTS=1 brings them back.
        "loggers": {
            "django_structlog": {"level": "INFO" if env.flag("YARDMASTER_LOG_REQUESTS") else "WARNING"},
            "httpx2": {"level": "WARNING"},
            # It writes each connection and command, also the whole program that a machine is sent first.
            "asyncssh": {"level": "WARNING"},
            # It has set up handlers of its own by now, which know of no bounds.
            "uvicorn": {"level": "WARNING", "handlers": [], "propagate": True},
        },
    }


def configure_structlog() -> None:
    """Send the events of structlog through the handlers of `log_settings`. May be repeated."""
    structlog.configure(
        processors=[
            structlog.stdlib.filter_by_level,
            *_BEFORE_THE_END,
            structlog.stdlib.PositionalArgumentsFormatter(),
            structlog.processors.format_exc_info,
            structlog.stdlib.ProcessorFormatter.wrap_for_formatter,
        ],
        logger_factory=structlog.stdlib.LoggerFactory(),
        cache_logger_on_first_use=True,
    )
