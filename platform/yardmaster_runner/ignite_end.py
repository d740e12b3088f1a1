"""Whether a script ended because its Apache Ignite did not answer, and what is reported of it. Pure."""

from __future__ import annotations

import re
from typing import Iterable

WORD = "IgniteUnavailable"
"""Of the core's vocabulary."""
_RAISED = re.compile(
    r"\bIgnite(?:Query)?Unavailable: (?P<by_reader>.+)|\bignite_reader\.errors\.ConnectionLost: (?P<by_connection>.+)"
)
_ADVICE = re.compile(r"\. Check host and port \(.*", re.DOTALL)
"""For who runs a script by hand; in a job the verdict has the advice."""


def ignite_that_is_away(texts: Iterable[str]) -> str:
    """What the reader said of the cluster that did not answer, from the first of these texts that is its exception or
    has it from TensorFlow; empty where none is."""
    for text in texts:
        found = _RAISED.search(text)
        if found:
            return _ADVICE.sub("", found.group("by_reader") or found.group("by_connection")).strip().rstrip(".") + "."
    return ""
