"""Small jobs with a Spark cluster of their own."""

from __future__ import annotations

from typing import Any

from tests.real.scene import Scene
from yardmaster_client import Job

ROLES = {
    "driver": {"replicas": 1, "cpu": 0.2, "memory": "1Gi"},
    "executor": {"replicas": 2, "cpu": 0.2, "memory": "1Gi"},
}
LONG = 200.0
SHORT_LIVED = {
    "spark-defaults.conf": "".join(
        f"spark.{one}.extraJavaOptions -XX:TieredStopAtLevel=1 -XX:+UseSerialGC\n" for one in ("driver", "executor")
    )
}
"""Code of a job whose Java runs for seconds: less of the processor's time."""


def launched(one: Scene, script: str, files: dict[str, str] | None = None, **changes: Any) -> Job:
    code = one.put_code({**SHORT_LIVED, "main.py": script, **(files or {})})
    return one.client.jobs.launch(one.spec(code, **{"strategy": "spark", "roles": ROLES, **changes}))


def log_of(one: Scene, job: Job, role: str, index: int = 0) -> str:
    return "\n".join(one.lines(job, role, index))
