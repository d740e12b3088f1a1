import pytest

from yardmaster.lifecycle.failures import REASONS
from yardmaster_runner.reasons import explain_end, memory_kills
from yardmaster_runner.uncaught import uncaught_in

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


@pytest.mark.parametrize(
    "said",
    [
        b"yardmaster_runner.data.ignite_reader.errors.IgniteUnavailable: No Ignite server has answered for 60 seconds: "
        b"Ignite at one:10800: refused. Check host and port (IGNITE_DATASET_HOST, IGNITE_DATASET_PORT), and more.",
        b"tensorflow.python.framework.errors_impl.UnknownError: {{function_node __wrapped__IteratorGetNext}} "
        b"IgniteUnavailable: No Ignite server has answered for 60 seconds: Ignite at one:10800: refused.",
        b"yardmaster_runner.data.ignite_reader.errors.ConnectionLost: "
        b"No Ignite server has answered for 60 seconds: Ignite at one:10800: refused",
    ],
    ids=["reader", "tensorflow", "connection"],
)
def test_an_ignite_that_does_not_answer_has_a_reason_of_its_own(said):
    message = "No Ignite server has answered for 60 seconds: Ignite at one:10800: refused."
    assert explain(1, TRACEBACK % b"x()" + said + b"\n") == ("IgniteUnavailable", message)
    assert explain(1, TRACEBACK % b"x()" + b"my.Ignition: Unavailable\n")[0] == "ScriptFailed"


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
    assert explain(143, b"", stop=True) == ("Killed", "Stopped by signal 15 (SIGTERM)")
    ended_well = explain_end(0, b"", was_out_of_memory=False, was_asked_to_stop=True)
    assert ended_well.exit_code == 143, "the exit status beside the message names the same signal"
    assert ended_well.message == "Stopped by signal 15 (SIGTERM) before its work was done"
    assert explain(143, b"")[0] == "Killed"
    assert explain(139, b"")[1] == "it was ended by signal 11 (SIGSEGV)."


def test_success_needs_no_reason():
    assert explain(0, b"ValueError: ignored\n") == ("", "")


GIVEN = ("/w/code", "/w/data")
USAGE = b"usage: train.py [-h] [--steps STEPS]\ntrain.py: error: unrecognized arguments: --step\n"


@pytest.mark.parametrize(
    ("said", "reason"),
    [
        (b"NameError: name 'mdoel' is not defined", "CodeError"),
        (b"UnboundLocalError: cannot access local variable 'x'", "CodeError"),
        (b"AttributeError: module 'tensorflow' has no attribute 'Sesion'", "ScriptFailed"),
        (b"TypeError: fit() got an unexpected keyword argument 'epoch'", "ScriptFailed"),
        (b"FileNotFoundError: [Errno 2] No such file or directory: '/w/data/train.csv'", "FileMissing"),
        (b"FileNotFoundError: [Errno 2] No such file or directory: 'vocabulary.txt'", "FileMissing"),
        (b"errors_impl.NotFoundError: {{node x}} /w/data/a.tfrecord; No such file or directory [Op:X]", "FileMissing"),
        (b"FileNotFoundError: [Errno 2] No such file or directory: '/w/data-of-others/x'", "ScriptFailed"),
        (b"FileNotFoundError: [Errno 2] No such file or directory: '/mnt/share/x'", "ScriptFailed"),
        (b"FileNotFoundError: [Errno 2] No such file or directory: '../log/x'", "ScriptFailed"),
        (b"errors_impl.NotFoundError: Container worker does not exist. (Could not find resource: x)", "ScriptFailed"),
        (b"AttributeError: connection reset before a response", "ScriptFailed"),
    ],
)
def test_what_fails_at_every_start_has_a_word_of_its_own(said, reason):
    ending = explain_end(1, TRACEBACK % b"x()" + said + b"\n", False, False, 0, GIVEN)
    assert (ending.reason, REASONS[ending.reason].permanent) == (reason, reason != "ScriptFailed")


@pytest.mark.parametrize("said", [b"TypeError: x", b"FileNotFoundError: [Errno 2] No such file or directory: 'x'"])
def test_after_a_step_of_progress_one_failure_proves_nothing_yet(said):
    ending = explain_end(1, TRACEBACK % b"x()" + said + b"\n", False, False, 7, GIVEN)
    assert (ending.reason, bool(ending.signature), ending.reached) == ("ScriptFailed", True, 7)


def test_arguments_that_a_parser_refuses_are_known_by_its_usage():
    assert explain(2, USAGE)[0] == "BadArguments"
    assert explain(2, b"Usage: train [OPTIONS]\nError: No such option: --x\n")[0] == "BadArguments"
    assert (
        explain(1, b"FATAL Flags parsing error: Unknown command line flag 'x'. Did you mean: y ?\n")[0]
        == "BadArguments"
    )
    assert explain(2, b"error: it went wrong\n")[0] == "ScriptFailed"
    assert explain(3, USAGE)[0] == "ScriptFailed"


def signature(said, frame=b"x()", exit_code=1):
    return explain_end(exit_code, TRACEBACK % frame + said + b"\n", False, False, 0, GIVEN).signature


def test_the_same_failure_has_the_same_signature_whatever_differs_between_two_starts():
    one = signature(b"ValueError: bad batch 3 of /tmp/a1/x at 0x7f00aa")
    assert one
    assert one == signature(b"ValueError: bad batch 512 of /tmp/b2/y at 0x7fffff")
    assert one != signature(b"ValueError: worse batch 3 of /tmp/a1/x at 0x7f00aa")
    assert one != signature(b"KeyError: bad batch 3 of /tmp/a1/x at 0x7f00aa")


def test_another_line_of_the_users_code_is_another_failure_a_librarys_is_not():
    tail = b"""Traceback (most recent call last):
  File "/w/code/train.py", line %d, in main
    fit()
  File "/w/lib/python3.12/site-packages/keras/fit.py", line %d, in fit
    raise ValueError
ValueError: bad
"""
    found = [explain_end(1, tail % lines, False, False).signature for lines in ((3, 9), (3, 10), (4, 9))]
    assert found[0] == found[1] != found[2]


@pytest.mark.parametrize(
    "said",
    [
        b"ConnectionResetError: [Errno 104] Connection reset by peer",
        b"tensorflow.python.framework.errors_impl.UnavailableError: Socket closed",
        b"tensorflow.python.framework.errors_impl.FailedPreconditionError: Could not find variable w",
        b"TimeoutError: [Errno 110] Connection timed out",
        b"OSError: [Errno 116] Stale file handle: '/mnt/x'",
        b"RuntimeError: the service is temporarily unavailable",
        b"http.client.RemoteDisconnected: Remote end closed connection without response",
        b"RuntimeError: Remote end closed connection without response",
        b"Exception: URL fetch failure on https://example.org/mnist.npz: 502 -- Bad Gateway",
        b"OSError: [Errno 113] No route to host",
        b'botocore.exceptions.EndpointConnectionError: Could not connect to the endpoint URL: "https://s3/"',
        b"botocore.exceptions.ConnectTimeoutError: Connect timeout on endpoint URL",
        b"botocore.exceptions.ClientError: An error occurred (SlowDown) when calling the PutObject operation",
        b"botocore.exceptions.ClientError: An error occurred (503) when calling the HeadObject operation",
        b"botocore.exceptions.ClientError: An error occurred (ThrottlingException) when calling the X operation",
        b"RuntimeError: 429 Client Error: Too Many Requests for url: https://example.org",
        b"RuntimeError: the registry answered with HTTP/1.1 500",
        b"RuntimeError: status code: 504",
        b"RuntimeError: 500 Server Error for url: https://example.org",
        b"aiohttp.client_exceptions.ServerDisconnectedError: Server disconnected",
        b"json.decoder.JSONDecodeError: Expecting value: line 1 column 1 (char 0)",
        b"requests.exceptions.JSONDecodeError: Expecting value: line 1 column 1 (char 0)",
        b"socket.gaierror: [Errno -2] Name or service not known",
    ],
)
def test_what_may_pass_has_no_signature(said):
    assert signature(said) == ""


@pytest.mark.parametrize(
    "said",
    [
        b"TypeError: fit() got an unexpected keyword argument 'epoch'",
        b"AttributeError: 'NoneType' object has no attribute 'shape'",
        b"IndexError: index 500 is out of bounds for axis 0 with size 500",
        b"ValueError: cannot reshape array of size 502 into shape (503,28)",
        b"KeyError: 504",
    ],
)
def test_what_is_no_network_has_a_signature(said):
    assert signature(said)


def test_neither_has_what_shows_no_traceback_or_did_not_end_it():
    assert explain_end(3, b"giving up\n", False, False).signature == ""
    assert explain_end(1, b"ValueError: printed by the script\n", False, False).signature == ""
    noise = TRACEBACK.replace(b"Epoch 1/2", b"Exception ignored in: <function Context.__del__ at 0x7f>")
    tail = TRACEBACK % b"x()" + b"errors_impl.UnavailableError: Socket closed\n" + noise % b"y()" + b"TypeError: None\n"
    assert explain(1, tail) == ("ScriptFailed", "errors_impl.UnavailableError: Socket closed")


def test_output_that_is_no_text_harms_nothing():
    assert explain(1, b"\xff\xfe\n\x00\n")[0] == "ScriptFailed"
    assert uncaught_in([]) is None


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


def test_what_our_part_of_a_script_says_last_takes_the_place_of_tensorflows_words() -> None:
    trace = b'Traceback (most recent call last):\n  File "/work/code/train.py", line 8, in <module>\n'
    trace += b"tensorflow.python.framework.errors_impl.DataLossError: corrupted record at 476\n"
    told = explain_end(1, trace + b"yardmaster: the shard a.tfrecord is damaged\n", False, False)
    assert told.message == "the shard a.tfrecord is damaged"
    assert told.signature == explain_end(1, trace, False, False).signature != ""
    assert explain_end(1, trace + b"yardmaster is a word\n", False, False).message.endswith("corrupted record at 476")


def test_a_session_without_jupyterlab_says_so_and_what_to_do(tmp_path, monkeypatch, capfd):
    from yardmaster.lifecycle.failures import REASONS
    from yardmaster_runner.reasons import explain_end_of_program
    from yardmaster_runner.workbench import jupyter

    monkeypatch.setattr(jupyter.importlib.util, "find_spec", lambda name: None)
    with pytest.raises(SystemExit) as ended:
        jupyter.main()
    assert "There is no JupyterLab in" in capfd.readouterr().err
    ending = explain_end_of_program(explain_end(ended.value.code, b"no JupyterLab", False, False), is_service=True)
    assert ending.reason == "NoJupyterLab"
    assert REASONS[ending.reason].permanent
    assert "YARDMASTER_KUBERNETES_WORKBENCH_IMAGE" in REASONS[ending.reason].remedy
