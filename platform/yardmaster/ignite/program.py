"""The program that looks at one cluster, in a process of its own with limits: a task from stdin, its result to stdout.

Who runs the cluster may be hostile: memory, processor time, time and bytes are limited before the first byte is asked
for, and nothing but the nodes of the connection is connected to (`guarded`).
"""

from __future__ import annotations

import json
import resource
import signal
import sys
from collections.abc import Mapping
from typing import Any

from yardmaster.ignite.guarded import Guarded, answered, masked
from yardmaster.sandbox.program import limit
from yardmaster_runner.data.ignite_reader import wire
from yardmaster_runner.data.ignite_reader.survey import Survey

LARGEST_ANSWER = 16 << 20
MOST_RESULT = 512 << 10
"""Bytes of what is kept. Of more, the last caches are shown without rows."""


def main() -> None:
    task = json.load(sys.stdin)
    limit(task)
    signal.alarm(task["wall"])  # where the worker that would end it was killed
    resource.setrlimit(resource.RLIMIT_FSIZE, (1 << 20, 1 << 20))  # files in memory: certificates
    json.dump(answered(task, lambda: masked(_fitting(_found(task)), task)), sys.stdout)


def _found(task: Mapping[str, Any]) -> dict[str, Any]:
    guarded = Guarded(task, largest=LARGEST_ANSWER)

    def ask(operation: int, body: bytes = b"") -> wire.Reader:
        answer = guarded.cluster.ask(operation, body)
        guarded.note(len(answer.data))
        return answer

    return Survey(guarded.cluster, ask, task["passed_over"]).found()


def _fitting(found: dict[str, Any]) -> dict[str, Any]:
    for part in ("preview", "columns"):
        for one in reversed(found["caches"]):
            if len(json.dumps(found)) <= MOST_RESULT:
                return found
            one[part] = []
            one["problem"] = one["problem"] or "Not all of it is shown: the result of the check was too large."
    return found


if __name__ == "__main__":
    main()
