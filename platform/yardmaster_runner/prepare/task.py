"""`python -m yardmaster_runner.prepare.task`: the preparation as a task of a job, with the orders of the runner. Each
task prepares its part of the input; the portal writes `dataset.json` from what all of them have left (`merging`)."""

from __future__ import annotations

import os
import sys

from yardmaster_runner.own_programs import Orders, orders
from yardmaster_runner.prepare.trouble import exit_code_of
from yardmaster_runner.prepare.work import Options, Work


def options_of(given: Orders) -> Options:
    """The job's options, with what is known of this task."""
    members = dict(given.options)
    members["compression"] = "GZIP" if members.get("compression") == "gzip" else ""
    if members.get("step"):
        members["step"] = os.path.join(given.code_dir, *str(members["step"]).split("/"))
    members["listing"] = given.listing
    return Options(input=given.data_dir, output=given.output_dir, worker=given.task, workers=given.tasks, **members)


def main() -> int:
    """The exit code."""
    return exit_code_of(lambda say: Work(options_of(orders()), say).run())


if __name__ == "__main__":
    sys.exit(main())
