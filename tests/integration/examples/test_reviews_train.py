"""`train.py` of the reviews, its tasks started by hand, and the linear model beside it."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from portal.env import task_python
from tests.integration.examples.by_hand import Cluster
from tests.integration.examples.ended_well import scalars
from tests.real import reviews
from tests.real.tensorflow_forks import TensorFlowForks
from yardmaster_runner.checkpoints import find_complete

pytestmark = [pytest.mark.slow, pytest.mark.tensorflow, pytest.mark.timeout(400)]

Start = Callable[..., Cluster]
ASK = """
import sys
import numpy as np
import tensorflow as tf
asked = tf.saved_model.load(sys.argv[1]).signatures["serving_default"]
answer = asked(text=tf.constant(["a moving , wonderful film", "dull and stupid", ""]))
assert set(answer) == {"sentiment", "probabilities"}, answer
assert set(answer["sentiment"].numpy()) <= {b"neg", b"pos"}, answer
assert np.allclose(answer["probabilities"].numpy().sum(axis=1), 1, atol=1e-5), answer
print(answer["sentiment"].numpy()[:2].tolist())
"""


@pytest.fixture
def cluster_of(tmp_path: Path, forks: Callable[..., TensorFlowForks]) -> Start:
    def make(*flags: str, script: str = "train.py", strategy: str = "between_graph", **replicas: int) -> Cluster:
        path = reviews.EXAMPLE / script
        return Cluster(path, strategy, replicas, tmp_path, reviews.shards(), flags, forks=forks)

    return make


def accuracy_of(text: str) -> float:
    found = re.search(r"^test accuracy (\d\.\d{4})$", text, re.MULTILINE)
    assert found, text
    return float(found[1])


@pytest.mark.long
def test_two_workers_learn_from_text_and_the_model_takes_text(cluster_of: Start) -> None:
    with cluster_of("--steps=60", "--batch_size=64", "--log_every=5", ps=1, worker=2) as cluster:
        cluster.start_all()
        assert cluster["worker", 0].wait() == 0, cluster["worker", 0].text()
        assert cluster["worker", 1].wait() == 0, cluster["worker", 1].text()
        assert cluster["ps", 0].process.poll() is None
        said, other = cluster["worker", 0].text(), cluster["worker", 1].text()
    assert 0 < accuracy_of(said) <= 1
    assert re.search(r"^test: \d+ texts, 95 % interval ±0\.\d{4}$", said, re.MULTILINE)
    assert {(one.run, one.tag) for one in scalars(cluster)} >= {
        (".", "loss"), (".", "accuracy"), ("validation", "accuracy"), ("test", "accuracy"),
    }  # fmt: skip
    # Of both: how many of the steps are whose depends on the machine.
    losses = sorted((int(step), float(loss)) for step, loss in re.findall(r"step (\d+)/60: loss (\S+),", said + other))
    assert losses[-1][1] < losses[0][1] - 0.05
    done = subprocess.run([task_python(), "-c", ASK, cluster.model_dir], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip() == "[b'pos', b'neg']"


@pytest.mark.long
def test_alone_it_goes_on_from_its_checkpoint_and_trains_no_more_than_it_should(cluster_of: Start) -> None:
    with cluster_of("--steps=160", "--checkpoint_every=10", strategy="single", worker=1) as cluster:
        first = cluster.start("worker")
        first.wait_for(r"step 20/")
        first.kill()
        again = cluster.start("worker")
        assert again.wait() == 0, again.text()
        assert int(re.search(r"step (\d+)/160: loss", again.text())[1]) >= 10
        accuracy = accuracy_of(again.text())
        (cluster.model_dir / "saved_model.pb").unlink()  # as if it was killed while it wrote the model
        last = cluster.start("worker")
        assert last.wait() == 0, last.text()
        assert "step" not in last.text()
        assert accuracy_of(last.text()) == accuracy
        assert (cluster.model_dir / "saved_model.pb").is_file()
        assert find_complete(str(cluster.log_dir), now=float("inf"))


def test_the_linear_model_is_tested_on_the_same_texts(cluster_of: Start) -> None:
    with cluster_of(script="baseline.py", strategy="single", worker=1) as cluster:
        task = cluster.start("worker")
        assert task.wait() == 0, task.text()
        found = re.search(r"^baseline test accuracy (\d\.\d{4})$", task.text(), re.MULTILINE)
    assert found
    assert float(found[1]) > 0.5


@pytest.mark.parametrize("script", ["train.py", "baseline.py"])
def test_a_folder_that_is_not_prepared_is_named(cluster_of: Start, tmp_path: Path, script: str) -> None:
    with cluster_of(script=script, strategy="single", worker=1) as cluster:
        cluster.data_dir = tmp_path
        task = cluster.start("worker")
        assert task.wait() == 1
        assert f"{tmp_path} has no dataset.json: the dataset is not prepared" in task.text()
