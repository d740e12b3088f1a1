"""`python -m yardmaster_runner.predict.task`: batch inference as a task of a job, with the orders of the runner. Each
task has a part of the files; the portal writes `dataset.json` from what all of them have left (`prepare.merging`)."""

from __future__ import annotations

import os
import sys

from yardmaster_runner.own_programs import Orders, orders
from yardmaster_runner.predict.work import Options, Work
from yardmaster_runner.prepare.trouble import exit_code_of

MODEL, DATA = "model", "data"
"""The names of the two inputs of the job."""


def options_of(given: Orders) -> Options:
    """The job's options, with what is known of this task."""
    return Options(
        model=os.path.join(given.data_dir, MODEL),
        input=os.path.join(given.data_dir, DATA),
        output=given.output_dir,
        worker=given.task,
        workers=given.tasks,
        **given.options,
    )


def main() -> int:
    """The exit code."""
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")
    return exit_code_of(lambda say: Work(options_of(orders()), say).run())


if __name__ == "__main__":
    sys.exit(main())
