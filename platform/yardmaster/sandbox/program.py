"""The program behind `sandbox`: one call from stdin, its result to stdout, then it is over.

It limits itself before it imports or parses anything. Not here: when it is late and must be killed (`process`).
"""

from __future__ import annotations

import json
import resource
import sys
from collections.abc import Mapping
from importlib import import_module
from typing import Any


def main() -> None:
    """Exits with another code than 0, or by a signal, where the call did not end within its limits."""
    task = json.load(sys.stdin)
    limit(task)
    module, _, name = task["function"].partition(":")
    result = getattr(import_module(module), name)(*task["arguments"])
    json.dump(result, sys.stdout)


def limit(task: Mapping[str, Any]) -> None:
    """Processor time and memory, and no core file: it would hold what the user supplied."""
    resource.setrlimit(resource.RLIMIT_AS, (task["memory"], task["memory"]))
    resource.setrlimit(resource.RLIMIT_CPU, (task["seconds"], task["seconds"] + 1))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))


if __name__ == "__main__":
    main()
