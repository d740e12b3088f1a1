"""`make spark`: offers what was installed for Spark to jobs of this machine, and says whether they have a Java.

The packages of Spark's environment are linked into a folder of their own: it stands in the path of scripts, and nothing
else of that environment may.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

from portal import env
from yardmaster.engines.supervision import spark
from yardmaster_runner.spark.java import has_java

PACKAGES = ("pyspark", "py4j", "tensorflowonspark", "setuptools", "pkg_resources")

READY = """Spark is set up. A portal that is started now runs jobs with the strategy spark on this machine:
    make up
    yardmaster jobs launch examples/spark/digits_rdd.yaml --code examples/spark --follow
"""


def main() -> int:
    environment = Path(sys.prefix).resolve().parent / ".venv-spark"
    found = next(environment.glob("lib/python3.*/site-packages/pyspark"), None)
    if found is None:
        sys.stderr.write(f"Spark is not installed in {environment}. Run make spark.\n")
        return 1
    folder = environment / env.OFFERED
    folder.mkdir(exist_ok=True)
    for name in PACKAGES:
        link = folder / name
        link.unlink(missing_ok=True)
        link.symlink_to(Path("..", *found.parent.relative_to(environment).parts, name))
    if not has_java(os.environ):
        sys.stderr.write(f"{spark.NO_JAVA} {spark.INSTALL_JAVA}\n")
        return 3
    sys.stdout.write(READY)
    return 0


if __name__ == "__main__":
    sys.exit(main())
