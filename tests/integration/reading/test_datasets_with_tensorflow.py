"""`yardmaster_runner.data` with TensorFlow, on prepared folders: how examples look, and what is said of broken ones.

All checks run in one process, since importing TensorFlow takes most of the time.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from portal.env import task_python
from tests.integration.reading.prepared import write

pytestmark = [pytest.mark.tensorflow, pytest.mark.slow]

PLATFORM = Path(__file__).resolve().parents[3] / "platform"


def in_tensorflow(name: str, *arguments: object) -> dict:
    """What a function of this file returns, run where tasks run."""
    environment = {"PATH": os.environ["PATH"], "PYTHONPATH": str(PLATFORM), "TF_CPP_MIN_LOG_LEVEL": "3"}
    source = Path(__file__).with_name("with_tensorflow.py")
    command = [task_python(), str(source), name, *map(str, arguments)]
    done = subprocess.run(command, capture_output=True, text=True, env=environment, timeout=120, check=False)
    assert done.returncode == 0, done.stderr[-3000:]
    return json.loads(done.stdout.splitlines()[-1])


@pytest.fixture(scope="module")
def found(tmp_path_factory: pytest.TempPathFactory) -> dict:
    top = tmp_path_factory.mktemp("prepared")
    plain, packed = write(top / "plain"), write(top / "packed", shards=2, compression="GZIP")
    for name in ("cut", "gone"):
        write(top / name)
    shard = top / "cut" / "train" / "train-00001.tfrecord"
    shard.write_bytes(shard.read_bytes()[:-40])
    (top / "gone" / "train" / "train-00002.tfrecord").unlink()
    return in_tensorflow("look", plain, packed, top / "cut", top / "gone", top)


def test_examples_are_batches_by_the_features_of_the_description(found: dict) -> None:
    assert found["shapes"] == {"numbers": [32, None], "point": [32, 2], "raw": [32, 2, 2], "text": [32]}
    assert found["raw"] == [[1, 2], [3, 4]]
    assert found["text"] == "größe 0"
    assert found["batches"] == [32, 32, 32, 24]
    assert found["as_dict"] == ["label", "numbers", "point", "raw", "text"]


def test_every_record_comes_once_in_order_or_shuffled_by_the_seed(found: dict) -> None:
    assert found["in_order"] == list(range(120))
    assert sorted(found["shuffled"]) == list(range(120))
    assert found["shuffled"] != found["in_order"]
    assert found["shuffled"] == found["shuffled_again"]
    assert found["compressed"] == list(range(40))
    assert found["repeated"] == 240


def test_a_share_is_every_nth_shard(found: dict) -> None:
    assert found["share"] == [*range(20, 40), *range(80, 100)]
    assert "6 shards for 7 tasks, so task 6 has none" in found["no_share"]


def test_a_dataset_of_a_single_feature_and_images_are_plain_tensors(found: dict) -> None:
    assert found["images"] == {"shape": [4, 8, 6, 3], "dtype": "float32", "labels": [0, 1, 2, 3]}
    assert found["undecoded"] == "string"


def test_errors_name_the_file_and_what_to_do(found: dict) -> None:
    assert "train/train-00001.tfrecord" in found["cut"]
    assert "it ends within record 19 (from 0" in found["cut"]
    assert "train/train-00002.tfrecord is missing" in found["gone"]
    assert "has no dataset.json" in found["unprepared"]
    assert "Prepare it" in found["unprepared"]
    assert "no split 'test'. Its splits: train" in found["split"]
    assert "Outside a job: give the path of a folder" in found["name"]


def test_s3_paths_are_mapped_for_fsspec(tmp_path: Path) -> None:
    """With the file that the runner writes, and its entry point beside the package."""
    from yardmaster_runner import offered
    from yardmaster_runner.order import read_order

    single = {"strategy": "single", "roles": {"worker": {}}}
    order = read_order({"job": "1", "attempt": 1, "spec": single, "code": {"version": "1", "files": []}})
    folder = write(tmp_path / "prepared")
    (folder / "more").mkdir()
    (folder / "more" / "x.csv").write_text("a,b\n1,2\n")
    offered.make(str(tmp_path / "work"), order)
    inputs = {"name": "reviews", "dataset": "r", "folder": str(folder), "mode": "folder", "share": "all"}
    where = tmp_path / "inputs.json"
    where.write_text(json.dumps({"socket": None, "stream_bytes": 1, "part": None, "inputs": [inputs]}))
    environment = {"PATH": os.environ["PATH"], "PYTHONPATH": offered.folder_in(str(tmp_path / "work"))}
    environment["YARDMASTER_DATA"] = str(where)
    source = Path(__file__).with_name("with_fsspec.py")
    done = subprocess.run([task_python(), str(source)], capture_output=True, text=True, env=environment, check=False)
    assert done.returncode == 0, done.stderr[-3000:]
    said = json.loads(done.stdout)
    assert said["text"] == said["by_the_key"] == "a,b\n1,2\n"
    assert said["listed"] == ["bucket/reviews/dataset.json", "bucket/reviews/more", "bucket/reviews/train"]
    assert said["glob"] == [f"bucket/reviews/train/train-{n:05}.tfrecord" for n in range(6)]
    assert "s3://elsewhere/y.csv maps to no input of this job" in said["nowhere"]
    assert "cannot be written to" in said["written"]

    inputs["stands_for"] = "s3://theirs/data"
    where.write_text(json.dumps({"socket": None, "stream_bytes": 1, "part": None, "inputs": [inputs]}))
    script = (
        "import fsspec; s3 = fsspec.filesystem('s3')\nprint(s3.glob('s3://theirs/*/more/*'), s3.ls('s3://theirs/'))"
    )
    script += "\nprint(fsspec.open('s3a://theirs/data/more/x.csv', 'r').open().read())"
    script += "\nprint(s3.find('s3://theirs/data/train')[5], s3.exists('s3://theirs/data/no'))"
    done = subprocess.run([task_python(), "-c", script], capture_output=True, text=True, env=environment, check=False)
    assert done.returncode == 0, done.stderr[-3000:]
    assert "['theirs/data/more/x.csv'] [{'name': 'theirs/data', 'size': 0, 'type': 'directory'}]" in done.stdout
    assert "a,b\n1,2\n" in done.stdout
    assert "theirs/data/train/train-00005.tfrecord False" in done.stdout


def test_python_of_the_portal_needs_no_tensorflow_to_describe(tmp_path: Path) -> None:
    script = "import sys; from yardmaster_runner import data; d = data.describe(sys.argv[1]); print(d.records('train'))"
    folder = write(tmp_path)
    told = {"PYTHONPATH": str(PLATFORM)}
    done = subprocess.run([sys.executable, "-c", script, folder], capture_output=True, text=True, env=told, check=True)
    assert done.stdout.strip() == "120"
