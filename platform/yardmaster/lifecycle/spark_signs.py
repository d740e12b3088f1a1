"""The failures of Spark that are recognised in a driver's log: those that it names itself (`SPARK_SIGNS`), and an
exception of the script that was raised on an executor (`on_executor`). `tracebacks` reads logs.

What Spark only warns of counts nowhere but in `WEAK_SPARK_SIGNS`: it replaces lost executors and repeats their tasks.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from yardmaster.lifecycle.traceback_signs import Sign
from yardmaster_runner.tracebacks import CAUSE, DURING, TRACEBACK
from yardmaster_runner.uncaught import uncaught_in

_ENDED = r"^(?!spark: ).*"
"""A line of the exception that has ended the driver, and not one that Spark has logged before."""
_RAISED = re.compile(r"^pyspark\.errors\.exceptions\.\w+\.PythonException: ")
_HANDED_ON = re.compile(r"^Exception: Exception in \w+:$")
"""TensorFlowOnSpark's words before the traceback of what runs beside a task."""


def _sign(code: str, pattern: str, reason: str, message: str, remedy: str) -> Sign:
    return Sign(code, re.compile(pattern), reason, message, remedy)


SPARK_SIGNS = (
    _sign(
        "spark_context_in_task",
        r"\[CONTEXT_ONLY_VALID_ON_DRIVER\]|\[RDD_TRANSFORM_ONLY_VALID_ON_DRIVER\]|SPARK-(?:5063|13758)\b",
        "ScriptFailed",
        "A function that runs on executors uses the SparkContext, the session or an RDD, which only the driver has.",
        "Use them outside of that function. Read the data that it needs beforehand and pass it in, join the two data "
        "sets, or use a broadcast variable.",
    ),
    _sign(
        "spark_not_serializable",
        r"PicklingError: (?:Could not serialize object: )?(?:\w+: )?(?P<what>.{1,200})|"
        r"(?P<java>Task not serializable.{0,200})",
        "ScriptFailed",
        "Spark cannot send a function to executors, because it uses an object that cannot be serialized: {what}{java}.",
        "Create that object (a lock, connection, file or model) within the function, once for each partition with "
        "mapPartitions, and do not refer to self there.",
    ),
    _sign(
        "spark_result_too_big",
        r"is bigger than spark\.driver\.maxResultSize \((?P<most>[^)]{1,40})\)",
        "ScriptFailed",
        "The results of the tasks were larger than the driver accepts (spark.driver.maxResultSize is {most}).",
        "Write large results on the executors, or read them with toLocalIterator instead of collect. Or set a larger "
        "spark.driver.maxResultSize in spark-defaults.conf, and request more memory for the role driver.",
    ),
    _sign(
        "spark_executor_memory",
        _ENDED + r"(?:Lost task .*java\.lang\.OutOfMemoryError|ExecutorLostFailure .*exited with code 52\b)",
        "OutOfMemory",
        "Executors ran out of memory repeatedly: Spark's new attempts failed in the same way.",
        "Request more memory for the role executor, or use more and smaller partitions. To change only the "
        "Java heap, set spark.executor.memory in spark-defaults.conf.",
    ),
    _sign(
        "spark_executor_killed",
        _ENDED + r"ExecutorLostFailure .*exited with code 137\b",
        "ScriptFailed",
        "Executors were killed repeatedly (exit code 137), most likely because they ran out of memory.",
        "Request more memory for the role executor, or use more and smaller partitions.",
    ),
    _sign(
        "spark_executor_lost",
        _ENDED + r"ExecutorLostFailure \(executor .*?Reason: (?P<why>.{1,200}?)(?:\. |$)",
        "ScriptFailed",
        "Executors were lost repeatedly ({why}).",
        "See the logs of the role executor for how the processes ended. Most often they need more memory (memory of "
        "the role executor).",
    ),
    _sign(
        "spark_worker_ended",
        _ENDED + r"Python worker (?:exited unexpectedly|failed to connect back)",
        "ScriptFailed",
        "A Python process of an executor ended in the middle of a task: the system killed it, or a library crashed.",
        "Request more memory for the role executor: Python and TensorFlow use the part that the Java heap leaves. If "
        "it crashes again, add spark.python.worker.faulthandler.enabled true to spark-defaults.conf to see where.",
    ),
    _sign(
        "spark_driver_memory",
        r'^(?:: |Exception in thread "[^"]{1,100}" )java\.lang\.OutOfMemoryError: (?P<what>.{1,100})',
        "OutOfMemory",
        "The Java process of the driver ran out of memory ({what}).",
        "Request more memory for the role driver, or set spark.driver.memory in spark-defaults.conf. Also collect less "
        "data: use toLocalIterator, or write on the executors.",
    ),
    _sign(
        "spark_python_version",
        r"Python in worker has different version: (?P<worker>[\d.]+) than that in driver: (?P<driver>[\d.]+\d)",
        "ScriptFailed",
        "The executors run Python {worker} and the driver Python {driver}; Spark needs the same minor version.",
        "Use one image for both roles, and remove PYSPARK_PYTHON and PYSPARK_DRIVER_PYTHON from the job's environment. "
        "On a registered cluster an administrator sets the interpreter of its executors.",
    ),
    _sign(
        "spark_unknown_column",
        r"AnalysisException: \[UNRESOLVED_COLUMN\S*\] .{0,80}?with name (?P<name>.{1,120}?) cannot be resolved"
        r"(?P<known>\. Did you mean one of the following\? \[.{1,200}?\])?",
        "ScriptFailed",
        "The DataFrame has no column {name}{known}.",
        "Correct the name; printSchema() shows all columns.",
    ),
    _sign(
        "spark_path_missing",
        r"(?:AnalysisException: \[PATH_NOT_FOUND\] Path|InvalidInputException: Input path) does not exist: "
        r"(?:file:)?(?P<path>\S{1,200}?)\.?(?:\s|$)",
        "ScriptFailed",
        "The script reads {path} with Spark, but this path does not exist.",
        "Read inputs below --data_dir (or DATA_DIR) and attach the dataset to the job. Other tasks may not see "
        "files that the driver has written.",
    ),
    _sign(
        "spark_analysis",
        r"AnalysisException: (?P<what>.{1,300}?)(?: SQLSTATE: \w+.*)?$",
        "ScriptFailed",
        "Spark refused a query: {what}.",
        "Correct the expression on the line of the script that the traceback names.",
    ),
)
WEAK_SPARK_SIGNS = (
    _sign(
        "spark_no_resources",
        r"Initial job has not accepted any resources",
        "ScriptFailed",
        "No executor was free to run a task of the application.",
        "On a registered cluster, wait until executors are free there, or request fewer or smaller ones. Otherwise "
        "request no more cores and memory per executor than the role executor has: compare spark.task.cpus, "
        "spark.executor.cores and spark.executor.memory with cpu and memory of that role.",
    ),
)
ON_EXECUTOR = "executor_exception"
REMEDY = "Correct the script there. The logs of the role executor show its earlier output."
MEMORY_REMEDY = "Request more memory for the role executor, or read the data in smaller parts."


def on_executor(lines: Sequence[str]) -> tuple[str, str] | None:
    """The script's own exception that a task on an executor has raised, and its place (file and line; empty where it is
    not known); None where it was not that which ended the driver. The lines with their indentation."""
    begun = [at for at, line in enumerate(lines) if _RAISED.match(line)]
    if not begun:
        return None
    inner = list(lines[begun[-1] + 1 :])
    if any(line.startswith(TRACEBACK) and not _belongs(inner[:at]) for at, line in enumerate(inner)):
        return None  # something else was raised later
    found = uncaught_in(inner)
    if found is None:
        return None
    path, _, rest = found.frame.partition(":")
    return found.line, f"{path}, line {rest.partition(':')[0]}" if rest else ""


def _belongs(before: Sequence[str]) -> bool:
    """Whether a traceback after these lines is part of the exception that they began."""
    said = next((line for line in reversed(before) if line), "")
    return not said or said in (CAUSE, DURING) or bool(_HANDED_ON.match(said))
