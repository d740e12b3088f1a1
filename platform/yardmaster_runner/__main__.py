"""`python -m yardmaster_runner`: run this task, as the environment says. See docs/protocols.md, section 5."""

from __future__ import annotations

import os
import sys

from yardmaster_runner.exits import CannotRun, note
from yardmaster_runner.settings import read_settings
from yardmaster_runner.task_lifecycle import TaskLifecycle


def main() -> int:
    """The task's exit code: the script's own, or one of the runner's."""
    try:
        settings = read_settings(os.environ)
    except CannotRun as error:
        note(str(error))
        return error.ending.exit_code
    return TaskLifecycle(settings, dict(os.environ)).live()


if __name__ == "__main__":
    sys.exit(main())
