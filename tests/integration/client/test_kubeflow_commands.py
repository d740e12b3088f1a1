"""`yardmaster jobs import` and `yardmaster jobs export` against a real portal."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml

from yardmaster_client.jobfile import read_job_file

pytestmark = pytest.mark.slow

TFJOB = """
apiVersion: kubeflow.org/v1
kind: TFJob
metadata: {name: hello-tfjob}
spec:
  tfReplicaSpecs:
    Worker:
      template:
        spec:
          containers:
          - {name: tensorflow, image: "team/mnist:1", command: [python, /opt/train.py], args: ["--lr=0.1"]}
"""


@pytest.fixture
def tfjob(tmp_path: Path) -> Path:
    file = tmp_path / "tfjob.yaml"
    file.write_text(TFJOB)
    return file


def test_the_job_file_is_the_result_and_the_notes_are_beside_it(yardmaster, tfjob: Path, tmp_path: Path):
    done = yardmaster("jobs", "import", tfjob)
    assert done.code == 0, done.err
    assert yaml.safe_load(done.out)["entry_point"] == "train.py"
    assert "to do: The image team/mnist:1 is not taken" in done.err
    done = yardmaster("jobs", "import", tfjob, "-o", tmp_path / "job.yaml")
    assert (done.code, done.out) == (0, "")
    assert read_job_file(tmp_path / "job.yaml").spec["name"] == "hello-tfjob"
    assert yardmaster("jobs", "import", tfjob, "--json").json["is_ready"] is False


def test_it_is_launched_with_the_script_where_the_folder_has_it_and_exported(yardmaster, tfjob: Path, tmp_path: Path):
    folder = tmp_path / "code"
    (folder / "src").mkdir(parents=True)
    (folder / "src" / "train.py").write_text("import sys\nprint(sys.argv)\n")
    done = yardmaster("jobs", "import", tfjob, "--code", folder, "--launch")
    assert "yardmaster code upload" not in done.err, "--code does that"
    assert done.code == 0, done.err
    assert "The script is src/train.py" in done.err
    exported = yardmaster("jobs", "export", "hello-tfjob", "--image", "team/tf:2", "-o", tmp_path / "k8s.yaml")
    assert exported.code == 0, exported.err
    kinds = [one["kind"] for one in yaml.safe_load_all((tmp_path / "k8s.yaml").read_text())]
    assert kinds == ["ConfigMap", "ConfigMap", "Job"]
    assert "- src/train.py" in (tmp_path / "k8s.yaml").read_text()
    file = tmp_path / "job.yaml"
    assert yardmaster("jobs", "import", tfjob, "--code", folder, "-o", file).code == 0
    from_file = yardmaster("jobs", "export", file, "--code", folder, "--image", "team/tf:2")
    assert from_file.code == 0, from_file.err
    assert from_file.out == (tmp_path / "k8s.yaml").read_text(), "the same job, launched or not"


def test_mistakes_are_named(yardmaster, tfjob: Path, tmp_path: Path):
    assert yardmaster("jobs", "import", tmp_path / "none.yaml").code == 2
    assert yardmaster("jobs", "import", tfjob, "--code", tfjob).code == 2
    (tmp_path / "large.yaml").write_text("#" * 300_000)
    assert yardmaster("jobs", "import", tmp_path / "large.yaml").code == 2
    tfjob.write_text(TFJOB.replace("TFJob", "PyTorchJob"))
    refused = yardmaster("jobs", "import", tfjob)
    assert refused.code == 1
    assert "PyTorchJob" in refused.err
    assert yardmaster("jobs", "export", "nothing-of-this-name").code == 1
