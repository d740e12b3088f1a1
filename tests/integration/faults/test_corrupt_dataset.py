"""Data that is not what it was, or never was what it seems: found by the task that would read it, and by who asks."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.real.files import files_with
from tests.real.scene import Scene, until
from tests.unit.runner.event_writer import framed
from yardmaster_client import DatasetVersion

pytestmark = [pytest.mark.slow, pytest.mark.linux, pytest.mark.timeout(120)]

GOOD, BAD = b"what the model learns from" * 100, b"what somebody wrote over it" * 100
READS = "import os\nfor name in sorted(os.listdir(os.environ['DATA_DIR'])):\n    print('read', name)\n"


def put(scene: Scene, folder: Path, name: str, **files: bytes) -> DatasetVersion:
    for path, content in files.items():
        (folder / path.replace("_", ".")).write_bytes(content)
    latest = scene.client.datasets.put(name, [folder]).latest
    assert latest is not None
    return latest


def stored(scene: Scene, content: bytes) -> Path:
    """The file of the object store that holds this."""
    (found,) = files_with(scene.portal.home / "objects", content)
    return found


def check(scene: Scene, version: DatasetVersion) -> dict:
    return scene.client.transport.get(f"dataset-versions/{version.id}/check/")


@pytest.mark.parametrize("damage", ["altered", "cut off"])
def test_a_file_that_was_damaged_in_the_store_ends_the_job_by_its_name(
    portal_scene: Scene, tmp_path: Path, damage: str
):
    content = GOOD + damage.encode()
    version = put(portal_scene, tmp_path, f"was-{damage}", fine_txt=b"fine", digits_txt=content)
    assert check(portal_scene, version)["corrupt"] == []
    file = stored(portal_scene, content)
    file.chmod(0o640)
    file.write_bytes(BAD if damage == "altered" else content[:1000])

    job = portal_scene.launch(READS, inputs=[{"dataset_version": version.id}], retries=3)
    job = portal_scene.settled(job)
    assert (job.phase, job.reason) == ("FAILED", "CorruptInput")
    assert "digits.txt" in job.message
    (task,) = portal_scene.client.jobs.tasks(job.id)
    assert task["restarts"] == 0, "starting again cannot help"
    assert "upload the damaged files as a new version" in job.remedy
    assert any("digits.txt" in line for line in portal_scene.lines(job)), "the log must say which file"
    portal_scene.assert_nothing_is_left(job)

    (fault,) = check(portal_scene, version)["corrupt"]
    assert fault["path"] == "digits.txt"
    assert fault["expected"] != fault["found"]
    said = portal_scene.command("datasets", "check", f"was-{damage}")
    assert said.returncode == 1
    assert "digits.txt" in said.stdout
    assert "as a new version" in said.stderr

    assert portal_scene.command("datasets", "check", f"was-{damage}@1", "--json").returncode == 1
    mended = put(portal_scene, tmp_path, f"was-{damage}", digits_txt=content)
    job = portal_scene.settled(portal_scene.launch(READS, inputs=[{"dataset_version": mended.id}]))
    assert (job.phase, portal_scene.lines(job)) == ("SUCCEEDED", ["read digits.txt", "read fine.txt"])
    assert portal_scene.command("datasets", "check", f"was-{damage}").returncode == 0


def test_a_file_that_is_gone_from_the_store_ends_the_job_by_its_name(portal_scene: Scene, tmp_path: Path):
    content = GOOD + b"gone"
    version = put(portal_scene, tmp_path, "gone", digits_txt=content)
    stored(portal_scene, content).unlink()
    job = portal_scene.launch(READS, inputs=[{"dataset_version": version.id}])
    job = portal_scene.settled(job)
    assert job.phase == "FAILED"
    assert "digits.txt" in job.message
    (fault,) = check(portal_scene, version)["corrupt"]
    assert (fault["path"], fault["found"]) == ("digits.txt", "")
    assert "missing" in fault["message"]


def test_code_that_was_damaged_in_the_store_ends_the_job_by_its_name(portal_scene: Scene):
    code = portal_scene.put_code({"main.py": "import part\n", "part.py": "print('a part of the code')\n" * 50})
    file = stored(portal_scene, b"print('a part of the code')\n" * 50)
    file.chmod(0o640)
    file.write_bytes(b"print('a part of the core')\n" * 50)
    job = portal_scene.settled(portal_scene.client.jobs.launch(portal_scene.spec(code)))
    assert (job.phase, job.reason) == ("FAILED", "CorruptInput")
    assert "part.py" in job.message


def test_records_that_were_cut_off_before_the_upload_are_named_at_once(portal_scene: Scene, tmp_path: Path):
    records = b"".join(framed(b"record %d" % n * 20) for n in range(50))
    altered = bytearray(records)
    altered[200] ^= 0xFF
    version = put(
        portal_scene, tmp_path, "cut", whole_tfrecord=records, cut_tfrecord=records[:-7], bent_tfrecord=bytes(altered)
    )
    told = portal_scene.client.transport.get(f"dataset-versions/{version.id}/")
    faults = {one["path"]: one["fault"] for one in told["problems"]}
    assert faults.keys() == {"cut.tfrecord", "bent.tfrecord"}
    assert all(faults.values())
    files = {one["path"]: one for one in portal_scene.client.transport.pages(f"dataset-versions/{version.id}/files/")}
    assert files["whole.tfrecord"]["records"] == 50
    for path in faults:
        preview = portal_scene.client.datasets.preview(version.id, path)
        assert preview, "what can be read of it is shown"
    assert check(portal_scene, version)["corrupt"] == [], "the store holds what was sent"


def test_a_store_whose_file_is_whole_again_is_believed_again(portal_scene: Scene, tmp_path: Path):
    content = GOOD + b"whole again"
    version = put(portal_scene, tmp_path, "again", digits_txt=content)
    file = stored(portal_scene, content)
    file.chmod(0o640)
    file.write_bytes(BAD)
    job = portal_scene.settled(portal_scene.launch(READS, inputs=[{"dataset_version": version.id}]))
    assert job.reason == "CorruptInput"
    file.write_bytes(content)
    portal_scene.client.jobs.retry(job.id)
    until(lambda: portal_scene.client.jobs.get(job.id).attempt == 2, what="the second attempt")
    job = portal_scene.settled(job)
    assert (job.phase, portal_scene.lines(job, attempt=2)) == ("SUCCEEDED", ["read digits.txt"])
