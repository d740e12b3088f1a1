"""Verdicts in words that help, and the vocabulary they are made of."""

from __future__ import annotations

import string

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.unit.core.generators import task, task_states
from yardmaster.job.spec import Role
from yardmaster.lifecycle.failures import REASONS, Blame, reason_of_exit, signal_of, task_name, verdict_for
from yardmaster.lifecycle.phases import TaskPhase
from yardmaster.lifecycle.tracebacks import explain_traceback

FAILED = TaskPhase.FAILED


def test_trainer_1749_a_verdict_has_the_exit_code_and_the_peak_memory() -> None:
    verdict = verdict_for(task(Role.WORKER, 1, FAILED, reason="OutOfMemory", exit_code=137, peak_memory=3 << 29))
    assert verdict.message == "Worker 1 exceeded its memory limit (exit code 137, peak memory 1.5 GiB)."
    assert verdict.blame is Blame.LIMIT
    assert (verdict.role, verdict.index, verdict.exit_code) == (Role.WORKER, 1, 137)


def test_the_words_of_a_script_end_as_a_sentence() -> None:
    failed = task(Role.WORKER, 0, FAILED, reason="RestartsSpent", exit_code=1, message="a.Lost: refused")
    assert verdict_for(failed).message == "Worker 0 failed again (exit code 1). No restarts left. a.Lost: refused."


def test_an_ignite_that_does_not_answer_is_told_with_its_address_and_what_to_do() -> None:
    said = "No Ignite server has answered for 60 seconds: Ignite at one:10800: Connection reset by peer"
    verdict = verdict_for(task(Role.WORKER, 0, FAILED, reason="IgniteUnavailable", exit_code=1, message=f"{said}."))
    assert verdict.message == f"Worker 0 failed because the Ignite cluster did not answer ({said})."
    assert verdict.remedy.startswith("Check that the Ignite cluster runs")
    found = explain_traceback([f"errors.IgniteUnavailable: {said}. Check host and port (X, Y), and that it runs."])
    assert found is not None
    assert (found.code, found.message) == ("ignite_unavailable", f"The Ignite cluster did not answer: {said}.")
    assert found.remedy == verdict.remedy


@pytest.mark.parametrize("word", REASONS)
def test_pai_2326_every_reason_says_whose_it_is_what_happened_and_what_to_do(word: str) -> None:
    reason = REASONS[word]
    assert reason.title
    assert reason.remedy.endswith(".")
    fields = {name for _, name, _, _ in string.Formatter().parse(reason.sentence) if name}
    assert fields <= {"task", "exit", "signal", "peak", "said"}
    verdict = verdict_for(task(Role.PS, 0, FAILED, reason=word, exit_code=1))
    assert verdict.reason == word
    assert verdict.message.startswith("Parameter server 0")


@pytest.mark.parametrize(
    ("exit_code", "word"),
    [
        (1, "ScriptFailed"),
        (255, "ScriptFailed"),
        (90, "StageInFailed"),
        (91, "PortalUnreachable"),
        (92, "TokenRefused"),
        (137, "Killed"),
        (-9, "Killed"),
        (139, "Killed"),
        (None, "Lost"),
    ],
)
def test_an_exit_code_alone_tells_this_much(exit_code: int | None, word: str) -> None:
    assert reason_of_exit(exit_code) == word
    assert verdict_for(task(Role.CHIEF, 0, FAILED, exit_code=exit_code)).reason == word


def test_flyte_3686_a_failure_without_any_fact_still_has_a_reason_and_a_sentence() -> None:
    verdict = verdict_for(task(Role.CHIEF, 0, FAILED))
    assert verdict.reason == "Lost"
    assert verdict.message == "The chief disappeared without an exit status."
    assert "None" not in verdict.message


def test_a_signal_is_named() -> None:
    assert "signal 9 (SIGKILL)" in verdict_for(task(Role.WORKER, 0, FAILED, exit_code=137)).message
    assert "signal 63." in verdict_for(task(Role.WORKER, 0, FAILED, exit_code=191)).message
    assert [signal_of(code) for code in (None, 0, 1, 128, 129, -15, 255)] == [None, None, None, None, 1, 15, None]


def test_a_word_outside_the_vocabulary_is_not_passed_on_but_the_engines_message_is() -> None:
    verdict = verdict_for(task(Role.WORKER, 0, FAILED, reason="{odd}", exit_code=1, message=" disk {0} broke \n"))
    assert verdict.reason == "ScriptFailed"
    assert verdict.message == "Worker 0 failed with exit code 1. Disk {0} broke."


def test_a_deterministic_failure_says_so_with_the_scripts_own_words() -> None:
    failed = task(Role.WORKER, 0, FAILED, reason="SameFailure", exit_code=1, message="ValueError: bad shape.")
    assert verdict_for(failed).message == (
        "Worker 0 failed the same way twice (ValueError: bad shape) and made no progress in between. "
        "Restarting cannot help."
    )
    long = task(Role.WORKER, 0, FAILED, reason="CodeError", exit_code=1, message="TypeError: " + "x" * 5000)
    assert len(verdict_for(long).message) < 450
    mute = task(Role.WORKER, 0, FAILED, reason="BadArguments", exit_code=2)
    assert "(exit code 2)" in verdict_for(mute).message


def test_tasks_are_named_as_people_name_them() -> None:
    of_tensorflow = ["The chief", "Worker 0", "Parameter server 0", "The evaluator"]
    assert [task_name(role, 0) for role in Role] == [*of_tensorflow, "The driver", "Executor 0"]
    assert task_name(Role.CHIEF, 1) == "Chief 1"


@given(st.sampled_from(Role).flatmap(lambda role: task_states(role, 0)))
def test_any_task_has_a_verdict(state) -> None:  # type: ignore[no-untyped-def]
    verdict = verdict_for(state)
    assert verdict.reason in REASONS
    assert verdict.message
    assert verdict.remedy


_TRACE = ["Traceback (most recent call last):", '  File "train.py", line 3, in <module>', "    import something"]


@pytest.mark.parametrize(
    ("line", "reason", "words"),
    [
        ("ModuleNotFoundError: No module named 'transformers'", "ImportFailed", "transformers"),
        ("ImportError: cannot import name 'x' from 'y' (y.py)", "ImportFailed", "cannot import name"),
        ("SyntaxError: invalid syntax", "SyntaxError", "invalid syntax"),
        (
            "allow_missing_files was set to false and /log/model.ckpt-0_temp/part-00000-of-00002 did not exist.",
            "ScriptFailed",
            "its shard of the checkpoint",
        ),
        ("train.py: error: unrecognized arguments: --data_dir=/a --log_dir=/b", "ScriptFailed", "--data_dir=/a"),
        ("FATAL Flags parsing error: Unknown command line flag 'data_dir'.", "ScriptFailed", "data_dir"),
        ("train.py: error: the following arguments are required: --steps", "ScriptFailed", "--steps"),
        ("FileNotFoundError: [Errno 2] No such file or directory: '/content/x.csv'", "ScriptFailed", "/content/x.csv"),
        ("FileNotFoundError: [Errno 2] No such file or directory: 'x.csv'", "ScriptFailed", "x.csv"),
        ("errors_impl.NotFoundError: /d/a; No such file or directory [Op:]", "ScriptFailed", "/d/a"),
        ("errors_impl.UnimplementedError: File system scheme 's3' not implemented", "ScriptFailed", "s3://"),
        ("errors_impl.ResourceExhaustedError: OOM when allocating", "OutOfMemory", "device"),
        ("numpy.core._exceptions._ArrayMemoryError: Unable to allocate", "OutOfMemory", "main memory"),
        ("MemoryError", "OutOfMemory", "main memory"),
        ("OSError: [Errno 28] No space left on device", "DiskFull", "No space"),
        ("errors_impl.UnknownError: Could not start gRPC server", "ScriptFailed", "address"),
        ("TypeError: MessageToString() got an unexpected keyword argument 'float_format'", "ImportFailed", "protobuf"),
        ("ValueError: you need to pass this dataset to ClusterCoordinator.create_per_worker_dataset.",
         "ScriptFailed", "Keras 3"),
        ("}) with an unsupported type (<class 'tensorflow.python.distribute.values.PerReplica'>) to a Tensor.",
         "ScriptFailed", "MultiWorkerMirrored"),
        ("ValueError: `task_type` 'chief' not found in cluster_spec.", "ScriptFailed", "chief"),
        ("ValueError: When passing an infinitely repeating dataset, please specify a `steps_per_epoch` value so",
         "ScriptFailed", "steps_per_epoch"),
        ("errors_impl.DataLossError: corrupted record at 0", "CorruptInput", "TFRecord"),
        ("DataError: train/2.tfrecord (of reviews) is corrupt, twice: its SHA-256 is 1", "CorruptInput", "train/2"),
        ("DataError: No input is called 'a'. This job has: 'b'.", "ScriptFailed", "This job has: 'b'."),
        ("EOFError: EOF when reading a line", "ScriptFailed", "keyboard"),
        ("KeyError: 'TF_CONFIG'", "ScriptFailed", "TF_CONFIG"),
        ("PermissionError: [Errno 13] Permission denied: '/opt/x'", "ScriptFailed", "/opt/x"),
        ("errors_impl.UnavailableError: failed to connect to all addresses", "ScriptFailed", "stopped responding"),
    ],
)  # fmt: skip
def test_the_usual_last_words_are_explained(line: str, reason: str, words: str) -> None:
    found = explain_traceback([*_TRACE, line, "", "some later chatter"])
    assert found is not None
    assert found.reason == reason
    assert words in found.message
    assert found.remedy
    assert found.reason in REASONS


@pytest.mark.parametrize(
    ("line", "code", "words"),
    [
        ("AttributeError: module 'tensorflow' has no attribute 'contrib'", "attribute_gone", "tf.contrib does"),
        ("AttributeError: module 'tensorflow._api.v2.train' has no attribute 'AdamOptimizer'", "attribute_gone",
         "tf.train.AdamOptimizer does"),
        ("ModuleNotFoundError: No module named 'pandas'", "missing_module", "pandas"),
        ("train.py: error: the following arguments are required: --steps", "missing_arguments", "--steps"),
        ("urllib.error.HTTPError: HTTP Error 403: Forbidden", "download_failed", "HTTP Error 403: Forbidden"),
    ],
)  # fmt: skip
def test_an_explanation_has_a_stable_code(line: str, code: str, words: str) -> None:
    found = explain_traceback([*_TRACE, line])
    assert found is not None
    assert (found.code, words in found.message) == (code, True)


def test_a_name_that_was_mistyped_is_not_taken_for_one_of_tensorflow_1() -> None:
    assert explain_traceback(["AttributeError: module 'tensorflow' has no attribute 'constnat'"]) is None


def test_a_peers_end_is_only_blamed_when_nothing_else_is_said() -> None:
    found = explain_traceback(["ModuleNotFoundError: No module named 'x'", "UnavailableError: Socket closed"])
    assert found is not None
    assert found.reason == "ImportFailed"


@pytest.mark.parametrize(
    "lines",
    [
        [],
        ["epoch 1/3", "loss 0.3"],
        ["ValueError: x must be positive"],
        ["loaded 3 files from /data", "no space between words"],
        ["INFO: memory 3 GiB", "steps_per_epoch=100"],
    ],
)
def test_ordinary_lines_are_not_explained(lines: list[str]) -> None:
    assert explain_traceback(lines) is None


@given(st.lists(st.text(max_size=60), max_size=10))
def test_any_log_is_read_without_harm(lines: list[str]) -> None:
    explain_traceback(lines)


def test_an_endless_line_costs_no_more_than_its_beginning() -> None:
    assert explain_traceback(["ValueError: " * 1_000_000] * 400) is None
