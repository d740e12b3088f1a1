"""What drivers of Spark print when something fails, and what is said of it: with the texts of Spark 4.3
(`real_spark_failures.txt`; most of the lines of Java's stacks are left out)."""

from __future__ import annotations

from pathlib import Path

import pytest

from yardmaster.lifecycle.failures import REASONS
from yardmaster.lifecycle.tracebacks import explain_traceback
from yardmaster_runner.reasons import NO_SPARK, explain_end, explain_end_of_program, explain_end_of_spark

_PARTS = Path(__file__).with_name("real_spark_failures.txt").read_text(encoding="utf-8").split("=== ")[1:]
REAL = {name: text for name, _, text in (part.partition("\n") for part in _PARTS)}

KNOWN = [
    ("pickled_lock", "spark_not_serializable", "cannot pickle '_thread.lock' object", "mapPartitions"),
    ("context_in_task", "spark_context_in_task", "which only the driver has", "broadcast"),
    ("exception_in_task", "executor_exception", "raised KeyError: 'missing' (helper.py, line 2)", "role executor"),
    ("exception_in_udf", "executor_exception", "raised KeyError: 'missing' (helper.py, line 2)", "role executor"),
    ("memory_error_in_task", "main_memory", "raised MemoryError (main.py, line 19)", "memory for the role executor"),
    ("worker_killed", "spark_worker_ended", "A Python process of an executor", "memory for the role executor"),
    ("result_too_big", "spark_result_too_big", "spark.driver.maxResultSize is 1024.0 KiB", "toLocalIterator"),
    (
        "unknown_column",
        "spark_unknown_column",
        "no column `nothing`. Did you mean one of the following? [`id`]",
        "Corr",
    ),
    ("missing_path", "spark_path_missing", "/no/such/path", "DATA_DIR"),
    ("missing_input", "spark_path_missing", "/no/such/path", "DATA_DIR"),
    (
        "heap_of_driver",
        "spark_driver_memory",
        "driver ran out of memory (Java heap space)",
        "memory for the role driver",
    ),
    ("heap_of_executor", "spark_executor_memory", "Executors ran out of memory", "memory for the role executor"),
    ("executor_lost", "spark_executor_killed", "killed repeatedly (exit code 137)", "memory for the role executor"),
    ("python_version", "spark_python_version", "run Python 3.11 and the driver Python 3.9", "one image"),
]


@pytest.mark.parametrize(("name", "code", "words", "remedy"), KNOWN)
def test_what_spark_says_is_explained_in_a_sentence_and_a_remedy(name: str, code: str, words: str, remedy: str) -> None:
    found = explain_traceback(REAL[name].split("\n"))
    assert found is not None
    assert (found.code, words in found.message, remedy in found.remedy) == (code, True, True), found
    assert found.reason in REASONS
    assert found.message.endswith(".")
    assert len(found.message) < 400


@pytest.mark.parametrize(
    ("name", "headline"),
    [
        ("exception_in_task", "KeyError: 'missing'"),
        ("missing_input", "py4j.protocol.Py4JJavaError: org.apache.hadoop.mapred.InvalidInputException: Input path "
         "does not exist: file:/no/such/path"),
        ("heap_of_driver", "py4j.protocol.Py4JJavaError: java.lang.OutOfMemoryError: Java heap space"),
    ],
)  # fmt: skip
def test_the_verdict_has_the_cause_in_one_line_without_the_stack_of_java(name: str, headline: str) -> None:
    assert explain_end(1, REAL[name].encode(), False, False).message == headline


@pytest.mark.parametrize(
    ("name", "word"),
    [
        ("memory_error_in_task", "ScriptFailed"),
        ("heap_of_executor", "ScriptFailed"),
        ("heap_of_driver", "OutOfMemory"),
    ],
)
def test_a_driver_is_not_said_to_have_exceeded_its_memory_where_an_executor_has(name: str, word: str) -> None:
    tail = REAL[name].encode()
    assert explain_end_of_spark(explain_end(1, tail, False, False), tail).reason == word


@pytest.mark.parametrize("of_session", [False, True])
def test_what_a_missing_spark_is_said_with_has_no_mark_of_the_log(of_session: bool) -> None:
    tail = b"yardmaster: Spark needs Java 17 or later, and there is none.\n"
    ending = explain_end(NO_SPARK, tail, False, False)
    said = explain_end_of_program(ending) if of_session else explain_end_of_spark(ending, tail)
    assert (said.reason, said.message) == ("SparkMissing", "Spark needs Java 17 or later, and there is none.")


def test_the_place_of_a_failure_is_a_line_of_the_script_and_not_of_spark() -> None:
    tail = REAL["worker_killed"].encode()
    elsewhere = tail.replace(b"main.py", b"other.py")
    assert explain_end(1, tail, False, False).signature != explain_end(1, elsewhere, False, False).signature


@pytest.mark.parametrize(
    "lines",
    [
        ["spark: ERROR TaskSchedulerImpl: Lost executor 0 on 127.0.0.1: Command exited with code 137"],
        ["spark: WARN TaskSetManager: Lost task 0.0 in stage 0.0 (TID 0) (127.0.0.1 executor 0): ExecutorLostFailure "
         "(executor 0 exited caused by one of the running tasks) Reason: Command exited with code 137"],
        ["spark: WARN TaskSetManager: Lost task 0.0 in stage 0.0 (TID 0) (h executor 0): java.lang.OutOfMemoryError"],
    ],
)  # fmt: skip
def test_what_spark_has_repaired_explains_nothing(lines: list[str]) -> None:
    assert explain_traceback([*lines, "ValueError: x must be positive"]) is None


def test_a_later_exception_of_the_driver_is_not_taken_for_one_of_an_executor() -> None:
    later = 'Traceback (most recent call last):\n  File "main.py", line 3, in <module>\n    main()\nValueError: later'
    assert explain_traceback([*REAL["exception_in_task"].split("\n"), *later.split("\n")]) is None


def test_what_tensorflow_on_spark_hands_on_is_the_exception_of_the_node() -> None:
    text = REAL["exception_in_udf"].replace(
        "KeyError: 'missing'",
        'Exception: Exception in worker:\nTraceback (most recent call last):\n  File "/run/code/train.py", line 7, in '
        "fit\n    raise ValueError('no rows')\nValueError: no rows",
    )
    found = explain_traceback(text.split("\n"))
    assert found is not None
    assert found.message == "A task on an executor raised ValueError: no rows (train.py, line 7)."


@pytest.mark.parametrize(
    ("line", "code"),
    [
        (": org.apache.spark.SparkException: Job aborted due to stage failure: Task 0 in stage 0.0 failed 4 times, "
         "most recent failure: Lost task 0.3 in stage 0.0 (TID 3) (10.0.0.7 executor 4): ExecutorLostFailure (executor "
         "4 exited caused by one of the running tasks) Reason: Remote RPC client disassociated. Likely due to "
         "containers exceeding thresholds, or network issues. Check driver logs for WARN messages.",
         "spark_executor_lost"),
        ("org.apache.spark.SparkException: Task not serializable", "spark_not_serializable"),
        ("spark: WARN TaskSchedulerImpl: Initial job has not accepted any resources; check your cluster UI to ensure "
         "that workers are registered and have sufficient resources", "spark_no_resources"),
        ("pyspark.errors.exceptions.captured.AnalysisException: [TABLE_OR_VIEW_NOT_FOUND] The table or view `visits` "
         "cannot be found. SQLSTATE: 42P01;", "spark_analysis"),
    ],
)  # fmt: skip
def test_one_line_of_spark_is_enough(line: str, code: str) -> None:
    found = explain_traceback([line])
    assert found is not None
    assert found.code == code
