"""A real Spark for tests: what `make spark` has installed."""

from __future__ import annotations

import os

from portal.env import spark_folder
from yardmaster.engines.supervision import spark
from yardmaster_runner.spark.java import has_java


def missing_for_spark() -> str:
    """Why no job can have a Spark cluster here; empty where it can."""
    if not has_java(os.environ):
        return f"{spark.NO_JAVA} {spark.INSTALL_JAVA}"
    return "" if spark_folder() else "Spark is not installed in .venv-spark (make spark)"
