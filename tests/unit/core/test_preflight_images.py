"""What is said of code that is to run in an image of the catalogue: nothing that is only true of the engines' own."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from tests.unit.core.generators import make_spec
from yardmaster.code.bounded import HARMLESS, examine_bounded
from yardmaster.code.findings import Severity
from yardmaster.code.preflight import examine
from yardmaster.code.surroundings import OWN_IMAGE, OWN_TENSORFLOW, ImageFacts, Surroundings
from yardmaster.job.spec import Strategy

ROOT = Path(__file__).parents[3]
OLD = ImageFacts(None, "3.10", "2.10.1")
OLDEST = ImageFacts(None, "3.7", "1.15.5")
UNKNOWN = ImageFacts(None)


def codes(source: str, image: ImageFacts, strategy: Strategy = Strategy.SINGLE) -> set[str]:
    found = examine(make_spec(strategy), {"train.py": source}, Surroundings(image=image)).findings
    return {one.code for one in found}


def test_the_version_of_the_engines_own_image_is_that_of_its_lock() -> None:
    lock = (ROOT / "deploy/images/task/requirements.txt").read_text()
    found = re.search(r"^tensorflow==(\d+\.\d+)\.", lock, re.MULTILINE)
    assert found
    assert found[1] == OWN_TENSORFLOW


@pytest.mark.parametrize(
    ("source", "code", "said_of"),
    [
        ("import tensorflow_addons", "unsupported_package", {"own"}),
        ("import tensorflow as tf\nprint(tf.estimator)", "unsupported_package", {"own"}),
        ("import horovod.tensorflow", "unsupported_package", {"own", "old", "oldest", "unknown"}),
        ("import tensorflow_io", "tensorflow_io", {"own"}),
        ("import tensorflow as tf\ntf.Session()", "tensorflow_1", {"own", "old"}),
        ("import tensorflow.contrib.slim", "tensorflow_gone", {"own", "old"}),
        ("import pandas", "missing_package", {"own"}),
    ],
)
def test_what_depends_on_the_version_is_said_of_that_version_alone(source: str, code: str, said_of: set[str]) -> None:
    images = {"own": OWN_IMAGE, "old": OLD, "oldest": OLDEST, "unknown": UNKNOWN}
    assert {name for name, image in images.items() if code in codes(source, image)} == said_of


def test_fit_of_keras_is_a_matter_of_keras_3() -> None:
    source = "import keras\nmodel = keras.Model()\nmodel.fit([], epochs=1)"
    assert "keras_3" in codes(source, OWN_IMAGE, Strategy.MULTI_WORKER_MIRRORED)
    assert "keras_3" not in codes(source, OLD, Strategy.MULTI_WORKER_MIRRORED)


def test_what_another_python_may_read_is_no_error() -> None:
    found = examine(make_spec(Strategy.SINGLE), {"train.py": "print 'old'"}, Surroundings(image=UNKNOWN)).findings
    assert [(one.code, one.severity) for one in found] == [("syntax_error", Severity.WARNING)]
    assert "another Python" in found[0].remedy
    found = examine(make_spec(Strategy.SINGLE), {"train.py": "print 'old'"}, Surroundings()).findings
    assert [one.severity for one in found] == [Severity.ERROR]


def test_packages_are_known_as_modules_or_as_distributions_and_tensorflow_brings_its_own() -> None:
    source = "import numpy, keras, google.protobuf, cv2, sklearn, yaml, absl.flags"
    has = frozenset({"opencv-python-headless", "scikit-learn", "yaml"})
    assert codes(source, ImageFacts(has, "3.11", "2.19.0")) == set()
    assert codes(source, ImageFacts(has | {"tensorflow"}, "3.11")) == set()
    assert codes(source, ImageFacts(has, "3.11")) == {"missing_package"}


def test_of_several_images_what_is_true_of_all_counts() -> None:
    one, other = ImageFacts(frozenset({"a", "b"}), "3.11", "2.19.0"), ImageFacts(frozenset({"b"}), "3.11", "2.10.0")
    both = ImageFacts.common([one, other])
    assert {"a", "b"} & (both.modules or set()) == {"b"}
    assert (both.python, both.tensorflow) == ("3.11", "")
    assert ImageFacts.common([one, UNKNOWN]).modules is None
    assert ImageFacts.common([one, OWN_IMAGE]).modules is not None
    assert ImageFacts.common([OWN_IMAGE, OWN_IMAGE]) is OWN_IMAGE


@pytest.mark.parametrize("image", [OWN_IMAGE, UNKNOWN, ImageFacts(frozenset({"pandas"}), "3.11", "2.19.0")])
def test_it_reaches_another_process(image: ImageFacts) -> None:
    around = Surroundings(frozenset({"own"}), False, image)
    assert Surroundings.of_json(json.loads(json.dumps(around.as_json()))) == around


def test_long_code_is_examined_with_the_same_image() -> None:
    files = {"train.py": "import pandas, tensorflow_addons\n" + "# x\n" * (HARMLESS // 4 + 10)}
    found = examine_bounded(make_spec(Strategy.SINGLE), files, Surroundings(image=OLD)).findings
    assert found == examine(make_spec(Strategy.SINGLE), files, Surroundings(image=OLD)).findings
    assert found != examine_bounded(make_spec(Strategy.SINGLE), files, Surroundings()).findings
