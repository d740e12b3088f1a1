"""A model from its export to predictions: a real portal, local engine, runner and TensorFlow; then idle, and gone."""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest

from tests.real.scene import Scene, scene, until

pytestmark = [pytest.mark.slow, pytest.mark.linux, pytest.mark.tensorflow, pytest.mark.timeout(300)]

EXPORT = """
import os
import tensorflow as tf

class Double(tf.Module):
    @tf.function(input_signature=[tf.TensorSpec([None, 2], tf.float32, name="x")])
    def __call__(self, x):
        return {"doubled": 2.0 * x}

model = Double()
tf.saved_model.save(model, os.environ["MODEL_DIR"], signatures=model.__call__)
"""
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


def test_a_model_is_exported_served_asked_and_stopped_when_idle(portal_scene: Scene):
    client = portal_scene.client
    job = portal_scene.settled(portal_scene.launch(EXPORT, name="double", roles={"worker": {"memory": "1Gi"}}))
    assert job.phase == "SUCCEEDED", job.message
    begun = portal_scene.command("models", "serve", "double", "--wait", "--json")
    assert begun.returncode == 0, begun.stderr
    service = json.loads(begun.stdout)
    assert service["state"] == "ready"
    asked = portal_scene.command("models", "predict", "double@1", "--input", '{"instances": [[1, 2.5]]}')
    assert json.loads(asked.stdout) == {"predictions": [[2.0, 5.0]]}, asked.stderr
    refused = portal_scene.command("models", "predict", "double", "--input", '{"instances": [[1]]}')
    assert refused.returncode != 0
    assert "Expected x: float32 [?, 2]" in refused.stderr
    assert portal_scene.portal.script(SWEEP).strip() == "1"
    stopped = until(lambda: (one := client.services.get(service["id"])).state == "stopped" and one, what="its end")
    assert stopped.message == "It had no request for 15m."
    assert client.jobs.get(service["job"]).phase == "STOPPED"
    assert not list(client.services.list())
