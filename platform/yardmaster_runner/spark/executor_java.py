"""The Java of a worker's executors: what they print goes straight to files.

Spark itself reads what an executor prints, and writes it to files. While it ends an executor, it loses the end of that,
cuts lines, and writes some bytes twice. So a script stands for the program `java` of a worker: for an executor, it
leads the output to files beside Spark's (`executor_logs`).
"""

from __future__ import annotations

import os
import shlex
from typing import Dict, Mapping

from yardmaster_runner.spark.java import JAVA, JAVA_HOME, found_home, write_program

OUT, ERR = "printed.out", "printed.err"
"""In the folder in which Spark starts an executor."""
_CLASS = "org.apache.spark.executor.CoarseGrainedExecutorBackend"
_SCRIPT = """#!/bin/sh
%s
case " $* " in
*" %s "*) exec %s "$@" >>%s 2>>%s ;;
esac
exec %s "$@"
"""


def for_worker(environment: Mapping[str, str], folder: str) -> Dict[str, str]:
    """The environment of a worker whose executors write to `OUT` and `ERR`; what they start has the `JAVA_HOME` of
    `environment`. The same environment where no program may be in `folder`: then Spark writes the files. Raises
    `OSError`."""
    home = os.path.join(folder, "executor-java")
    script = os.path.join(home, *JAVA)
    os.makedirs(os.path.dirname(script), exist_ok=True)
    given = environment.get(JAVA_HOME, "")
    restored = "export JAVA_HOME=%s" % shlex.quote(given) if given else "unset JAVA_HOME"
    java = shlex.quote(os.path.join(found_home(environment), *JAVA))
    write_program(script, _SCRIPT % (restored, _CLASS, java, OUT, ERR, java))
    return {**environment, JAVA_HOME: home} if os.access(script, os.X_OK) else dict(environment)
