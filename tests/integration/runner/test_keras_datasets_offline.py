"""The datasets of `keras.datasets` without a network: the list of their files is that of the Keras of the tasks, both
versions, and an unchanged script finds them among the inputs of its job."""

from __future__ import annotations

import gzip
import json
import subprocess
from pathlib import Path

import pytest

from portal.env import task_python
from tests.integration.runner.conftest import Task
from tests.integration.runner.fake_task_portal import FakeTaskPortal
from yardmaster.code.known_data import KERAS
from yardmaster_runner.keras_home import OTHER_NAMES

pytestmark = [pytest.mark.tensorflow, pytest.mark.slow, pytest.mark.timeout(200)]

ASKED = """
import importlib, json, os, sys
home, names = sys.argv[1], sys.argv[2:]
os.environ["KERAS_HOME"] = os.environ["HOME"] = home
os.makedirs(home + "/.keras", exist_ok=True)
asked = {}
for keras, getter in (("keras.src", "keras.src.utils.file_utils"), ("tf_keras.src", "tf_keras.src.utils.data_utils")):
    utils = importlib.import_module(getter)

    def fetch(address, target, *_):
        found.append([os.path.relpath(target, home), address, digest[0]])
        open(target, "wb").close()

    utils.urlretrieve, utils.validate_file = fetch, lambda *_, **__: True
    digest = [""]
    for name in names:
        try:
            module = importlib.import_module(f"{keras}.datasets.{name}")
        except ModuleNotFoundError:
            continue
        found, real = [], module.get_file

        def get_file(*given, **more):
            digest[0] = more.get("file_hash") or ""
            return real(*given, **more)

        module.get_file = get_file
        for ask in ("load_data", "get_word_index"):
            try:
                getattr(module, ask, int)()
            except Exception:
                pass
            if name == "fashion_mnist":
                break
        module.get_file = real
        asked.setdefault(name, []).append(found)
print(json.dumps(asked))
"""

SCRIPT = """
import tensorflow as tf
print("Keras 2:", "tf_keras" in tf.keras.datasets.__name__)
(x, y), (x_test, y_test) = tf.keras.datasets.fashion_mnist.load_data()
print("shapes", x.shape, y.shape, x_test.shape, int(x.max()), y_test.tolist())
"""


def test_the_list_is_that_of_the_keras_of_the_tasks(tmp_path: Path) -> None:
    command = [task_python(), "-c", ASKED, str(tmp_path), *KERAS]
    done = subprocess.run(command, capture_output=True, text=True, timeout=150, check=True)
    asked = json.loads(done.stdout.strip().splitlines()[-1])
    assert set(asked) == set(KERAS)
    assert len(asked["mnist"]) == 2, "Keras 3 and Keras 2"
    for name, files in KERAS.items():
        names = {one.path: one for one in files}
        for known in files:
            folder, _, last = known.path.rpartition("/")
            names |= {f"{folder}/{other}": known for other in OTHER_NAMES.get(last, ())}
        for version in asked[name]:
            # An empty file ends `load_data` after the first, so of Fashion-MNIST one of the four is asked for.
            assert len(version) >= (1 if name == "fashion_mnist" else len(files)), (name, version)
            for path, address, digest in version:
                known = names[path.removeprefix(".keras/")]
                assert known.address == address
                assert digest in ("", known.digest)


def idx(*numbers: int, head: int) -> bytes:
    return gzip.compress(bytes(head) + bytes(numbers))


@pytest.mark.parametrize("legacy", ["0", "1"])
def test_an_unchanged_script_finds_its_data_set_in_every_keras(
    tmp_path: Path, portal: FakeTaskPortal, legacy: str
) -> None:
    home = tmp_path / "work" / "home"
    home.mkdir(parents=True)
    task = Task(tmp_path, portal)
    task.variables = {
        "YARDMASTER_PYTHON": task_python(), "CUDA_VISIBLE_DEVICES": "", "HOME": str(home),
        "https_proxy": "http://127.0.0.1:9",
    }  # fmt: skip
    portal.orders(SCRIPT, spec_environment={"KERAS_HOME": "$DATA_DIR", "TF_USE_LEGACY_KERAS": legacy})
    contents = {
        "train-labels-idx1-ubyte.gz": idx(3, 4, head=8), "t10k-labels-idx1-ubyte.gz": idx(7, head=8),
        "train-images-idx3-ubyte.gz": idx(*[9] * (2 * 784), head=16),
        "t10k-images-idx3-ubyte.gz": idx(*[1] * 784, head=16),
    }  # fmt: skip
    files = [portal.add_file(f"datasets/fashion-mnist/{name}", content) for name, content in contents.items()]
    portal.order["inputs"] = [{"version": "fashion", "name": "", "files": files}]
    assert task.run(timeout=120) == 0, portal.lines()
    lines = [line.decode() for line in portal.lines()]
    assert f"Keras 2: {legacy == '1'}" in lines
    assert "shapes (2, 28, 28) (2,) (1, 28, 28) 9 [7]" in lines
