"""A runner as an engine starts it, against a portal that behaves: what the script gets, and what the portal learns."""

import json
import sys
import textwrap

import pytest

from tests.integration.runner.fake_task_portal import uploaded
from yardmaster_runner.pack import pack


def script(text: str) -> str:
    return textwrap.dedent(text)


def test_a_script_runs_and_its_lines_and_end_are_told(task, portal):
    portal.orders("print('hello')\nprint('world')\n")
    assert task.run() == 0
    assert portal.lines() == [b"hello", b"world"]
    assert portal.ends == {"worker-0": 2}
    assert portal.reports[-1]["state"] == "ended"
    assert portal.reports[-1]["exit_code"] == 0
    assert portal.reports[-1]["usage"]["peak_memory"] > 1 << 20
    assert json.loads((task.work / "exit.json").read_text()) == {"exit_code": 0, "reason": "", "message": ""}
    assert task.said == b""


def test_an_argument_may_name_a_file_of_the_inputs(task, portal):
    arguments = ["--table=$DATA_DIR/x.csv", "${LOG_DIR}", "$HOME", "$$DATA_DIR"]
    portal.orders("import sys\nprint(open(sys.argv[1][8:]).read(), *sys.argv[2:])\n", spec_arguments=arguments)
    portal.order["inputs"] = [{"version": "d1", "name": "", "files": [portal.add_file("x.csv", b"a,b")]}]
    assert task.run() == 0, task.said
    assert portal.lines() == [f"a,b {task.work / 'log'} $HOME $DATA_DIR".encode()]


def test_memory_that_forked_children_share_counts_once(task, portal):
    forks = """
        import os, time
        held = b"x" * (200 << 20)
        ready, say = os.pipe()
        for _ in range(4):
            if os.fork() == 0:
                os.write(say, b".")
                time.sleep(9)
                os._exit(0)
        for _ in range(4):
            os.read(ready, 1)
        time.sleep(8)
    """
    portal.orders(script(forks))
    assert task.run() == 0
    used = [report["usage"] for report in portal.reports if "usage" in report]
    assert 200 << 20 < max(one["peak_memory"] for one in used) < 300 << 20
    assert max(one["memory"] for one in used) < 300 << 20


def test_stdout_and_stderr_come_in_the_order_they_were_written(task, portal):
    portal.orders("import sys\nfor i in range(50):\n  print(i, file=(sys.stdout, sys.stderr)[i % 2])\n")
    assert task.run() == 0
    assert portal.lines() == [b"%d" % i for i in range(50)]


def test_the_script_gets_flags_variables_folders_and_its_own_arguments_last(task, portal):
    task.variables = {
        "YARDMASTER_CLUSTER": json.dumps({"worker": ["a:1", "b:2"], "ps": ["c:3"]}),
        "YARDMASTER_INDEX": "1",
    }
    show = script("""
        import json, os, sys
        names = ("A", "DATA_DIR", "MY_LOGS", "TF_CONFIG", "YARDMASTER_TOKEN_FILE", "YARDMASTER_ROLE", "PYTHONPATH")
        print(json.dumps([sys.argv[1:], {n: os.environ.get(n) for n in names}, os.getcwd()]))
    """)
    portal.orders(
        show,
        spec_strategy="between_graph",
        spec_roles={"worker": {"replicas": 2}, "ps": {"replicas": 1}},
        spec_arguments=["--steps=3", "--data_dir=mine"],
        spec_environment={"A": "b"},
        spec_paths={"log_flag": "--out", "log_env": "MY_LOGS"},
    )
    assert task.run() == 0
    arguments, variables, directory = json.loads(portal.lines("worker-1")[0])
    assert arguments == [
        f"--data_dir={task.work}/data",
        f"--out={task.work}/log",
        "--ps_hosts=c:3",
        "--worker_hosts=a:1,b:2",
        "--job_name=worker",
        "--task_index=1",
        "--steps=3",
        "--data_dir=mine",
    ]
    assert variables["A"] == "b"
    assert variables["DATA_DIR"] == f"{task.work}/data"
    assert variables["MY_LOGS"] == f"{task.work}/log"
    assert json.loads(variables["TF_CONFIG"])["task"] == {"type": "worker", "index": 1}
    assert variables["YARDMASTER_TOKEN_FILE"] is None
    assert variables["YARDMASTER_ROLE"] == "worker"
    assert variables["PYTHONPATH"] == f"{task.work}/code:{task.work}/offered"
    assert directory == f"{task.work}/code"


def test_code_in_folders_is_found_and_inputs_lie_where_they_are_named(task, portal):
    portal.orders("import lib.deep, os\nprint(lib.deep.X, sorted(os.listdir(os.environ['DATA_DIR'] + '/eval')))\n")
    portal.order["code"]["files"] += [portal.add_file("lib/deep.py", b"X = 7\n"), portal.add_file("lib/e.py", b"")]
    portal.order["inputs"] = [
        {"version": "d1", "name": "train", "files": [portal.add_file("t.bin", b"t")]},
        {"version": "d2", "name": "eval", "files": [portal.add_file("e.bin", b"e"), portal.add_file("f.bin", b"f")]},
    ]
    assert task.run() == 0
    assert portal.lines() == [b"7 ['e.bin', 'f.bin']"]
    assert (task.work / "data" / "train" / "t.bin").read_bytes() == b"t"


def test_one_input_without_a_name_is_the_data_folder(task, portal):
    portal.orders("import os\nprint(open(os.environ['DATA_DIR'] + '/a/t.bin').read())\n")
    portal.order["inputs"] = [{"version": "d1", "name": "", "files": [portal.add_file("a/t.bin", b"content")]}]
    assert task.run() == 0
    assert portal.lines() == [b"content"]


def test_inputs_of_many_files_come_by_page_and_are_fetched_once(task, portal):
    portal.orders("import os\nprint(sorted(os.listdir(os.environ['DATA_DIR'])))\n")
    files = [portal.add_file(f"{number}.bin", bytes([number])) for number in range(5)]
    portal.order["inputs"] = [{"version": "d1", "name": "", "files": files[:2], "next": "1.bin"}]
    portal.pages = {
        "1.bin": {"files": files[2:4], "next": "3.bin"},
        "3.bin": {"files": files[4:], "next": None},
    }
    assert task.run() == 0
    assert portal.lines() == [b"['0.bin', '1.bin', '2.bin', '3.bin', '4.bin']"]
    assert task.run() == 0
    assert sorted(portal.served) == ["0.bin", "1.bin", "2.bin", "3.bin", "4.bin", "train.py"]


@pytest.mark.parametrize(
    ("text", "exit_code", "reason", "message"),
    [
        ("raise SystemExit(7)", 7, "ScriptFailed", ""),
        ("raise ValueError('too bad')", 1, "ScriptFailed", "ValueError: too bad"),
        ("import no_such_module", 1, "ImportFailed", "ModuleNotFoundError: No module named 'no_such_module'"),
        ("def f(:", 1, "SyntaxError", "SyntaxError: invalid syntax"),
        ("raise MemoryError()", 1, "OutOfMemory", "MemoryError"),
        ("raise OSError(28, 'No space left on device')", 1, "DiskFull", "OSError: [Errno 28] No space left on device"),
        ("import os; os.kill(os.getpid(), 9)", 137, "Killed", "it was ended by signal 9 (SIGKILL)."),
        ("import os; os.abort()", 134, "Killed", "it was ended by signal 6 (SIGABRT)."),
        ("import sys; sys.exit(90)", 90, "ScriptFailed", ""),
    ],
)
def test_a_script_that_ends_badly_says_why(task, portal, text, exit_code, reason, message):
    portal.orders(text)
    assert task.run() == exit_code
    last = portal.reports[-1]
    assert (last["exit_code"], last["reason"], last.get("message", "")) == (exit_code, reason, message)
    assert json.loads((task.work / "exit.json").read_text())["reason"] == reason


def test_a_script_that_does_not_exist_is_named_with_what_is_there(task, portal):
    portal.orders("", entry_point="main.py")
    assert task.run() == 90
    assert portal.reports[-1]["reason"] == "ScriptNotFound"
    assert "main.py is not in the code, which has: train.py" in portal.reports[-1]["message"]
    assert portal.lines()[0].startswith(b"yardmaster: the entry point main.py")


def test_a_refused_token_ends_the_task_at_once(task, portal):
    portal.orders("")
    task.environment()
    portal.trouble = lambda method, path: 401
    assert task.run() == 92
    assert json.loads((task.work / "exit.json").read_text())["reason"] == "TokenRefused"


def test_a_missing_setting_is_named(task):
    task.variables = {"YARDMASTER_URL": ""}
    assert task.run() == 90
    assert b"YARDMASTER_URL is not set" in task.said


def test_binary_output_and_endless_lines_are_kept_and_cut(task, portal):
    kept = bytes(one for one in range(256) if one not in b"\b\r")
    portal.orders(f"import sys\nout = sys.stdout.buffer\nout.write({kept!r} + b'\\n')\nout.write(b'x' * 1_000_000)\n")
    assert task.run() == 0
    text = bytes(portal.logs["worker-0"])
    assert text.startswith(kept)
    rest = text[len(kept) + 1 :].split(b"\n")
    assert max(len(line) for line in rest) < 65536
    assert sum(line.count(b"x") for line in rest) == 1_000_000


def test_progress_and_scalars_are_reported_from_output_and_event_files(task, portal):
    from tests.unit.runner.event_writer import event, framed, scalar

    content = framed(event(step=5, summary=[scalar("loss", 0.5)])) + framed(
        event(step=6, summary=[scalar("loss", 0.25)])
    )
    text = f"""
        import os, time
        folder = os.environ["LOG_DIR"] + "/train"
        os.makedirs(folder)
        with open(folder + "/events.out.tfevents.1.host", "wb") as file:
            file.write({content!r})
        print("Epoch 2/5")
        time.sleep(1.5)
    """
    portal.orders(script(text))
    assert task.run() == 0
    assert portal.reports[-1]["progress"] == {"step": 6, "epoch": 2, "epochs": 2}
    scalars = [one for report in portal.reports for one in report.get("scalars", [])]
    assert [(one["run"], one["tag"], one["step"], one["value"]) for one in scalars] == [
        ("train", "loss", 5, 0.5),
        ("train", "loss", 6, 0.25),
    ]
    gaps = [b - a for a, b in zip(portal.report_times, portal.report_times[1:-1], strict=False)]
    assert all(gap > 0.9 for gap in gaps)


CHECKPOINT = """
    import os
    log = os.environ["LOG_DIR"]
    for name in ("model.ckpt-%d.index", "model.ckpt-%d.data-00000-of-00001", "model.ckpt-%d.meta"):
        open(os.path.join(log, name % 20), "w").write("of step 20")
    open(log + "/checkpoint", "w").write('model_checkpoint_path: "%s/model.ckpt-20"' % log)
    model = os.environ["MODEL_DIR"]
    os.makedirs(model + "/variables")
    open(model + "/saved_model.pb", "wb").write(b"m" * 2_500_000)
    open(model + "/variables/empty", "w").close()
"""


def test_the_last_checkpoint_and_the_model_are_kept(task, portal):
    portal.orders(script(CHECKPOINT))
    assert task.run() == 0
    (checkpoint,) = uploaded(portal, "checkpoints")
    assert checkpoint["model.ckpt-20.index"] == b"of step 20"
    assert checkpoint["checkpoint"].startswith(b'model_checkpoint_path: "model.ckpt-20"\n')
    assert [upload["body"].get("step") for upload in portal.uploads.values()].count(20) == 1
    (model,) = uploaded(portal, "model")
    assert model == {"saved_model.pb": b"m" * 2_500_000, "variables/empty": b""}
    assert "uploading" in portal.states or portal.states[-1] == "ended"


def test_the_addresses_of_all_files_are_asked_for_at_once_and_asked_for_again_where_one_fails(task, portal):
    portal.orders(script(CHECKPOINT))
    refused = []

    def refuse_one(method, path):
        if method == "PUT" and path.endswith("/2/1") and not refused:
            refused.append(path)
            return 500
        return None

    portal.trouble = refuse_one
    assert task.run() == 0
    asked = [path.split("/")[1] for _, path in portal.requests if path.endswith("/parts/")]
    again = refused[0].split("/")[2]
    assert sorted(asked) == sorted([*portal.uploads, again])
    assert len(uploaded(portal, "checkpoints")) == len(uploaded(portal, "model")) == 1


def test_a_failed_script_leaves_its_checkpoint_but_no_model(task, portal):
    portal.orders(script(CHECKPOINT) + "raise SystemExit(3)")
    assert task.run() == 3
    assert len(uploaded(portal, "checkpoints")) == 1
    assert uploaded(portal, "model") == []


def test_a_restarted_task_does_not_send_a_checkpoint_that_is_there_already(task, portal):
    portal.orders(script(CHECKPOINT))
    portal.trouble = lambda method, path: 409 if path == "checkpoints/" else None
    assert task.run() == 0
    assert "reason" not in portal.reports[-1]


def test_a_checkpoint_that_the_quota_does_not_hold_is_said_to_be_lost(task, portal):
    portal.orders(script(CHECKPOINT))
    portal.trouble = lambda method, path: 409 if path == "checkpoints/" else None
    portal.trouble_code = "quota_full"
    assert task.run() == 0
    assert portal.reports[-1]["reason"] == "UploadFailed"
    assert "is not kept: 409" in portal.reports[-1]["message"]


def test_a_report_that_is_refused_for_its_scalars_is_told_without_them(task, portal):
    from tests.unit.runner.event_writer import event, framed, scalar

    content = framed(event(step=5, summary=[scalar("loss", 0.5)]))
    portal.orders(f"import os\nopen(os.environ['LOG_DIR'] + '/x.tfevents.1', 'wb').write({content!r})\n")
    refused = []

    def refuse_scalars(method, path):
        if path == "report/" and b"scalars" in portal.body and not refused:
            refused.append(1)
            return 400
        return None

    portal.trouble = refuse_scalars
    assert task.run() == 0
    assert refused
    assert portal.reports[-1]["state"] == "ended"


def test_a_task_that_does_not_decide_keeps_nothing(task, portal):
    portal.orders(script(CHECKPOINT), spec_roles={"worker": {"replicas": 2}}, spec_strategy="multi_worker_mirrored")
    task.variables = {"YARDMASTER_INDEX": "1"}
    assert task.run() == 0
    assert portal.uploads == {}


def test_a_model_that_cannot_be_stored_is_said_and_the_exit_stays(task, portal):
    portal.orders(script(CHECKPOINT))
    portal.trouble = lambda method, path: 422 if path == "model/" else None
    assert task.run() == 0
    assert portal.reports[-1]["reason"] == "UploadFailed"
    assert "the model is not kept: 422" in portal.reports[-1]["message"]


RESUME = """
    import os
    log = os.environ["LOG_DIR"]
    print(sorted(os.listdir(log)), open(log + "/model.ckpt-20.index").read())
"""


def test_a_checkpoint_is_put_back_before_the_script_starts(task, portal):
    portal.orders(script(RESUME))
    names = ("model.ckpt-20.index", "model.ckpt-20.data-00000-of-00001")
    files = [portal.add_file(name, b"kept") for name in names]
    files.append(portal.add_file("checkpoint", b'model_checkpoint_path: "model.ckpt-20"\n'))
    portal.order["checkpoint"] = {"step": 20, "files": files}
    assert task.run() == 0
    shown = f"['checkpoint', '{names[1]}', '{names[0]}'] kept"
    assert portal.lines() == [shown.encode()]


def test_a_log_directory_with_a_newer_checkpoint_is_left_alone(task, portal):
    test_a_checkpoint_is_put_back_before_the_script_starts(task, portal)
    (task.work / "log" / "model.ckpt-20.index").write_text("newer")
    assert task.run() == 0
    assert portal.lines()[-1].endswith(b"newer")


def test_the_packed_runner_needs_nothing_but_python(task, portal, tmp_path):
    archive = tmp_path / "yardmaster_runner.pyz"
    pack(str(archive))
    again = tmp_path / "again.pyz"
    pack(str(again))
    assert archive.read_bytes() == again.read_bytes()
    portal.orders("print('packed')\n")
    task.variables = {"PYTHONPATH": ""}
    assert task.run(sys.executable, "-I", "-S", str(archive)) == 0
    assert portal.lines() == [b"packed"]


def test_a_token_that_the_script_prints_is_in_no_log_and_no_message(task, portal):
    """Read from where the runner has it, printed at once and in pieces, over the length of a line, and at the end."""
    portal.token = "ymt." + "0123456789abcdef" * 6
    token_file = task.folder / "its-token"
    token_file.write_text(portal.token)
    task.variables["YARDMASTER_TOKEN_FILE"] = str(token_file)
    portal.orders(
        f"""
import os, time
token = open({str(token_file)!r}).read()
print("Bearer " + token, flush=True)
for piece in (token[:7], token[7:30], token[30:], "\\n"):
    os.write(1, piece.encode())
    time.sleep(0.1)
os.write(1, b"x" * 65500 + token.encode() + b"\\n")
raise ValueError("portal said no to " + token)
"""
    )
    assert task.run() == 1
    assert portal.lines()[:2] == [b"Bearer [task token]", b"[task token]"]
    assert portal.token[:20].encode() not in b"\n".join(portal.lines())
    assert portal.lines()[-1] == b"ValueError: portal said no to [task token]"
    assert portal.reports[-1]["message"] == "ValueError: portal said no to [task token]"
    assert portal.token not in (task.work / "exit.json").read_text()
    assert portal.token.encode() not in task.said
