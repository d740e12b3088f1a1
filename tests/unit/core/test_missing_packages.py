"""Which packages a script lacks, which cannot help it, and what it would download."""

from __future__ import annotations

import re
import subprocess
from dataclasses import replace
from pathlib import Path
from textwrap import dedent
from typing import Any

import pytest

from tests.unit.core.generators import DATA, make_spec
from yardmaster.code.findings import Finding, Fix
from yardmaster.code.known_data import dataset_name, source_files
from yardmaster.code.packages import missing_packages
from yardmaster.code.preflight import examine
from yardmaster.code.requirement_files import asked_for
from yardmaster.code.script_facts import Location
from yardmaster.code.surroundings import Surroundings, own_names
from yardmaster.code.task_modules import MODULES
from yardmaster.job.spec import DatasetInput, Paths, Strategy
from yardmaster_runner.data import description
from yardmaster_runner.requirement_files import normal

ROOT = Path(description.__file__).parents[3]
LOCK = ROOT / "deploy/images/task/requirements.txt"


def found_in(script: str, others: dict[str, str] | None = None, **fields: Any) -> list[Finding]:
    files = {"train.py": dedent(script), **(others or {})}
    around = Surroundings(own_names([*files, "native/fast.cpython-311-x86_64-linux-gnu.so"]), has_way_out=False)
    return examine(make_spec(**({"strategy": Strategy.SINGLE} | fields)), files, around).findings


def missing(script: str, others: dict[str, str] | None = None) -> list[str]:
    return [one.fixes[0].value for one in found_in(script, others) if one.code == "missing_package"]


def test_the_modules_of_the_image_are_those_of_its_lock() -> None:
    locked = {normal(one) for one in re.findall(r"^([A-Za-z0-9][\w.-]*)==", LOCK.read_text(), re.MULTILINE)}
    assert set(MODULES) == locked, "run .venv-tasks/bin/python deploy/setup/task_modules.py"


def test_the_modules_of_the_image_are_those_of_the_tasks_environment() -> None:
    python = ROOT / ".venv-tasks/bin/python"
    if not python.exists():
        pytest.skip("the environment of tasks is not installed")
    script = "import runpy; print(runpy.run_path('deploy/setup/task_modules.py')['text'](), end='')"
    done = subprocess.run([python, "-c", script], cwd=ROOT, capture_output=True, text=True, check=True)
    assert done.stdout == (ROOT / "platform/yardmaster/code/task_modules.py").read_text()


def test_a_missing_module_is_named_with_what_brings_it() -> None:
    script = """
        import json, os.path, numpy as np, PIL.Image, sklearn.svm
        import cv2, pandas as pd
        import pandas.core
        from yaml import safe_load
        from google.protobuf import text_format
        from google.cloud import storage
        import tf_keras, tensorflow as tf
        from yardmaster_runner import data
    """
    assert missing(script) == ["opencv-python-headless", "pandas", "pyyaml", "google-cloud-storage"]
    one = next(one for one in found_in(script) if "cv2" in one.message)
    assert (one.code, one.file, one.line) == ("missing_package", "train.py", 3)
    assert one.fixes == (
        Fix("Add opencv-python-headless to the requirements", "requirements", "opencv-python-headless", adds=True),
    )


@pytest.mark.parametrize(
    "script",
    [
        "try:\n    import wandb\nexcept ImportError:\n    wandb = None\n",
        "try:\n    import cv2\nexcept (ValueError, ModuleNotFoundError):\n    import imageio\n",
        "try:\n    import wandb\nexcept:\n    pass\n",
        "def plot():\n    import matplotlib.pyplot as plt\n",
        "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    import pandas\n",
        "from . import model\nimport model, helpers.text, fast\n",
    ],
)
def test_imports_that_need_not_be_there_and_those_of_the_code_are_not_missing(script: str) -> None:
    assert missing(script, {"src/model.py": "", "lib/helpers/text.py": ""}) == []


def test_imports_of_the_codes_own_modules_count_and_those_of_other_files_do_not() -> None:
    others = {"model.py": "import einops\nif __name__ == '__main__':\n    import click\n", "other.py": "import torch\n"}
    found = [one for one in found_in("import model\n", others) if one.code == "missing_package"]
    assert [(one.fixes[0].value, one.file, one.line) for one in found] == [("einops", "model.py", 1)]
    assert missing("if __name__ == '__main__':\n    import click\n") == ["click"]
    assert missing("try:\n    import click\nfinally:\n    import einops\n") == ["click", "einops"]


def test_what_the_code_asks_for_is_not_missing() -> None:
    script = "import cv2, yaml, pandas, einops, mypkg\n"
    text = "# all\nopencv-python==4.9 ; python_version > '3'\nPyYAML\n--pre\npython-mypkg\n"
    (pandas, einops) = (one for one in found_in(script, {"requirements.txt": text}) if one.code == "missing_package")
    assert (pandas.remedy, pandas.fixes) == ("Add pandas to requirements.txt in the code.", ())
    assert "einops" in einops.remedy
    more = {"requirements.txt": f"{text}-r more.txt\n"}
    assert missing(script, more) == [], "it may be in the other file"
    toml = '[project]\ndependencies = ["pandas>=2", 3, "einops", "opencv-python", "mypkg", "pyyaml"]\n'
    assert missing(script, {"pyproject.toml": toml}) == []
    assert len(found_in(script, {"requirements.txt": "", "pyproject.toml": toml})) == 5, "the first of them counts"
    assert len(found_in(script, {"jobs/requirements.txt": text})) == 5, "only in the root of the code"


def test_what_the_specification_asks_for_takes_the_place_of_the_codes_file() -> None:
    given = found_in("import yaml, pandas\n", {"requirements.txt": "pandas\n"}, requirements=("pyyaml>=6",))
    assert [one.fixes[0].value for one in given] == ["pandas"]
    needed = {"yaml": Location("train.py", 1)}
    assert list(missing_packages(needed, Surroundings(), asked_for(["pyyaml>=6"], {}))) == []
    assert len(list(missing_packages(needed, Surroundings(), asked_for(["--pre"], {})))) == 1


@pytest.mark.parametrize("text", ["[project", "project = 3", "[project]\ndependencies = 3", "[tool]\npoetry=1", "\0"])
def test_a_pyproject_that_is_none_asks_for_nothing(text: str) -> None:
    assert asked_for(None, {"pyproject.toml": text}).names == set()


def test_many_missing_modules_are_not_all_listed() -> None:
    assert len(missing("".join(f"import none{n}\n" for n in range(500)))) == 8


@pytest.mark.parametrize(
    ("script", "word"),
    [
        ("import horovod.tensorflow as hvd\nhvd.init()\n", "launcher"),
        ("import tensorflow as tf\ntf.estimator.Estimator(f)\n", "2.16"),
        ("import tensorflow.compat.v1 as tf\ntf.estimator.Estimator(f)\n", "2.16"),
        ("import tensorflow_addons as tfa\ntfa.optimizers.AdamW(1)\n", "no longer maintained"),
        ("from keras.utils import multi_gpu_model\nm = multi_gpu_model(m, 2)\n", "multi_gpu_model was removed"),
    ],
)
def test_what_cannot_help_is_explained_and_not_proposed(script: str, word: str) -> None:
    (found,) = found_in(script)
    assert (found.code, found.fixes, found.file) == ("unsupported_package", (), "train.py")
    assert word in found.message
    assert found.remedy


def test_pyspark_belongs_to_the_strategy_that_has_a_spark_cluster() -> None:
    script = "from pyspark.sql import SparkSession\nfrom tensorflowonspark import TFCluster\n"
    (found,) = found_in(script)
    assert (found.code, found.fixes[0].value) == ("wrong_strategy", "spark")
    assert [one.code for one in found_in("import sparkdl\n")] == ["unsupported_package"]
    assert found_in(script, strategy=Strategy.SPARK) == []


def downloaded(script: str, **fields: Any) -> list[Finding]:
    return [one for one in found_in(script, **fields) if one.code == "downloads"]


KERAS = "import tensorflow as tf\n(x, y), _ = tf.keras.datasets.mnist.load_data()\n"


@pytest.mark.parametrize(
    ("script", "remedy", "fix"),
    [
        (KERAS, "datasets/mnist.npz", "environment.KERAS_HOME"),
        ("from keras.datasets import cifar10\ncifar10.load_data()\n", "datasets/cifar-10", "environment.KERAS_HOME"),
        ("from tf_keras.datasets import mnist\nmnist.load_data()\n", "datasets/mnist.npz", "environment.KERAS_HOME"),
        ("import keras\nkeras.datasets.imdb.load_data()\n", "datasets/imdb.npz", "environment.KERAS_HOME"),
        ("import keras\nkeras.datasets.fashion_mnist.load_data()\n", "the 4 files of datasets/fashion-mnist/",
         "environment.KERAS_HOME"),
        ("import tensorflow_datasets as tfds\ntfds.load('mnist:3.*.*')\n", "mnist/", "environment.TFDS_DATA_DIR"),
        ("import tensorflow_hub as hub\nhub.KerasLayer('https://tfhub.dev/x/1')\n", "in the folder c4a",
         "environment.TFHUB_CACHE_DIR"),
        ("from tensorflow.keras.applications import ResNet50\nResNet50()\n", "models/", "environment.KERAS_HOME"),
        ("import keras\nkeras.applications.resnet.ResNet50(weights='imagenet')\n", "models/", "environment.KERAS_HOME"),
        ("import tensorflow as tf\ntf.keras.utils.get_file('x', 'http://h/x')\n", "$DATA_DIR", ""),
    ],
)  # fmt: skip
def test_what_is_downloaded_is_named_with_its_recipe(script: str, remedy: str, fix: str) -> None:
    (found,) = downloaded(script)
    assert remedy.replace("c4a", "") in found.remedy
    assert [one.field for one in found.fixes] == ([fix] if fix else [])
    assert found.line == 2


def test_the_portal_can_make_one_dataset_of_all_known_sets_that_a_script_loads() -> None:
    script = "import keras\nd = keras.datasets\nkeras.datasets.reuters.load_data()\nkeras.datasets.mnist.load_data()\n"
    first, second = downloaded(script)
    assert (first.makes, second.makes) == ("keras/mnist+reuters", "")
    assert source_files(first.makes)[0].path == "datasets/mnist.npz"
    assert dataset_name(first.makes) == "keras-mnist-reuters"


@pytest.mark.parametrize(
    ("script", "makes"),
    [
        ("import keras\nkeras.datasets.mnist.load_data(path='mine.npz')\n", ""),
        ("import keras\nkeras.datasets.mnist.load_data('mine.npz')\n", ""),
        ("import keras\nkeras.datasets.cifar100.load_data('coarse')\n", "keras/cifar100"),
        ("import keras\nkeras.datasets.california_housing.load_data('small')\n", "keras/california_housing"),
        ("import keras\nkeras.datasets.unknown.load_data()\n", ""),
        ("import tensorflow_datasets as tfds\ntfds.load('mnist')\n", ""),
        ("import keras\nkeras.applications.ResNet50()\n", ""),
    ],
)
def test_only_what_has_its_known_name_can_be_made(script: str, makes: str) -> None:
    (found,) = downloaded(script)
    assert found.makes == makes
    (bare,) = downloaded(script, paths=replace(Paths(), data_env=""))
    assert bare.makes == ""


@pytest.mark.parametrize("source", ["", "keras/", "keras/mnist+imdb", "keras/imdb+imdb", "tfds/mnist", "mnist"])
def test_a_source_is_written_in_one_way(source: str) -> None:
    assert source_files(source) == ()


@pytest.mark.parametrize(
    "script",
    [
        "import keras\nkeras.applications.ResNet50(weights=None)\n",
        "import tensorflow_datasets as tfds\ntfds.load('mnist', data_dir=path)\n",
        "import tensorflow_hub as hub\nhub.load('/models/x')\n",
        "from mine import datasets\ndatasets.digits.load_data()\n",
        "import tensorflow as tf\nmodel = tf.keras.applications.resnet.preprocess_input(x)\n",
    ],
)
def test_what_is_not_downloaded_is_left_alone(script: str) -> None:
    assert downloaded(script, environment={}) == []


def test_downloads_are_left_alone_where_the_job_says_where_they_are_and_where_tasks_have_a_way_out() -> None:
    assert downloaded(KERAS, environment={"KERAS_HOME": "$DATA_DIR"}) == []
    assert examine(make_spec(Strategy.SINGLE), {"train.py": KERAS}).findings == []
    (found,) = downloaded(KERAS, inputs=(DatasetInput(DATA, "keras"),))
    assert found.fixes == (Fix("Set KERAS_HOME to $DATA_DIR/keras", "environment.KERAS_HOME", "$DATA_DIR/keras"),)
