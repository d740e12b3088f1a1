"""The gallery's TFJob: imported and launched on the local engine, with its claims as a dataset and as log directory."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.real.scene import Scene, scene
from yardmaster_client.jobfile import job_from_text
from yardmaster_client.names import resolve_spec

pytestmark = [pytest.mark.slow, pytest.mark.linux, pytest.mark.timeout(300)]

PLACE = Path(__file__).parents[3] / "examples" / "gallery" / "tfjob"
LONG = 200.0


@pytest.fixture(scope="module")
def portal_scene() -> Iterator[Scene]:
    with scene() as one:
        yield one


@pytest.fixture(autouse=True)
def _cheap_passwords_and_no_counts():
    """These tests use no database of their own: what the folder above prepares for Django is not needed here."""


def test_a_tfjob_is_imported_launched_and_succeeds(portal_scene: Scene):
    client = portal_scene.client
    found = client.jobs.import_tfjob((PLACE / "tfjob.yaml").read_text())
    spec = job_from_text(found["job_file"], Path("job.yaml")).spec
    client.code.put(spec["code"], [PLACE])
    client.datasets.put("points", [PLACE / "data"])
    job = client.jobs.launch(resolve_spec(client, spec, None))
    ended = portal_scene.ended(job, LONG)
    lines = portal_scene.lines(ended)
    assert ended.phase == "SUCCEEDED", (ended.reason, lines[-20:])
    (loss,) = [line for line in lines if line.startswith("loss ")]
    assert float(loss.split()[1]) < 0.01
    text = client.jobs.export(job.id, image="tensorflow/tensorflow:2.21.0")
    assert text.startswith("# The job gallery-tfjob")
    assert "kind: Job" in text
