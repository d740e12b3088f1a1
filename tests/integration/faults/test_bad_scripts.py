"""Scripts as they come: broken, deaf, talkative, hungry, or written for another place. Each ends with a verdict that
says what it was and what helps, and leaves nothing behind.
"""

from __future__ import annotations

import contextlib
import os
import time
from pathlib import Path

import pytest

from tests.real.scene import SMALL, Scene, is_alive, until
from yardmaster_client import Job, PortalError
from yardmaster_client.signed import Passing

pytestmark = [pytest.mark.slow, pytest.mark.linux, pytest.mark.timeout(300)]

MIB = 1 << 20


# --- refused before anything is made ---------------------------------------------------------------------------------


def refusal(scene: Scene, files: dict[str, str], **changes) -> PortalError:
    jobs_before = scene.ask("SELECT COUNT(*) FROM jobs_job")
    code = scene.put_code(files)
    with pytest.raises(PortalError) as caught:
        scene.client.jobs.launch(scene.spec(code, **changes))
    assert scene.ask("SELECT COUNT(*) FROM jobs_job") == jobs_before, "a refused job was made all the same"
    assert (caught.value.status, caught.value.code) == (422, "spec_rejected")
    return caught.value


def test_an_entry_point_that_does_not_exist_is_refused_by_its_field(portal_scene: Scene, tmp_path: Path):
    (error,) = refusal(portal_scene, {"train.py": "print()"}, entry_point="trian.py").errors
    assert (error.field, error.code) == ("entry_point", "entry_point_missing")
    assert "trian.py is not in the code version" in error.message
    assert error.remedy == "Did you mean train.py?"


def test_the_command_says_the_same_as_the_api(portal_scene: Scene, tmp_path: Path):
    code = portal_scene.put_code({"train.py": "print()"})
    file = tmp_path / "job.yaml"
    file.write_text(
        f"name: x\nstrategy: single\nroles: {{worker: {{cpu: 0.1, memory: 256Mi}}}}\ncode: {code}\n"
        "entry_point: trian.py\nretries: -1\n"
    )
    done = portal_scene.command("jobs", "launch", str(file))
    assert done.returncode == 1
    assert done.stdout == ""
    assert "retries" in done.stderr
    assert "Traceback" not in done.stderr
    file.write_text(file.read_text().replace("retries: -1\n", ""))
    done = portal_scene.command("jobs", "launch", str(file))
    assert done.returncode == 1
    for words in ("entry_point", "trian.py is not in the code version", "Did you mean train.py?"):
        assert words in done.stderr


def test_a_script_that_is_no_python_is_refused_with_its_line(portal_scene: Scene):
    (error,) = refusal(portal_scene, {"main.py": "import os\ndef train(:\n    pass\n"}).errors
    assert error.code == "syntax_error"
    assert "main.py, line 2" in error.message


def test_a_notebook_saved_as_a_script_is_refused_with_what_to_remove(portal_scene: Scene):
    (error,) = refusal(portal_scene, {"main.py": "!pip install torch\nprint(1)\n"}).errors
    assert error.code == "notebook_magic"
    assert "!pip install torch" in error.message
    assert "task environment" in error.remedy


# --- ended with a verdict --------------------------------------------------------------------------------------------

COLAB = """
from google.colab import drive
with open("/content/drive/MyDrive/train.csv") as file:
    print(file.read())
"""
COLAB_WITHOUT_ITS_IMPORT = COLAB.replace("from google.colab import drive", "")

VERDICTS = [
    ("an import that fails", "import a_module_that_nobody_has", "ImportFailed", "a_module_that_nobody_has", "code"),
    (
        "a module of its own that is no Python",
        "import importlib\nimportlib.import_module('part')",
        "SyntaxError",
        "Python could not parse",
        "Correct the line",
    ),
    ("an exit code of its own", "raise SystemExit(3)", "ScriptFailed", "exit code 3", "log"),
    ("a crash in native code", "import os; os.kill(os.getpid(), 11)", "Killed", "SIGSEGV", "memory"),
    ("a notebook's import", COLAB, "ImportFailed", "google", "code version"),
    ("a notebook's path", COLAB_WITHOUT_ITS_IMPORT, "ScriptFailed", "/content/drive/MyDrive/train.csv", "dataset"),
    ("a full disk of its own", "raise OSError(28, 'No space left on device')", "DiskFull", "space", "checkpoints"),
]


@pytest.mark.parametrize(
    ("script", "reason", "message", "remedy"), [one[1:] for one in VERDICTS], ids=[one[0] for one in VERDICTS]
)
def test_a_failure_has_a_verdict_that_helps(portal_scene: Scene, script: str, reason: str, message: str, remedy: str):
    code = portal_scene.put_code({"main.py": script, "part.py": "def (:"})
    job = portal_scene.settled(portal_scene.client.jobs.launch(portal_scene.spec(code)))
    why = portal_scene.client.jobs.why(job.id)
    told = f"{job.message} {why}"
    assert (job.phase, job.reason) == ("FAILED", reason), told
    assert message in told
    assert remedy in f"{job.remedy} {why}", told
    portal_scene.assert_nothing_is_left(job)


def test_a_script_from_a_notebook_is_warned_about_before_it_runs(portal_scene: Scene):
    spec = portal_scene.spec(portal_scene.put_code({"main.py": COLAB}))
    warnings = {one["code"]: one for one in portal_scene.client.jobs.check(spec)["warnings"]}
    assert {"notebook_only", "foreign_path"} <= warnings.keys()
    assert "/content/drive/MyDrive/train.csv" in warnings["foreign_path"]["message"]
    assert warnings["foreign_path"]["line"] == 3
    assert "dataset" in warnings["foreign_path"]["remedy"]


def test_a_task_that_takes_more_memory_than_it_asked_for_is_out_of_memory(portal_scene: Scene):
    eater = "import time\nkept = []\nfor _ in range(40):\n    kept.append(b'x' * (32 << 20)); time.sleep(0.1)\n"
    job = portal_scene.launch(eater + "time.sleep(60)", roles={"worker": {**SMALL, "memory": "256Mi"}})
    job = portal_scene.settled(job)
    assert (job.phase, job.reason) == ("FAILED", "OutOfMemory")
    assert "256 MiB" in job.message
    (task,) = portal_scene.client.jobs.tasks(job.id)
    assert task["peak_memory"] > 256 * MIB
    assert "memory" in job.remedy
    portal_scene.assert_nothing_is_left(job)


# --- ended although they do not want to ------------------------------------------------------------------------------

LINGERING = """
import os, sys, time
if os.fork() == 0:
    os.setsid()
    if os.fork() == 0:
        with open(sys.argv[1], "w") as file:
            file.write(str(os.getpid()))
        os.execve(sys.executable, [sys.executable, "-c", "import time; time.sleep(600)"], {})
    os._exit(0)
os.wait()
while not os.path.exists(sys.argv[1]) or not open(sys.argv[1]).read():
    time.sleep(0.01)
print("the script is done, its child is not", flush=True)
"""


def test_a_child_that_left_its_session_and_environment_ends_with_the_script(portal_scene: Scene):
    note = portal_scene.traces / "lingering"
    job = portal_scene.launch(LINGERING, arguments=[str(note)])
    job = portal_scene.settled(job)
    assert job.phase == "SUCCEEDED", job.message
    assert not is_alive(int(note.read_text()))
    assert portal_scene.lines(job) == ["the script is done, its child is not"]
    portal_scene.assert_nothing_is_left(job)


def test_a_script_that_ignores_sigterm_is_killed_after_its_grace(portal_scene: Scene):
    deaf = (
        "import signal, time\nsignal.signal(signal.SIGTERM, signal.SIG_IGN)\nprint('deaf', flush=True)\n"
        "while True:\n    time.sleep(60)\n"
    )
    job = portal_scene.launch(deaf, grace_period=2)
    until(lambda: portal_scene.portal_has_line(job, "worker", 0), what="its first line")
    portal_scene.client.jobs.stop(job.id)
    begun = time.monotonic()
    job = portal_scene.settled(job)
    assert job.phase == "STOPPED"
    assert time.monotonic() - begun < 20
    assert portal_scene.lines(job) == ["deaf"]
    portal_scene.assert_nothing_is_left(job)


# --- print what nobody can read --------------------------------------------------------------------------------------


def raw_log(scene: Scene, job: Job) -> bytes:
    pieces: list[bytes] = []
    scene.client.transport.download(f"jobs/{job.id}/logs/raw/", Passing(pieces.append), role="worker", index=0)
    return b"".join(pieces)


def test_binary_output_is_kept_byte_by_byte_and_shown_as_text(portal_scene: Scene):
    """But for the characters that redraw a line: those are applied, as in a terminal."""
    plain = bytes(one for one in range(256) if one not in b"\b\r\x1b")
    job = portal_scene.launch(f"import os\nos.write(1, {plain!r} * 40)\nos.write(1, b'\\nend\\n')\n")
    job = portal_scene.settled(job)
    assert job.phase == "SUCCEEDED"
    assert raw_log(portal_scene, job) == plain * 40 + b"\nend\n"
    shown = portal_scene.lines(job)
    assert len(shown) == 42
    assert shown[-1] == "end"
    assert [line.text for line in portal_scene.client.jobs.search(job.id, "end")] == ["end"]


def test_a_line_without_end_is_cut_and_none_of_it_lost(portal_scene: Scene):
    job = portal_scene.launch(f"import sys\nsys.stdout.write('x' * {5 * MIB})\nsys.stdout.write('\\nend\\n')\n")
    job = portal_scene.settled(job)
    assert job.phase == "SUCCEEDED"
    shown = portal_scene.lines(job)
    assert shown[-1] == "end"
    assert max(map(len, shown)) < 66_000
    assert sum(line.count("x") for line in shown) == 5 * MIB


@pytest.mark.long
def test_a_gigabyte_of_log_is_kept_in_little_memory(portal_scene: Scene):
    """Its end can be read at once, and neither portal nor runner grow with it."""
    chatter = (
        "import os\nnumber = 0\n"
        "for _ in range(1024):\n"
        "    block = b''.join(b'%07d ' % (number + n) + b'.' * 1015 + b'\\n' for n in range(1024))\n"
        "    number += 1024\n"
        "    view = memoryview(block)\n"
        "    while view:\n        view = view[os.write(1, view):]\n"
    )
    job = portal_scene.launch(chatter)
    runner_peak = 0
    while portal_scene.row(job, "phase")[0] not in ("SUCCEEDED", "FAILED"):
        runner_peak = max([runner_peak, *(peak_memory(pid) for pid in portal_scene.runners(job))])
        time.sleep(0.3)
    job = portal_scene.settled(job)
    assert job.phase == "SUCCEEDED", job.message
    (stream,) = portal_scene.client.jobs.streams(job.id)
    assert (stream["lines"], stream["bytes"], stream["gaps"]) == (1 << 20, 1 << 30, [])
    took: list[float] = []
    for _ in range(3):  # a reader remembers nothing: to read it all would take long each time
        begun = time.monotonic()
        last = portal_scene.lines(job, start=-3)
        took.append(time.monotonic() - begun)
    assert min(took) < 5, took
    assert [line[:7] for line in last] == [f"{(1 << 20) - n:07}" for n in (3, 2, 1)]
    assert 0 < runner_peak < 200 * MIB
    assert peak_memory(portal_scene.portal.running["web"].pid) < 600 * MIB
    portal_scene.client.jobs.delete(job.id)
    until(lambda: not stored_logs(portal_scene, job), what="the log to be removed")


def peak_memory(pid: int) -> int:
    """The most memory that the process ever held, in bytes."""
    with contextlib.suppress(OSError):
        for line in Path(f"/proc/{pid}/status").read_text().splitlines():
            if line.startswith("VmHWM:"):
                return int(line.split()[1]) << 10
    return 0


def stored_logs(scene: Scene, job: Job) -> list[str]:
    from uuid import UUID

    from yardmaster.ids import short

    return [name for name in os.listdir(scene.portal.home / "logs") if short(UUID(job.id)) in name]
