"""The command behind `make bench`."""

from __future__ import annotations

import sys

from tests.bench import (
    admission,
    api_tail,
    full_portal,
    hosts,
    ignite,
    job_list,
    log_lines,
    log_viewer,
    many_files,
    many_pods,
    object_store,
    pages,
    preparing,
    reading,
    refused,
    running,
    running_jobs,
    scaling,
    spark,
    staging,
    start_up,
    steps,
    usage,
    waits,
    whole_job,
    workbench,
)
from tests.bench.lines import Measurement

MEASUREMENTS: dict[str, Measurement] = {
    "start": start_up.measure,
    "list": job_list.measure,
    "running": running_jobs.measure,
    "admission": admission.measure,
    "waits": waits.measure,
    "pods": many_pods.measure,
    "hosts": hosts.measure,
    "ignite": ignite.measure,
    "spark": spark.measure,
    "api": api_tail.measure,
    "refused": refused.measure,
    "logs": log_lines.measure,
    "job": whole_job.measure,
    "scaling": scaling.measure_all,
    "pages": pages.measure,
    "full": full_portal.measure,
    "viewer": log_viewer.measure,
    "store": object_store.measure,
    "staging": staging.measure,
    "reading": reading.measure,
    "preparing": preparing.measure,
    "files": many_files.measure,
    "steps": steps.measure,
    "usage": usage.measure,
    "workbench": workbench.measure,
}


def main(names: list[str]) -> int:
    running.run(MEASUREMENTS, names)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
