"""The scripts of the gallery with flags of their own: launched by their job files, on the local engine."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.integration.examples.by_hand import EXAMPLES
from tests.real.scene import Scene, scene
from yardmaster_client import Job
from yardmaster_client.jobfile import read_job_file

GALLERY = EXAMPLES / "gallery"
pytestmark = [pytest.mark.slow, pytest.mark.linux, pytest.mark.timeout(300)]


@pytest.fixture(autouse=True)
def _no_counts():
    """No database of Django's own is needed here."""


def ended(portal: Scene, folder: Path, **changes: object) -> Job:
    """The job of this folder's job file, when it is over."""
    found = portal.client.code.put(folder.name, [folder]).latest
    assert found is not None
    spec = {**read_job_file(folder / "job.yaml").spec, "code": found.id, "reclaim_delay": 1, **changes}
    job = portal.client.jobs.launch(spec)
    assert job.warnings == ()
    return portal.ended(job, 200)


@pytest.mark.long
def test_a_strict_parser_gets_its_own_flags_and_variables_in_arguments(tmp_path: Path) -> None:
    with scene() as portal:
        data = portal.client.datasets.put("points", [GALLERY / "strict_parser" / "points"]).latest
        assert data is not None
        job = ended(portal, GALLERY / "strict_parser", inputs=[{"dataset_version": data.id}])
        assert job.phase == "SUCCEEDED", (job.message, portal.lines(job))
        paths = portal.client.jobs.get(job.id).spec["paths"]
        assert [paths[f"{kind}_flag"] for kind in ("data", "log", "model")] == ["--data-dir", "--logdir", ""]
        portal.client.jobs.outputs_download(job.id, tmp_path)
    assert (tmp_path / "line.txt").read_text() == "y = 2.00 x + 1.00\n"
    assert len((tmp_path / "losses.csv").read_text().splitlines()) == 300


@pytest.mark.tensorflow
@pytest.mark.long
def test_of_one_model_dir_checkpoints_event_files_and_the_model_are_kept() -> None:
    with scene() as portal:
        job = ended(portal, GALLERY / "one_model_dir")
        assert job.phase == "SUCCEEDED", (job.message, portal.lines(job))
        paths = portal.client.jobs.get(job.id).spec["paths"]
        assert [paths[f"{kind}_flag"] for kind in ("data", "log", "model")] == ["", "--model_dir", "--model_dir"]
        kept = {one["path"] for one in portal.client.jobs.model(job.id)["files"]}
        assert "export/1/saved_model.pb" in kept
        assert all(path.startswith("export/1/") for path in kept)
        outputs = [one.path for one in portal.client.jobs.outputs(job.id)]
        assert any("tfevents" in path for path in outputs)
        (newest, *_) = portal.client.transport.get(f"jobs/{job.id}/checkpoints/")
        assert newest["step"] == 60
