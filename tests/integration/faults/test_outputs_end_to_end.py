"""Outputs and exports from a real script to what people download: a real portal, engine, supervisor and runner."""

from __future__ import annotations

import textwrap
from pathlib import Path

import pytest
import yaml

from tests.real.portal import ROOT
from tests.real.scene import Scene, until
from yardmaster_client import Job

pytestmark = [pytest.mark.slow, pytest.mark.linux, pytest.mark.timeout(300)]

WRITES_WHILE_IT_RUNS = """
    import os, time
    log = os.environ["LOG_DIR"]
    os.makedirs(log + "/plots", exist_ok=True)
    open(log + "/plots/first.png", "wb").write(b"png")
    events = open(log + "/events.out.tfevents.1.host", "wb")
    events.write(b"0123456789")
    events.flush()
    print("ready", flush=True)
    while not os.path.exists(log + "/go"):
        time.sleep(0.1)
    events.write(b"abc")
    open(log + "/last.csv", "w").write("a,b")
"""
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


def launch(scene: Scene, text: str, **changes) -> Job:
    job = scene.launch(textwrap.dedent(text), **changes)
    until(lambda: scene.portal_has_line(job, "worker", 0), what="its first line")
    return job


def sizes(scene: Scene, job: Job) -> dict[str, int]:
    return {one.path: one.size for one in scene.client.jobs.outputs(job.id)}


def test_outputs_are_there_while_the_job_runs_and_complete_at_its_end(portal_scene: Scene, tmp_path: Path):
    job = launch(portal_scene, WRITES_WHILE_IT_RUNS)
    wanted = {"events.out.tfevents.1.host": 10, "plots/first.png": 3}
    until(lambda: sizes(portal_scene, job) == wanted, what="outputs of the running job")
    assert portal_scene.client.jobs.get(job.id).phase == "RUNNING"
    (folder,) = portal_scene.run_folders(job)
    log = folder / "log"
    (log / "go").write_bytes(b"")
    assert portal_scene.ended(job).phase == "SUCCEEDED"
    done = portal_scene.command("jobs", "outputs", job.id, "--download", str(tmp_path / "here"))
    assert done.returncode == 0, done.stderr
    found = {str(one.relative_to(tmp_path / "here")): one.read_bytes() for one in (tmp_path / "here").rglob("*.*")}
    assert found == {
        "events.out.tfevents.1.host": b"0123456789abc", "plots/first.png": b"png", "last.csv": b"a,b",
    }  # fmt: skip
    assert "last.csv" in portal_scene.command("jobs", "outputs", job.id).stdout


def test_an_export_written_after_a_stop_is_kept_and_marked(portal_scene: Scene, tmp_path: Path):
    end = 'open(model + "/variables/variables.index", "w").write("index"); sys.exit(0)'
    job = launch(portal_scene, EXPORTS.replace("{end}", end), grace_period=10)
    portal_scene.client.jobs.stop(job.id)
    job = portal_scene.settled(job)
    assert job.phase == "STOPPED"
    version = portal_scene.client.models.version(job.model)
    assert (version.job, version.stopped) == (job.id, True)
    portal_scene.client.models.download(version.id, tmp_path)
    assert (tmp_path / "saved_model.pb").read_text() == "exported"
    kept = [one for one in portal_scene.client.jobs.events(job.id) if one["kind"] == "model_kept"]
    assert [one["message"][:33] for one in kept] == ["The model was saved as version 1 "]
    portal_scene.assert_nothing_is_left(job)


def test_half_an_export_of_a_script_that_was_killed_is_not_kept_and_the_job_says_so(portal_scene: Scene):
    job = launch(portal_scene, EXPORTS.replace("{end}", "time.sleep(60)"), grace_period=8)
    portal_scene.client.jobs.stop(job.id)
    job = portal_scene.settled(job)
    assert job.phase == "STOPPED"
    assert portal_scene.client.jobs.get(job.id).model is None
    (unsaved,) = portal_scene.ask("SELECT unsaved FROM jobs_taskfact WHERE job_id = ?", job.id.replace("-", ""))[0]
    assert "did not end with exit code 0" in unsaved


FILLS_THE_QUOTA = """
    import os, time
    log = os.environ["LOG_DIR"]
    open(log + "/first.csv", "w").write("a,b")
    print("ready", flush=True)
    while not os.path.exists(log + "/go"):
        time.sleep(0.1)
    open(log + "/second.bin", "wb").write(os.urandom(3_000_000))
"""


def test_a_quota_that_is_full_half_way_fails_no_job_and_its_page_says_so(portal_scene: Scene):
    transport = portal_scene.client.transport
    job = launch(portal_scene, FILLS_THE_QUOTA)
    address = f"namespaces/{portal_scene.client.jobs.get(job.id).namespace}/quota/"
    until(lambda: sizes(portal_scene, job), what="outputs of the running job")
    before = transport.get(address)
    transport.put(address, {**before["hard"], "storage": before["used"]["storage"] + 1_000_000})
    try:
        (folder,) = portal_scene.run_folders(job)
        (folder / "log" / "go").write_bytes(b"")
        assert portal_scene.ended(job).phase == "SUCCEEDED"
        assert sizes(portal_scene, job).keys() >= {"first.csv"}
        assert "second.bin" not in sizes(portal_scene, job)
        (unsaved,) = portal_scene.ask("SELECT unsaved FROM jobs_taskfact WHERE job_id = ?", job.id.replace("-", ""))[0]
        assert "of storage" in unsaved
    finally:
        transport.put(address, before["hard"])


GALLERY = ROOT / "examples" / "gallery" / "relative_outputs"


def test_a_script_that_saves_to_its_working_folder_keeps_the_model_the_logs_and_the_table(portal_scene: Scene):
    """The example of the gallery, with the real TensorFlow."""
    code = portal_scene.put_code({"train.py": (GALLERY / "train.py").read_text()}, "relative-outputs")
    spec = yaml.safe_load((GALLERY / "job.yaml").read_text()) | {"code": code}
    spec["roles"] = {"worker": {"cpu": 0.5, "memory": "1.5Gi"}}
    job = portal_scene.client.jobs.launch(spec)
    done = portal_scene.ended(job, 240)
    assert done.phase == "SUCCEEDED", portal_scene.lines(job)
    found = sizes(portal_scene, job)
    shown = {one.path.rpartition("/")[0] for one in portal_scene.client.jobs.outputs(job.id) if one.has_events}
    assert {"logs/train", "logs/validation", "logs/pictures"} <= shown, "a TensorBoard shows these"
    assert "history.csv" in found
    assert not any(path.startswith("model/") for path in found), "it is kept as the model"
    assert {path.split("/")[1] for path in found if path.startswith("logs/")} >= {"train", "validation", "pictures"}
    model = portal_scene.client.transport.get(f"jobs/{job.id}/model/")
    assert {"saved_model.pb", "variables/variables.index"} <= {one["path"] for one in model["files"]}
    (event,) = [one for one in portal_scene.client.jobs.events(job.id) if one["kind"] == "model_kept"]
    assert event["message"].endswith("It was in the working folder: model.")
    curves = portal_scene.client.transport.get(f"jobs/{job.id}/scalars/")
    assert {"logs/train", "logs/validation"} <= {one["run"] for one in curves["results"]}
    found = portal_scene.client.transport.get(f"jobs/{job.id}/summaries/")
    assert [(one["run"], one["tag"], len(one["steps"])) for one in found["images"]] == [("logs/pictures", "inside", 3)]
    assert any("kernel" in one["tag"] for one in found["histograms"])
    assert "**inside** a circle" in found["texts"][0]["steps"][0]["text"]
    assert found["hparams"][0]["values"] == {"units": 16, "optimizer": "adam"}
