"""A model from its export to predictions: a real portal, local engine, runner and TensorFlow; then idle, and gone."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.real.doubling import EXPORT
from tests.real.scene import Scene, scene, until

pytestmark = [pytest.mark.slow, pytest.mark.linux, pytest.mark.tensorflow, pytest.mark.timeout(300)]

SWEEP = """
from datetime import timedelta
from django.utils import timezone
from apps.serving.worker import services_sweep
print(services_sweep(timezone.now() + timedelta(hours=1)))
"""


@pytest.fixture(scope="module")
def portal_scene() -> Iterator[Scene]:
    with scene() as found:
        yield found


@pytest.fixture(scope="module", autouse=True)
def exported(portal_scene: Scene) -> None:
    """The first version of the model `double`."""
    job = portal_scene.settled(portal_scene.launch(EXPORT, name="double", roles={"worker": {"memory": "1Gi"}}))
    assert job.phase == "SUCCEEDED", job.message


def test_a_model_predicts_over_a_table_and_publishes_what_it_says(portal_scene: Scene, tmp_path: Path):
    table = tmp_path / "pairs.csv"
    table.write_text("id,a,b\n" + "".join(f"{n},{n},0.5\n" for n in range(100)) + "100,much,1\n")
    portal_scene.client.datasets.put("pairs", [table])
    words = ("models", "batch", "double@1", "--dataset", "pairs", "--columns", "x=a+b", "--keep", "id", "--wait")
    done = portal_scene.command(*words, "--to", "doubled", "--most-bad", "1", "--json")
    found = json.loads(done.stdout)["published"]
    assert done.returncode == 0, (found, done.stderr)
    assert (found["state"], found["records"], found["skipped"]) == ("published", 100, 1)
    assert found["bad"] == ["pairs.csv, row 102: 'much' is no float32, which the input x takes."]
    portal_scene.client.datasets.download(found["version"], tmp_path / "doubled")
    lines = (tmp_path / "doubled/predictions/predictions-00000.jsonl").read_text().splitlines()
    assert json.loads(lines[7]) == {"file": "pairs.csv", "row": 9, "id": "7", "doubled": [14.0, 1.0]}
    about = json.loads((tmp_path / "doubled/dataset.json").read_text())
    assert about["splits"]["predictions"][0]["records"] == 100
    assert about["features"]["doubled"] == {"kind": "float", "shape": [2], "encoding": ""}


def test_a_model_is_served_asked_and_stopped_when_idle(portal_scene: Scene):
    client = portal_scene.client
    begun = portal_scene.command("models", "serve", "double", "--wait", "--json")
    assert begun.returncode == 0, begun.stderr
    service = json.loads(begun.stdout)
    assert service["state"] == "ready"
    asked = portal_scene.command("models", "predict", "double@1", "--input", '{"instances": [[1, 2.5]]}')
    assert json.loads(asked.stdout) == {"predictions": [[2.0, 5.0]]}, asked.stderr
    assert portal_scene.command("models", "promote", "double@1", "--to", "production").returncode == 0
    asked = portal_scene.command("models", "predict", "double@production", "--input", "[[3, 0.5]]")
    assert json.loads(asked.stdout) == {"predictions": [[6.0, 1.0]]}, asked.stderr
    address = f"models/{client.models.find('double').id}/stages/production/v1/models/double:predict"
    assert client.transport.post(address, {"inputs": [[4, 1]]}) == {"outputs": [[8.0, 2.0]]}
    words = ("models", "predict", "double", "--method", "classify", "--input", '[{"x": 1.0}]')
    unlike = portal_scene.command(*words)
    assert unlike.returncode != 0
    assert ":classify needs tensorflow/serving/classify" in " ".join(unlike.stderr.split())
    refused = portal_scene.command("models", "predict", "double", "--input", '{"instances": [[1]]}')
    assert refused.returncode != 0
    assert "Expected x: float32 [?, 2]" in refused.stderr
    assert portal_scene.portal.script(SWEEP).strip() == "1"
    stopped = until(lambda: (one := client.services.get(service["id"])).state == "stopped" and one, what="its end")
    assert stopped.message == "It was not used for 15m."
    assert client.jobs.get(service["job"]).phase == "STOPPED"
    assert not list(client.services.list())
