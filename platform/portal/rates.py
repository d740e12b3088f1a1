"""How much one caller may ask of the portal, from the environment. Not here: how it is counted (`rate_limit`)."""

from __future__ import annotations

from portal import env


def rates() -> dict[str, int]:
    """By what is counted. `rate_limit` says what each of them bounds."""
    return {
        # Requests a minute: of a user, of a stranger's address, of all tasks of a job.
        "USER": env.number("YARDMASTER_RATE_USER", 12_000, least=1),
        "STRANGER": env.number("YARDMASTER_RATE_STRANGER", 3_000, least=1),
        "JOB": env.number("YARDMASTER_RATE_JOB", 60_000, least=1),
        # Of a user, and within those: searches, comparisons and previews; predictions; launches; uploads begun.
        "EXPENSIVE": env.number("YARDMASTER_RATE_EXPENSIVE", 300, least=1),
        "PREDICTIONS": env.number("YARDMASTER_RATE_PREDICTIONS", 3_000, least=1),
        "LAUNCHES": env.number("YARDMASTER_RATE_LAUNCHES", 600, least=1),
        "UPLOADS": env.number("YARDMASTER_RATE_UPLOADS", 600, least=1),
        # At once, in one web process: requests of a caller, expensive ones of a caller and of all, WebSockets.
        "AT_ONCE": env.number("YARDMASTER_AT_ONCE", 100, least=1),
        "EXPENSIVE_AT_ONCE": env.number("YARDMASTER_EXPENSIVE_AT_ONCE", 4, least=1),
        "EXPENSIVE_IN_ALL": env.number("YARDMASTER_EXPENSIVE_IN_ALL", 12, least=1),
        "SOCKETS": env.number("YARDMASTER_SOCKETS", 600, least=1),
    }
