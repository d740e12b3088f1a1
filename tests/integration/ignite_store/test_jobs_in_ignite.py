"""Jobs that keep checkpoints and outputs in Apache Ignite, in a real portal: what a script wrote is there, an attempt
continues from it, event files come back, and the job's end removes all of it."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from pathlib import Path

import httpx2
import pytest

from tests.real.ignite import Ignite
from tests.real.ignite_store import asked, caches, emptied, ignite_secure_node, pieces_held, rows_held
from tests.real.scene import Scene, scene, until
from yardmaster_client import PortalError

__all__ = ["ignite_secure_node"]
pytestmark = [pytest.mark.ignite, pytest.mark.slow, pytest.mark.linux, pytest.mark.timeout(600)]

LARGE = 3 << 20
COUNTS = f"""
import os, pathlib, time

folder = pathlib.Path(os.environ["LOG_DIR"])
found = sorted(int(one.stem.split("-")[1]) for one in folder.glob("model-*.index"))
step = found[-1] if found else 0
if found:
    data = (folder / f"model-{{step}}.data-00000-of-00001").read_bytes()
    assert data == bytes([step]) * {LARGE}, len(data)
print("begins at", step, flush=True)
with open(folder / "events.out.tfevents.1.host", "ab") as events:
    events.write(b"event %d " % step)
step += 1
(folder / f"model-{{step}}.data-00000-of-00001").write_bytes(bytes([step]) * {LARGE})
(folder / f"model-{{step}}.index").write_text("index")
(folder / "checkpoint").write_text(f'model_checkpoint_path: "model-{{step}}"')
print("step", step, flush=True)
while not found:
    time.sleep(1)
"""
"""What TensorFlow leaves of a checkpoint, without TensorFlow. The first attempt waits to be killed."""
KEYS = "SELECT NAME FROM YARDMASTER_OBJECTS"


@pytest.fixture(scope="module")
def settings_of(ignite_secure_node: Ignite) -> dict[str, str]:
    options = ignite_secure_node.store_options()
    return {
        "YARDMASTER_IGNITE_STORE": str(options["hosts"]),
        "YARDMASTER_IGNITE_STORE_USER": str(options["username"]),
        "YARDMASTER_IGNITE_STORE_PASSWORD_FILE": str(options["password_file"]),
        "YARDMASTER_IGNITE_STORE_CERTIFICATE_FILE": str(options["certificate_file"]),
        "YARDMASTER_IGNITE_STORE_BACKUPS": "0",
    }


@pytest.fixture(scope="module")
def with_ignite(settings_of: dict[str, str], ignite_secure_node: Ignite) -> Iterator[Scene]:
    emptied(ignite_secure_node)
    with scene(settings=settings_of) as one:
        yield one


def _keys(server: Ignite) -> set[str]:
    """Nothing where no job of this module has asked for the store yet."""
    return {row[0] for row in asked(server, KEYS)} if "YARDMASTER_PIECES" in caches(server) else set()


@pytest.mark.long
def test_an_attempt_continues_from_a_checkpoint_in_ignite(with_ignite, ignite_secure_node, tmp_path: Path):
    one, server = with_ignite, ignite_secure_node
    job = one.launch(COUNTS, name="kept", checkpoint_store="ignite")
    headers = {"Authorization": f"Bearer {one.token}"}
    with httpx2.Client(base_url=f"{one.portal.url}/api/v1", headers=headers, timeout=60) as http:
        until(lambda: http.get(f"/jobs/{job.id}/checkpoints/").json(), 120, "a checkpoint")
        until(lambda: list(one.client.jobs.outputs(job.id)), 120, "its event file")
        assert http.get(f"/jobs/{job.id}/").json()["spec"]["checkpoint_store"] == "ignite"
        mine = f"/jobs/{job.id}/1/"
        until(lambda: {"checkpoints", "outputs"} <= {key.split(mine)[1].split("/")[0] for key in _keys(server)})
        assert all(key.startswith("ignite/namespaces/") for key in _keys(server))
        objects = Path(one.portal.home, "objects", "objects")
        assert not [path for path in objects.rglob("*") if job.id in str(path) and path.is_file()]
        for row in one.processes_of(job):
            if b"main.py" in Path(f"/proc/{row.pid}/cmdline").read_bytes():
                os.kill(row.pid, signal.SIGKILL)
        assert one.settled(job, 120).phase == "FAILED"
        assert http.post(f"/jobs/{job.id}/retry/", json={}).status_code in (200, 201, 202)
    again = until(lambda: _ended(one, job.id, 2), 180, "the second attempt")
    assert again.phase == "SUCCEEDED", again
    assert "begins at 1" in one.lines(again)
    done = one.command("jobs", "outputs", job.id, "--download", str(tmp_path / "here"))
    assert done.returncode == 0, done.stderr
    events = [path.read_bytes() for path in (tmp_path / "here").rglob("events.out*")]
    assert any(content.startswith(b"event 1 ") for content in events)
    one.client.jobs.delete(job.id)
    until(lambda: not _keys(server), 120, "the removal of its objects")
    until(lambda: pieces_held(server) == 0 and rows_held(server, "UPLOADS") == 0, 60, "the removal of its pieces")


def _ended(one: Scene, job_id: str, attempt: int):
    found = one.client.jobs.get(job_id)
    return found if found.attempt == attempt and found.phase in ("SUCCEEDED", "FAILED") else None


TRAINS = """
import os
os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
import tensorflow as tf

folder = os.environ["LOG_DIR"]
weights = tf.Variable(tf.random.stateless_normal([512, 512], [1, 2]))
step = tf.Variable(0, dtype=tf.int64)
manager = tf.train.CheckpointManager(tf.train.Checkpoint(weights=weights, step=step), folder, 2)
print("restored", manager.restore_or_initialize(), int(step), flush=True)
begun = int(step)
with tf.summary.create_file_writer(folder).as_default():
    for _ in range(5):
        step.assign_add(1)
        tf.summary.scalar("loss", 1.0 / int(step), step=int(step))
manager.save(int(step))
print("at", int(step), float(tf.reduce_sum(weights)), flush=True)
raise SystemExit(0 if begun else 1)
"""


@pytest.mark.tensorflow
@pytest.mark.long
def test_tensorflow_restores_from_ignite_and_a_tensorboard_gets_the_events(with_ignite, ignite_secure_node):
    one, server = with_ignite, ignite_secure_node
    emptied(server)
    larger = {"worker": {"replicas": 1, "cpu": 0.5, "memory": "2Gi"}}
    job = one.launch(TRAINS, name="trains", checkpoint_store="ignite", roles=larger)
    headers = {"Authorization": f"Bearer {one.token}"}
    with httpx2.Client(base_url=f"{one.portal.url}/api/v1", headers=headers, timeout=60) as http:
        assert one.settled(job, 200).phase == "FAILED"
        assert http.post(f"/jobs/{job.id}/retry/", json={}).is_success
        again = until(lambda: _ended(one, job.id, 2), 200, "the second attempt")
        assert again.phase == "SUCCEEDED", one.lines(again)
        (restored,) = [line for line in one.lines(again) if line.startswith("restored")]
        assert restored.endswith(" 5")
        wanted = {name for attempt in (1, 2) for name in _event_files(one, job.id, attempt)}
        assert len(wanted) == 2
        assert wanted <= {key.rpartition("/")[2] for key in _keys(server)}
        one.settled(again, 120)  # its own folder is gone
        answer = http.post("/sessions/", json={"kind": "tensorboard", "jobs": [job.id]})
        assert answer.status_code == 201, answer.text
        shown = until(lambda: _shown(one, wanted), 200, "the event files in the TensorBoard's folder")
        assert all(b"loss" in path.read_bytes() for path in shown)
        http.post(f"/sessions/{answer.json()['id']}/stop/", json={})


def _event_files(one: Scene, job_id: str, attempt: int) -> set[str]:
    return {found.path.rpartition("/")[2] for found in one.client.jobs.outputs(job_id, attempt) if found.has_events}


def _shown(one: Scene, names: set[str]) -> list[Path]:
    """The event files of these names that lie in the runs of TensorBoards."""
    found = [path for path in Path(one.portal.home, "local", "runs").rglob("events.out*") if path.name in names]
    return found if {path.name for path in found} >= names else []


def test_a_job_that_asks_for_nothing_keeps_its_checkpoints_in_the_portals_own_store(with_ignite, ignite_secure_node):
    script = COUNTS.replace("while not found:", "while False:")
    job = with_ignite.ended(with_ignite.launch(script, name="plain"), 120)
    assert job.phase == "SUCCEEDED"
    assert list(with_ignite.client.jobs.outputs(job.id))
    assert not any(job.id in key for key in _keys(ignite_secure_node))


def test_a_store_that_is_not_there_is_refused_by_name(with_ignite):
    with pytest.raises(PortalError) as caught:
        with_ignite.launch("print()", checkpoint_store="elsewhere")
    assert "checkpoint_store" in str(caught.value)
