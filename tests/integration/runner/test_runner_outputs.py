"""What a real runner sends of what its script writes: outputs while it runs and at its end, exports after a stop."""

from __future__ import annotations

import json
import os
import signal
import textwrap
import threading
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

import pytest

from portal.env import task_python
from tests.integration.runner.conftest import Task, changed_runner
from tests.integration.runner.fake_task_portal import FakeTaskPortal, uploaded
from tests.unit.runner.event_writer import event, framed, scalar
from yardmaster_runner import output_files, output_keeper, output_sender
from yardmaster_runner.output_keeper import OutputKeeper
from yardmaster_runner.output_sender import OutputSender
from yardmaster_runner.patience import Haste, Patience
from yardmaster_runner.portal import Portal
from yardmaster_runner.task_api import TaskApi
from yardmaster_runner.upload import Uploader

EVENTS = "events.out.tfevents.1.host"


def all_outputs(portal: FakeTaskPortal) -> dict[str, bytes]:
    """Every file as the portal would show it."""
    found: dict[str, bytes] = {}
    for upload in portal.uploads.values():
        if upload["kind"] == "outputs" and upload["state"] == "complete":
            for index, one in enumerate(upload["body"]["files"]):
                content = b"".join(part for _, part in sorted(upload["content"][index].items()))
                start = upload["body"]["starts"][index]
                found[one["path"]] = found.get(one["path"], b"")[:start] + content
    return found


def until(condition, seconds: float = 30.0) -> None:
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.05)


@pytest.fixture
def keeper_of() -> Iterator[Callable[..., OutputKeeper]]:
    """Makes one whose looks the test calls."""
    made: list[TaskApi] = []
    yield partial(make_keeper, made)
    for api in made:
        api.portal.hosts.forget(api.portal._base)


def make_keeper(made: list[TaskApi], task: Task, portal: FakeTaskPortal, patience: float = 2.0, **how) -> OutputKeeper:
    of_folder = {"asks_first": how.pop("asks_first", False)}
    token = task.folder / "token"
    token.write_text(portal.token)
    api = TaskApi(Portal(portal.url, str(token)), "worker", 0)
    made.append(api)
    uploader = Uploader(api, api.portal.hosts, Patience(patience, Haste()))
    log = task.folder / "log"
    log.mkdir(exist_ok=True)
    problems: list[str] = []
    sender = OutputSender(api, str(log), str(task.folder / "scratch"), **of_folder)
    keeper = OutputKeeper(uploader, uploader, [sender], problems.append, **how)
    keeper.problems = problems  # type: ignore[attr-defined]
    return keeper


def look(keeper: OutputKeeper, *, is_last: bool = False) -> str:
    return keeper.senders[0].send_new(keeper._running, is_last=is_last)


def test_while_a_tensorboard_shows_the_job_its_new_steps_are_sent_within_seconds(
    task: Task, portal, keeper_of, monkeypatch
):
    monkeypatch.setattr(output_keeper, "FIRST_LOOK", 120.0)  # beyond what is waited for
    monkeypatch.setattr(output_keeper, "PAUSE_TIMES_WORK", 0.0)  # a look that a busy machine stalls has no long rest
    watched = threading.Event()
    keeper = keeper_of(task, portal, is_watched=watched.is_set)
    (task.folder / "log" / "notes.txt").write_text("kept with the others")
    api = keeper.senders[0]._api
    running = threading.Thread(target=lambda: (keeper.run(), api.portal.hosts.forget(portal.url)))
    running.start()
    with (task.folder / "log" / EVENTS).open("ab", buffering=0) as file:
        file.write(framed(event(step=1, summary=[scalar("loss", 0.5)])))
        time.sleep(2 * output_keeper.WATCHED_EVERY)
        assert all_outputs(portal) == {}, "as today where no TensorBoard shows it"
        watched.set()
        for step in range(2, 4):
            file.write(framed(event(step=step, summary=[scalar("loss", 0.5)])))
            size = (task.folder / "log" / EVENTS).stat().st_size
            until(lambda size=size: len(all_outputs(portal).get(EVENTS, b"")) == size)
    assert "notes.txt" not in all_outputs(portal)
    keeper.finish()
    running.join(20)
    assert "notes.txt" in all_outputs(portal)


def test_looks_take_a_fifth_of_the_time_whichever_they_are():
    looks = output_keeper.Looks(10.0, 2.0)
    assert (looks.is_whole(2), looks.is_due(2), looks.is_due(1.9)) == (False, True, False)
    assert looks.pause(0) == 2
    looks.ended(2, 5, is_whole=False)
    assert (looks.is_due(16.9), looks.is_due(17), looks.is_whole(16.9)) == (False, True, False)
    looks.ended(17, 17.1, is_whole=True)
    assert (looks.is_due(19), looks.is_due(19.2), looks.is_whole(47), looks.is_whole(47.2)) == (
        False,
        True,
        False,
        True,
    )
    looks.ended(20, 20.1, is_whole=False)
    assert looks.is_whole(47.2), "looks at event files alone do not put off the others"


def test_the_runner_hears_in_the_answer_to_a_report_whether_it_is_watched(task: Task, portal):
    portal.watched = True
    script = """
        import os, time
        file = open(os.path.join(os.environ["LOG_DIR"], "events.out.tfevents.1.host"), "ab", buffering=0)
        file.write(b"0" * 50)
        print("ready", flush=True)
        time.sleep(60)
    """
    portal.orders(textwrap.dedent(script))
    later = 12 * output_keeper.FIRST_LOOK  # beyond what is waited for
    change = f"from yardmaster_runner import output_keeper; output_keeper.FIRST_LOOK = {later}"
    process = task.start(*changed_runner(change))
    until(lambda: b"ready" in portal.lines())
    until(lambda: EVENTS in all_outputs(portal))
    process.terminate()
    process.communicate(timeout=30)


# --- at the end of a real task ---------------------------------------------------------------------------------------

WRITES = """
    import os
    log = os.environ["LOG_DIR"]
    os.makedirs(log + "/plots")
    open(log + "/metrics.csv", "w").write("a,b\\n1,2\\n")
    open(log + "/plots/loss.png", "wb").write(b"png" * 1000)
    open(log + "/events.out.tfevents.1.host", "wb").write(b"events")
    open(log + "/model.ckpt-1.index", "w").write("of a checkpoint")
    os.symlink("/etc/passwd", log + "/passwd")
    os.mkfifo(log + "/pipe")
    raise SystemExit({code})
"""


def script(text: str) -> str:
    return textwrap.dedent(text)


@pytest.mark.parametrize("code", [0, 3])
def test_what_a_script_has_written_is_sent_at_its_end_however_it_ended(task, portal, code):
    portal.orders(script(WRITES.replace("{code}", str(code))))
    assert task.run() == code
    assert all_outputs(portal) == {
        EVENTS: b"events", "metrics.csv": b"a,b\n1,2\n", "plots/loss.png": b"png" * 1000,
    }  # fmt: skip
    (body,) = [one["body"] for one in portal.uploads.values() if one["kind"] == "outputs"]
    assert (body["role"], body["index"], body["shared"]) == ("worker", 0, False)


def test_a_worker_that_does_not_decide_sends_its_own_and_in_a_shared_folder_nothing(task, portal, tmp_path):
    portal.orders(script(WRITES.replace("{code}", "0")), spec_roles={"worker": {"replicas": 2}})
    task.variables["YARDMASTER_INDEX"] = "1"
    assert task.run() == 0
    assert EVENTS in all_outputs(portal)
    portal.uploads.clear()
    shared = tmp_path / "shared"
    shared.mkdir()
    task.variables["YARDMASTER_LOG_DIR"] = str(shared)
    assert task.run() == 0
    assert all_outputs(portal) == {}


def test_the_evaluator_sends_at_its_end_what_it_has_added_to_a_shared_folder(task, portal, tmp_path):
    shared = tmp_path / "shared"
    shared.mkdir()
    (shared / EVENTS).write_bytes(b"of the chief alone, eval")
    (shared / "metrics.csv").write_bytes(b"of the chief")
    portal.event_files = [{"path": EVENTS, "size": 18}]
    text = "import os\nopen(os.environ['LOG_DIR'] + '/eval.tfevents.2', 'w').write('evaluated')\n"
    portal.orders(text, spec_roles={"chief": {"replicas": 1}, "evaluator": {"replicas": 1}})
    task.variables |= {"YARDMASTER_LOG_DIR": str(shared), "YARDMASTER_ROLE": "evaluator"}
    assert task.run() == 0
    assert all_outputs(portal) == {EVENTS: b", eval", "eval.tfevents.2": b"evaluated"}


def test_a_store_that_takes_no_outputs_fails_no_job_and_the_portal_is_told_why(task, portal):
    portal.orders(script(WRITES.replace("{code}", "0")))
    portal.trouble = lambda method, path: 409 if path == "outputs/" else None
    portal.trouble_code = "quota_full"
    assert task.run() == 0
    assert portal.reports[-1]["state"] == "ended"
    assert portal.reports[-1]["exit_code"] == 0
    assert "409" in portal.reports[-1]["unsaved"]["outputs"]


# --- exports after a stop --------------------------------------------------------------------------------------------

EXPORTS = """
    import os, signal, sys, time
    def export(number, frame):
        model = os.environ["MODEL_DIR"]
        os.makedirs(model + "/variables")
        open(model + "/saved_model.pb", "w").write("exported")
        open(model + "/variables/variables.data-00000-of-00001", "w").write("weights")
        {end}
    signal.signal(signal.SIGTERM, export)
    print("ready", flush=True)
    while True:
        time.sleep(0.05)
"""
FINISHES = 'open(model + "/variables/variables.index", "w").write("index"); sys.exit(0)'


STALLS_AS_LONG_AS_GRACE = changed_runner("from yardmaster_runner import patience; patience.STALL_TIMES_GRACE = 1.0")
"""A runner whose uploads may stand still for one grace period, so that the script has time and the test is short."""


def stopped(task: Task, portal: FakeTaskPortal, text: str, command: tuple[str, ...] = (), **changes) -> int:
    portal.orders(script(text), **changes)
    process = task.start(*command)
    try:
        until(lambda: b"ready" in portal.lines(), 90)
        process.send_signal(signal.SIGTERM)
        _, task.said = process.communicate(timeout=60)
        return process.returncode
    finally:
        process.kill()


def test_an_export_that_a_script_writes_after_sigterm_is_kept(task, portal):
    assert stopped(task, portal, EXPORTS.replace("{end}", FINISHES)) == 143
    (model,) = uploaded(portal, "model")
    assert sorted(model) == ["saved_model.pb", "variables/variables.data-00000-of-00001", "variables/variables.index"]
    (body,) = [one["body"] for one in portal.uploads.values() if one["kind"] == "model"]
    assert body["stopped"] is True


def test_a_complete_export_is_kept_whatever_the_exit_code_after_the_stop(task, portal):
    assert stopped(task, portal, EXPORTS.replace("{end}", FINISHES.replace("exit(0)", "exit(7)"))) == 7
    assert len(uploaded(portal, "model")) == 1


@pytest.mark.parametrize(("end", "code"), [("time.sleep(60)", 137), ("sys.exit(7)", 7)])
def test_half_an_export_of_a_script_that_did_not_end_well_is_not_kept_and_the_portal_is_told(task, portal, end, code):
    assert stopped(task, portal, EXPORTS.replace("{end}", end), spec_grace_period=6) == code
    assert uploaded(portal, "model") == []
    assert "did not end with exit code 0" in portal.reports[-1]["unsaved"]["model"]


def test_a_complete_export_of_a_script_that_was_killed_afterwards_is_kept(task, portal):
    end = FINISHES.replace("sys.exit(0)", "time.sleep(60)")
    assert stopped(task, portal, EXPORTS.replace("{end}", end), spec_grace_period=6) == 137
    assert len(uploaded(portal, "model")) == 1


def test_an_upload_may_take_longer_than_the_grace_period_has_left(task, portal):
    """The grace period is the script's. The upload has time of its own."""
    slow = threading.Event()

    def trouble(method: str, path: str) -> int | None:
        if path == "model/" and not slow.is_set():
            slow.set()
            threading.Timer(5, lambda: setattr(portal, "trouble", lambda method, path: None)).start()
        return 503 if path == "model/" else None

    portal.trouble = trouble
    assert stopped(task, portal, EXPORTS.replace("{end}", FINISHES), spec_grace_period=4) == 143
    assert len(uploaded(portal, "model")) == 1


def test_the_time_for_uploads_after_a_stop_is_bounded(task, portal):
    portal.trouble = lambda method, path: 503 if path == "model/" else None
    begun = time.monotonic()
    text = EXPORTS.replace("{end}", FINISHES)
    assert stopped(task, portal, text, STALLS_AS_LONG_AS_GRACE, spec_grace_period=5) == 143
    assert time.monotonic() - begun < 30
    assert "503" in portal.reports[-1]["unsaved"]["model"]


def test_uploads_after_a_stop_continue_as_long_as_bytes_move(task, portal):
    """The store takes longer than the time for which nothing may move, and never as long between two parts."""
    portal.part_size = 2
    portal.trouble = lambda method, path: time.sleep(1.0) if path.startswith("/parts/") else None
    begun = time.monotonic()
    text = EXPORTS.replace("{end}", FINISHES)
    assert stopped(task, portal, text, STALLS_AS_LONG_AS_GRACE, spec_grace_period=5) == 143
    assert time.monotonic() - begun > 5 + 5
    (model,) = uploaded(portal, "model")
    assert model["saved_model.pb"] == b"exported"


WITH_TENSORFLOW = """
    import os, signal, time
    import tensorflow as tf
    module = tf.Module()
    module.weight = tf.Variable([1.0, 2.0])
    module.serve = tf.function(lambda: module.weight, input_signature=[])
    def export(number, frame):
        tf.saved_model.save(module, os.environ["MODEL_DIR"], signatures={"serving_default": module.serve})
        print("exported", flush=True)
        time.sleep(60)
    signal.signal(signal.SIGTERM, export)
    writer = tf.summary.create_file_writer(os.environ["LOG_DIR"] + "/train")
    with writer.as_default():
        tf.summary.scalar("loss", 0.5, step=3)
    writer.flush()
    print("ready", flush=True)
    while True:
        time.sleep(0.05)
"""


@pytest.mark.timeout(180)
def test_what_tensorflow_itself_exports_is_known_to_be_complete(task, portal):
    """Its files, temporary names and folders are TensorFlow's own; the script is killed after its export."""
    task.variables["YARDMASTER_PYTHON"] = task_python()
    assert stopped(task, portal, WITH_TENSORFLOW, spec_grace_period=15) == 137
    assert b"exported" in portal.lines()
    (model,) = uploaded(portal, "model")
    assert {"saved_model.pb", "variables/variables.index", "variables/variables.data-00000-of-00001"} <= model.keys()
    assert portal.reports[-1]["unsaved"] == {"model": ""}
    (events,) = [path for path in all_outputs(portal) if path.startswith("train/events.out.tfevents.")]
    assert b"loss" in all_outputs(portal)[events]


# --- while the script runs -------------------------------------------------------------------------------------------


def test_only_what_was_added_is_sent_again(task, portal, keeper_of):
    keeper = keeper_of(task, portal)
    log = Path(keeper.senders[0].folder)
    records = [framed(event(step=step, summary=[scalar("loss", step)])) for step in range(100)]
    (log / EVENTS).write_bytes(b"".join(records[:90]))
    (log / "metrics.csv").write_bytes(b"a,b\n")
    assert look(keeper) == ""
    with (log / EVENTS).open("ab") as file:
        file.write(b"".join(records[90:]))
    assert look(keeper) == ""
    first, second = [one["body"] for one in portal.uploads.values()]
    assert [one["path"] for one in first["files"]] == [EVENTS, "metrics.csv"] or len(first["files"]) == 2
    assert [(one["path"], one["size"]) for one in second["files"]] == [(EVENTS, sum(map(len, records[90:])))]
    assert all_outputs(portal)[EVENTS] == b"".join(records)
    assert look(keeper) == ""
    assert len(portal.uploads) == 2


def test_thousands_of_small_files_come_in_few_uploads(task, portal, keeper_of):
    keeper = keeper_of(task, portal)
    for number in range(2_000):
        (Path(keeper.senders[0].folder) / f"{number}.txt").write_bytes(b"%d" % number)
    assert look(keeper, is_last=True) == ""
    assert len(portal.uploads) == 4
    assert all_outputs(portal) == {f"{number}.txt": b"%d" % number for number in range(2_000)}


def test_a_file_that_vanishes_or_becomes_a_link_or_a_pipe_while_it_is_sent_costs_no_other(
    task, portal, keeper_of, monkeypatch
):
    keeper = keeper_of(task, portal)
    log = Path(keeper.senders[0].folder)
    for name in ("gone.txt", "link.txt", "pipe.txt", "stays.txt"):
        (log / name).write_bytes(b"x")
    secret = task.folder / "secret"
    secret.write_bytes(b"secret")
    listed = output_sender.list_files

    def list_then_change(root: str):
        found = listed(root)
        for name in ("gone.txt", "link.txt", "pipe.txt"):
            (log / name).unlink()
        (log / "link.txt").symlink_to(secret)
        os.mkfifo(log / "pipe.txt")
        return found

    monkeypatch.setattr(output_sender, "list_files", list_then_change)
    assert look(keeper) == ""
    assert all_outputs(portal) == {"stays.txt": b"x"}


def test_a_large_file_that_changes_while_it_is_sent_is_left_for_later(task, portal, keeper_of, monkeypatch):
    monkeypatch.setattr(output_files, "SMALL", 1000)
    keeper = keeper_of(task, portal)
    large = Path(keeper.senders[0].folder) / "weights.h5"
    large.write_bytes(b"1" * 3_000_000)
    old = time.time() - 60
    os.utime(large, (old, old))

    def change(method: str, path: str) -> None:
        if method == "PUT":
            large.write_bytes(b"2" * 3_000_000)

    portal.trouble = change
    assert look(keeper) == ""
    assert all_outputs(portal) == {}
    portal.trouble = lambda method, path: None
    os.utime(large, (old + 1, old + 1))
    assert look(keeper) == ""
    assert all_outputs(portal) == {"weights.h5": b"2" * 3_000_000}


def test_a_store_that_stalls_is_given_up_for_this_look_and_tried_again_at_the_next(task, portal, keeper_of):
    keeper = keeper_of(task, portal, patience=1.0)
    (Path(keeper.senders[0].folder) / "a.txt").write_bytes(b"x")
    portal.trouble = lambda method, path: 503 if path.startswith("/parts/") else None
    assert "part 1 of a.txt was not stored: the object store answers 503 (unavailable)" in look(keeper)
    portal.trouble = lambda method, path: None
    assert look(keeper) == ""
    assert all_outputs(portal) == {"a.txt": b"x"}


XML = b"<?xml version='1.0'?><Error><Code>%s</Code><Message>secret-key</Message><Key>secret-key</Key></Error>"


@pytest.mark.parametrize(
    ("status", "kind", "body", "words"),
    [
        (507, "application/xml", XML % b"XMinioStorageFull", "the object store is full (XMinioStorageFull)"),
        (403, "application/xml", XML % b"QuotaExceeded", "the object store is full (QuotaExceeded)"),
        (400, "application/xml", XML % b"BadDigest", "the bytes that arrived have another checksum (BadDigest)"),
        (403, "application/xml", XML % b"AccessDenied", "the object store refuses the signed address (AccessDenied)"),
        (503, "application/xml", XML % b"SlowDown", "the object store answers 503 (SlowDown)"),
        (
            503,
            "application/problem+json",
            b'{"status": 503, "code": "storage_full"}',
            "the object store is full (storage_full)",
        ),
        (200, "text/html", b"<html>Sign in</html>", "200 was answered, and not in the store's words"),
        (502, "text/html", b"x" * 1_000_000, "502 was answered, and not in the store's words"),
    ],
)
def test_why_the_store_does_not_take_a_part_is_said_and_it_is_stored_later(
    task, portal, keeper_of, status, kind, body, words
):
    keeper = keeper_of(task, portal, patience=0.5)
    (Path(keeper.senders[0].folder) / "a.txt").write_bytes(b"x")
    portal.in_between = lambda method, path: (status, kind, body) if "/parts/" in path and method == "PUT" else None
    said = look(keeper)
    assert f"part 1 of a.txt was not stored: {words}" in said
    assert "secret-key" not in said
    portal.in_between = lambda method, path: None
    assert look(keeper) == ""
    assert all_outputs(portal) == {"a.txt": b"x"}


def test_a_full_quota_is_said_once_and_taken_back_when_there_is_space(task, portal, keeper_of):
    keeper = keeper_of(task, portal)
    (Path(keeper.senders[0].folder) / "a.txt").write_bytes(b"x")
    portal.trouble = lambda method, path: 409 if path == "outputs/" else None
    portal.trouble_code = "quota_full"
    for _ in range(3):
        keeper.look(is_last=False)
    portal.trouble = lambda method, path: None
    keeper.look(is_last=False)
    said, taken_back = keeper.problems  # type: ignore[attr-defined]
    assert "409" in said
    assert taken_back == ""


def test_a_file_that_the_portal_refuses_is_found_and_the_others_are_sent(task, portal, keeper_of):
    keeper = keeper_of(task, portal)
    for number in range(9):
        (Path(keeper.senders[0].folder) / f"{number}.txt").write_bytes(b"x")

    def refuse(method: str, path: str) -> int | None:
        is_bad = path == "outputs/" and any(one["path"] == "5.txt" for one in json.loads(portal.body)["files"])
        return 400 if is_bad else None

    portal.trouble, portal.trouble_code = refuse, "invalid"
    assert "5.txt" in look(keeper)
    assert sorted(all_outputs(portal)) == [f"{n}.txt" for n in range(9) if n != 5]


def test_a_restarted_task_goes_on_where_the_portal_has_its_event_files(task, portal, keeper_of):
    portal.event_files = [{"path": EVENTS, "size": 4}]
    keeper = keeper_of(task, portal, asks_first=True)
    (Path(keeper.senders[0].folder) / EVENTS).write_bytes(b"0123456")
    assert look(keeper) == ""
    (upload,) = portal.uploads.values()
    assert upload["body"]["starts"] == [4]


def test_what_the_portal_does_not_have_after_all_is_sent_whole(task, portal, keeper_of):
    portal.event_files = [{"path": EVENTS, "size": 4}]
    keeper = keeper_of(task, portal, asks_first=True)
    (Path(keeper.senders[0].folder) / EVENTS).write_bytes(b"0123456")
    portal.trouble = lambda method, path: 409 if (method, path) == ("POST", "outputs/") else None
    portal.trouble_code = "past_the_end"
    assert look(keeper) != ""
    portal.trouble = lambda method, path: None
    assert look(keeper) == ""
    assert all_outputs(portal) == {EVENTS: b"0123456"}


# --- the working folder ----------------------------------------------------------------------------------------------

RELATIVE = """
    import os, zipfile
    os.makedirs("logs/train")
    open("results.csv", "w").write("a,b")
    open("logs/train/events.out.tfevents.1.host", "wb").write({events})
    open("train.log", "w").write("of the working folder")
    open(os.environ["LOG_DIR"] + "/train.log", "w").write("of the log directory")
    with zipfile.ZipFile("model.keras", "w") as model:
        model.writestr("config.json", "{{}}")
    with open("big.bin", "wb") as big:
        big.truncate(5000)
    os.symlink("/etc/passwd", "passwd")
    raise SystemExit({code})
"""
LIMITS = {"line_bytes": 65536, "spool_bytes": 64 << 20, "working_bytes": 4000, "working_files": 100}


def relative(code: int = 0) -> str:
    return script(RELATIVE.format(events=framed(event(step=4, summary=[scalar("loss", 0.5)])), code=code))


def test_what_a_script_writes_where_it_runs_is_kept_and_what_is_too_large_is_named(task, portal):
    portal.orders(relative(), limits=LIMITS)
    assert task.run() == 0
    events = "logs/train/events.out.tfevents.1.host"
    assert all_outputs(portal).keys() == {"results.csv", events, "train.log", "working_folder/train.log"}
    assert all_outputs(portal)["train.log"] == b"of the log directory"
    (model,) = uploaded(portal, "model")
    assert list(model) == ["model.keras"]
    (body,) = [one["body"] for one in portal.uploads.values() if one["kind"] == "model"]
    assert body["found_in"] == "model.keras"
    said = "not kept: big.bin (4.9 KiB): over the limit of 3.9 KiB and 100 files for the working folder"
    assert portal.reports[-1]["unsaved"]["left_out"] == said
    assert f"yardmaster: {said}".encode() in portal.lines()
    points = [(one["run"], one["tag"], one["step"]) for report in portal.reports for one in report.get("scalars", [])]
    assert points == [("logs/train", "loss", 4)]
    shared = {one["path"]: upload["body"]["shared"] for upload in portal.uploads.values() if upload["kind"] == "outputs"
              for one in upload["body"]["files"]}  # fmt: skip
    assert (shared["results.csv"], shared["train.log"]) == (True, False)


def test_the_working_folder_of_a_script_that_failed_is_kept_without_a_model(task, portal):
    portal.orders(relative(code=3), limits=LIMITS)
    assert task.run() == 3
    assert {"results.csv", "model.keras"} <= all_outputs(portal).keys()
    assert uploaded(portal, "model") == []


def test_another_task_keeps_its_working_folder_under_its_own_name(task, portal, tmp_path):
    shared = tmp_path / "shared"
    shared.mkdir()
    portal.orders(relative(), spec_roles={"worker": {"replicas": 2}}, limits=LIMITS)
    task.variables |= {"YARDMASTER_INDEX": "1", "YARDMASTER_LOG_DIR": str(shared)}
    assert task.run() == 0
    bodies = [upload["body"] for upload in portal.uploads.values() if upload["kind"] == "outputs"]
    assert {body["shared"] for body in bodies} == {False}
    assert "results.csv" in all_outputs(portal)
    assert [one for report in portal.reports for one in report.get("scalars", [])] == []


def test_a_killed_script_loses_nothing_of_its_working_folder(task, portal):
    text = 'import os, signal\nopen("last.txt", "w").write("x")\nos.kill(os.getpid(), signal.SIGKILL)\n'
    portal.orders(text)
    assert task.run() == 137
    assert all_outputs(portal) == {"last.txt": b"x"}
