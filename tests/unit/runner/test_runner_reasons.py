import pytest

from yardmaster.failures import REASONS
from yardmaster_runner.reasons import explain_end, last_exception, memory_kills

TRACEBACK = b"""Epoch 1/2
Traceback (most recent call last):
  File "train.py", line 3, in <module>
    main()
  File "train.py", line 2, in main
    %s
"""


def explain(exit_code, tail, oom=False, stop=False):
    ending = explain_end(exit_code, tail, oom, stop)
    assert not ending.reason or ending.reason in REASONS
    return ending.reason, ending.message


@pytest.mark.parametrize(
    ("said", "reason"),
    [
        (b"ModuleNotFoundError: No module named 'x'", "ImportFailed"),
        (b"ImportError: cannot import name 'x' from 'y'", "ImportFailed"),
        (b"MemoryError", "OutOfMemory"),
        (b"numpy._core._exceptions._ArrayMemoryError: Unable to allocate 8 GiB", "OutOfMemory"),
        (
            b"tensorflow.python.framework.errors_impl.ResourceExhaustedError: OOM when allocating tensor",
            "OutOfMemory",
        ),
        (b"OSError: [Errno 28] No space left on device: 'x'", "DiskFull"),
        (b"ValueError: bad", "ScriptFailed"),
        (b"my.own.Trouble: bad", "ScriptFailed"),
    ],
)
def test_the_last_exception_tells_the_reason(said, reason):
    assert explain(1, TRACEBACK % b"x()" + said + b"\n") == (reason, said.decode())


def test_noise_after_the_traceback_does_not_hide_it():
    tail = TRACEBACK % b"x()" + b"ValueError: bad\nE0000 grpc_server.cc:99] shutting down\n"
    assert explain(1, tail) == ("ScriptFailed", "ValueError: bad")


def test_of_two_tracebacks_the_last_counts():
    tail = TRACEBACK % b"a" + b"KeyError: 1\n\nDuring handling ...\n\n" + TRACEBACK % b"b" + b"TypeError: 2\n"
    assert explain(1, tail)[1] == "TypeError: 2"


def test_without_an_exception_the_last_line_is_quoted():
    assert explain(3, b"one\ntwo  \n\n") == ("ScriptFailed", "two")
    assert explain(3, b"") == ("ScriptFailed", "")


def test_a_syntax_error_has_no_traceback_and_is_known():
    assert explain(1, b'  File "train.py", line 1\n    def f(:\n          ^\nSyntaxError: invalid syntax\n') == (
        "SyntaxError",
        "SyntaxError: invalid syntax",
    )


def test_a_script_that_python_cannot_open_is_not_found():
    assert explain(2, b"python: can't open file '/w/train.py': [Errno 2] No such file\n")[0] == "ScriptNotFound"


def test_a_kill_is_memory_only_where_the_kernel_says_so():
    assert explain(137, b"x\n")[0] == "Killed"
    assert explain(137, b"x\n", oom=True)[0] == "OutOfMemory"
    assert explain(1, b"x\n", oom=True)[0] == "ScriptFailed"


def test_a_task_that_was_told_to_stop_is_said_so():
    assert explain(143, b"", stop=True) == ("Killed", "it was told to stop and ended by signal 15 (SIGTERM)")
    assert explain(143, b"")[0] == "Killed"
    assert explain(139, b"")[1] == "it was ended by signal 11 (SIGSEGV)."


def test_success_needs_no_reason():
    assert explain(0, b"ValueError: ignored\n") == ("", "")


def test_output_that_is_no_text_harms_nothing():
    assert explain(1, b"\xff\xfe\n\x00\n")[0] == "ScriptFailed"
    assert last_exception([]) == ""


def cgroup(tmp_path, membership, files):
    (tmp_path / "cgroup").write_text(membership)
    for path, text in files.items():
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / path).write_text(text)
    return memory_kills(str(tmp_path / "cgroup"), str(tmp_path))


def test_memory_kills_are_read_from_either_version_of_control_groups(tmp_path):
    (tmp_path / "none").mkdir()
    assert cgroup(tmp_path / "none", "", {}) is None
    (tmp_path / "v2").mkdir()
    assert cgroup(tmp_path / "v2", "0::/my/task\n", {"my/task/memory.events": "oom 2\noom_kill 1\n"}) == 1
    (tmp_path / "v1").mkdir()
    files = {"memory/my/memory.oom_control": "oom_kill_disable 0\nunder_oom 0\noom_kill 4\n"}
    assert cgroup(tmp_path / "v1", "3:cpu:/my\n2:memory:/my\n0::/\n", files) == 4


def test_in_a_container_the_path_may_be_cut_off(tmp_path):
    assert cgroup(tmp_path, "0::/outside/our/view\n", {"memory.events": "oom_kill 2\n"}) == 2


def test_a_script_that_ends_well_because_it_was_told_to_stop_has_not_done_its_work():
    ending = explain_end(0, b"saved", False, True)
    assert (ending.exit_code, ending.reason) == (143, "Killed")
    assert "before its work was done" in ending.message
