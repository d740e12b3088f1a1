"""The headline of a failure is the line that says why: tested with the tracebacks that Python 3.11, TensorFlow 2.21,
Keras 3.15, tf_keras, absl, requests and urllib print (`real_tracebacks.txt`)."""

from __future__ import annotations

from pathlib import Path

import pytest

from yardmaster.job.spec import Role
from yardmaster.lifecycle.failures import verdict_for
from yardmaster.lifecycle.phases import TaskPhase, TaskState
from yardmaster.lifecycle.tracebacks import explain_traceback
from yardmaster_runner.reasons import LONGEST_MESSAGE, bounded, explain_end
from yardmaster_runner.tracebacks import MOST_LINES, last_chain
from yardmaster_runner.uncaught import uncaught_in

_PARTS = Path(__file__).with_name("real_tracebacks.txt").read_text(encoding="utf-8").split("=== ")[1:]
REAL = {name: text for name, _, text in (part.partition("\n") for part in _PARTS)}


def said(name: str) -> str:
    return explain_end(1, REAL[name].encode(), False, False).message


@pytest.mark.parametrize(
    ("name", "headline"),
    [
        (
            "download",
            "Exception: URL fetch failure on https://storage.googleapis.com/tensorflow/tf-keras-datasets/mnist.npz: "
            "None -- [Errno -2] Name or service not known",
        ),
        ("urllib", "urllib.error.URLError: <urlopen error [Errno 111] Connection refused>"),
        (
            "absl_required",
            "FATAL Flags parsing error: flag --data=None: Flag --data must have a value other than None.",
        ),
        ("keras2_in_user_code", "ValueError: Shapes (None, 1) and (None, 3) are incompatible"),
        (
            "graph_execution",
            "tensorflow.python.framework.errors_impl.InvalidArgumentError: Received a label value of 9 which is "
            "outside the valid range of [0, 3). Label values: 9 9 9 9",
        ),
        (
            "keras3_shape",
            "ValueError: Input 0 with name 'None' of layer 'dense' is incompatible with the layer: expected axis -1 of "
            "input shape to have value 5, but received input with shape (None, 2)",
        ),
        (
            "direct_cause",
            "FileNotFoundError: [Errno 2] No such file or directory: '/nowhere/config.yaml' (then RuntimeError: the "
            "configuration cannot be loaded)",
        ),
        ("clean_up", "ValueError: the labels are empty (then RuntimeError: session is closed already)"),
    ],
)
def test_the_headline_says_why(name: str, headline: str) -> None:
    assert said(name) == headline


def test_a_cause_that_the_last_exception_repeats_is_not_said_twice() -> None:
    words = said("requests")
    assert words.startswith("requests.exceptions.ConnectionError: HTTPConnectionPool(host='127.0.0.1', port=9): Max")
    assert words.count("Connection refused") == 1


@pytest.mark.parametrize("name", ["legacy_optimizer", "keras_filepath"])
def test_what_helps_is_not_cut_out_of_the_verdict(name: str) -> None:
    ending = explain_end(1, REAL[name].encode(), False, False)
    failed = TaskState(Role.WORKER, 0, TaskPhase.FAILED, reason="CodeError", exit_code=1, message=ending.message)
    assert REAL[name].rstrip().rsplit(". ", 1)[-1].rstrip(".") in verdict_for(failed).message


@pytest.mark.parametrize(
    ("name", "code", "words"),
    [
        ("download", "download_failed", "https://storage.googleapis.com/tensorflow/tf-keras-datasets/mnist.npz"),
        ("requests", "download_failed", "127.0.0.1"),
        ("urllib", "download_failed", "Connection refused"),
        ("absl_required", "required_flag", "--data"),
        ("relative_import", "relative_import", "no known parent package"),
        ("tf_app", "attribute_gone", "tf.app does not exist"),
        ("legacy_optimizer", "legacy_optimizer", "Keras 2"),
    ],
)
def test_what_libraries_say_is_explained(name: str, code: str, words: str) -> None:
    found = explain_traceback(REAL[name].split("\n"))
    assert found is not None
    assert (found.code, words in found.message) == (code, True)


def test_an_exception_of_a_thread_is_no_cause_with_all_of_its_chain() -> None:
    lines = ["Exception in thread Thread-1 (f):", *REAL["direct_cause"].split("\n")]
    assert uncaught_in(lines) is None
    assert uncaught_in([*REAL["keras3_shape"].split("\n"), *lines]) == uncaught_in(REAL["keras3_shape"].split("\n"))


def test_what_is_printed_after_a_traceback_is_no_part_of_it() -> None:
    tail = REAL["tf_app"].rstrip("\n") + "\n%s\n"
    for later in ("E0000 00:00:1.5 12 server.cc:9] bye", "Uploading results", "2026-11-26 09:00:00.1: W core.cc:1] x"):
        ending = explain_end(1, (tail % later).encode(), False, False)
        assert ending.message == "AttributeError: module 'tensorflow' has no attribute 'app'"


def test_the_same_transient_cause_is_seen_at_either_end_of_a_chain() -> None:
    text = REAL["direct_cause"].replace("RuntimeError: the configuration", "ConnectionError: the configuration")
    assert explain_end(1, REAL["direct_cause"].encode(), False, False).signature
    assert not explain_end(1, text.encode(), False, False).signature


def test_a_message_without_end_is_bounded_and_cut_after_a_sentence() -> None:
    (one,) = last_chain(["Traceback (most recent call last):", "ValueError: a:", *["  b"] * 10_000])
    assert len(one.more) == MOST_LINES
    assert bounded("First. " + "x" * 5_000, 100) == "First. " + "x" * 92 + "…"
    assert bounded("One sentence of it. " * 100, 100) == ("One sentence of it. " * 4).rstrip() + " …"
    assert len(explain_end(1, b"x" * 9_999, False, False).message) <= LONGEST_MESSAGE


def test_a_failed_check_of_tensorflow_is_said_with_its_signal() -> None:
    line = "F0000 00:00:1795697517.189770   12103 tensor.cc:52] Check failed: IsInitialized()"
    assert explain_end(134, f"{line}\n*** Check failure stack trace: ***\n".encode(), False, False).message == (
        f"it was ended by signal 6 (SIGABRT). {line}"
    )
