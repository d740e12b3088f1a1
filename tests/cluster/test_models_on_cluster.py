"""A model from its export in a pod to predictions by another: asked over the network, and over a dataset as a job."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.cluster.jobs import TRAINS, cleaned_up, ended, launch, text_of
from tests.real.doubling import EXPORT
from yardmaster_client import ModelVersion, PortalError, Yardmaster

pytestmark = [pytest.mark.cluster, pytest.mark.slow, pytest.mark.timeout(600)]

ROLES = {"worker": {"replicas": 1, "cpu": 0.5, "memory": "1Gi"}}


@pytest.fixture(scope="module")
def doubling(ada: Yardmaster) -> ModelVersion:
    ended(ada, launch(ada, EXPORT, name="double", roles=ROLES))
    made = next(iter(ada.models.list(search="double"))).latest
    assert made is not None
    return made


def test_a_pod_serves_a_model_to_its_namespace_until_it_is_stopped(
    ada: Yardmaster, bob: Yardmaster, doubling: ModelVersion
):
    service = ada.services.wait(ada.services.start(doubling.id).id, timeout=TRAINS)
    assert service.state == "ready", (service.message, text_of(ada, ada.jobs.get(service.job)))
    assert ada.services.predict(doubling.id, {"instances": [[1, 2.5]]}) == {"predictions": [[2.0, 5.0]]}
    with pytest.raises(PortalError, match=r"Expected x: float32 \[\?, 2\]"):
        ada.services.predict(doubling.id, {"instances": [[1]]})
    with pytest.raises(PortalError) as foreign:
        bob.services.predict(doubling.id, {"instances": [[1, 2.5]]})
    assert foreign.value.status == 404
    ada.services.stop(service.id)
    cleaned_up(ada, ada.jobs.get(service.job))
    assert not list(ada.services.list())


def test_a_pod_predicts_over_a_dataset_and_publishes_what_it_says(
    ada: Yardmaster, doubling: ModelVersion, tmp_path: Path
):
    (tmp_path / "pairs.csv").write_text("a,b\n" + "".join(f"{number},0.5\n" for number in range(100)))
    pairs = ada.datasets.put("pairs", [tmp_path / "pairs.csv"]).latest
    assert pairs is not None
    wanted = {"dataset_version": pairs.id, "to": "doubled", "options": {"columns": "x=a+b"}, "memory": "1Gi"}
    job = ended(ada, ada.jobs.predict_over(doubling.id, wanted))
    published = ada.jobs.published(job.id, wait=True)
    assert published is not None
    assert (published["state"], published["records"]) == ("published", 100), published
    ada.datasets.download(published["version"], tmp_path / "doubled")
    lines = (tmp_path / "doubled/predictions/predictions-00000.jsonl").read_text().splitlines()
    assert json.loads(lines[7])["doubled"] == [14.0, 1.0]
