"""The program behind `preflight_apart`: code and specification from stdin, findings to stdout, then it is over.

It limits its own memory and processor time. Not here: when it is late and must be killed (`preflight_apart`).
"""

from __future__ import annotations

import dataclasses
import json
import resource
import sys

from yardmaster.preflight import preflight
from yardmaster.spec_stored import stored_spec

_MEMORY = 1 << 30
_SECONDS = 3


def main() -> None:
    """Exits with another code than 0, or by a signal, where the code is too hard to read."""
    resource.setrlimit(resource.RLIMIT_AS, (_MEMORY, _MEMORY))
    resource.setrlimit(resource.RLIMIT_CPU, (_SECONDS, _SECONDS))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    task = json.load(sys.stdin)
    found = preflight(stored_spec(task["spec"]), task["files"])
    json.dump([dataclasses.asdict(one) for one in found], sys.stdout)


if __name__ == "__main__":
    main()
