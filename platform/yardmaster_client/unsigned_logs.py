"""HTTP libraries write addresses into the log of the program that uses this client: with level DEBUG the Location of a
redirect, and behind a proxy those of parts and objects. Who has a signed one may do what it allows, so they are written
without their query.
"""

from __future__ import annotations

import logging
import re

LOGGERS = ("httpx2", "httpcore2.http11", "httpcore2.http2", "httpcore2.connection", "httpcore2.proxy",
           "urllib3.connectionpool")  # fmt: skip
_SIGNED = re.compile(r"\?[^\s'\"]*signature=[^\s'\"]*", re.IGNORECASE)


class Unsigned(logging.Filter):
    """For a logger: lets everything through, the queries of signed addresses shortened."""

    def filter(self, record: logging.LogRecord) -> bool:
        text = record.getMessage()
        if _SIGNED.search(text):
            record.msg, record.args = _SIGNED.sub("?…", text), ()
        return True


def keep_unsigned() -> None:
    """From now on, in this process. May be repeated."""
    for name in LOGGERS:
        logger = logging.getLogger(name)
        if not any(isinstance(one, Unsigned) for one in logger.filters):
            logger.addFilter(Unsigned())
