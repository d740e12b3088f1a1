"""Code under a strategy that it was not written for, and what a first job of it most likely is."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from tests.unit.core.generators import make_spec
from tests.unit.core.test_path_flags import argparse_of
from tests.unit.core.test_preflight import CLASSIC, KERAS_MW, KERAS_PS
from yardmaster.code import bounded
from yardmaster.code.bounded import likely_bounded
from yardmaster.code.findings import Fix
from yardmaster.code.preflight import examine
from yardmaster.code.strategy_signs import Likely, likely_job
from yardmaster.job.spec import Strategy

BG, PS, MW, SINGLE, BATCH = (
    Strategy.BETWEEN_GRAPH,
    Strategy.PARAMETER_SERVER,
    Strategy.MULTI_WORKER_MIRRORED,
    Strategy.SINGLE,
    Strategy.BATCH,
)
SETTER = "import tensorflow.compat.v1 as tf\nwith tf.device(tf.train.replica_device_setter()):\n    pass\n"
FLAGS = argparse_of('"--ps_hosts"', '"--worker_hosts"', '"--job_name"', '"--task_index"', '"--data_dir"', '"--log_dir"')
CHOOSES = "import tensorflow as tf\ns = tf.distribute.MultiWorkerMirroredStrategy() if x else "
WRITTEN = [(KERAS_PS, PS), (KERAS_MW, MW), (CLASSIC, BG), (FLAGS, BG), (SETTER, BG)]


def files_of(script: str) -> dict[str, str]:
    indent = len(script) - len(script.lstrip("\n"))
    lines = script[indent:].split("\n")
    first = len(lines[0]) - len(lines[0].lstrip())
    return {"train.py": "\n".join(line[first:] for line in lines)}


@pytest.mark.parametrize("asked", [BG, PS, MW, SINGLE, BATCH])
@pytest.mark.parametrize(("script", "right"), WRITTEN)
def test_another_strategy_is_noticed_and_the_right_one_offered(script: str, right: Strategy, asked: Strategy) -> None:
    found = examine(make_spec(asked, {}), files_of(script)).findings
    wrong = [one for one in found if one.code == "wrong_strategy"]
    if asked is right:
        assert wrong == []
        return
    assert [one.fixes for one in wrong] == [(Fix(f"Use the strategy {right.value}", "strategy", right.value),)]
    assert right.value in wrong[0].message
    assert wrong[0].line > 0
    assert not {one.code for one in found} & {"no_coordinator", "no_server", "no_strategy", "no_cluster"}


@pytest.mark.parametrize(
    "script",
    [
        f"{CHOOSES}tf.distribute.MirroredStrategy()\n",
        f"{CHOOSES}tf.distribute.ParameterServerStrategy(r)\n",
        f"{CHOOSES}tf.distribute.OneDeviceStrategy('/gpu:0')\n",
        "print('MultiWorkerMirroredStrategy')\n",
        argparse_of('"--task_index"'),
    ],
)
@pytest.mark.parametrize("asked", [SINGLE, MW])
def test_code_that_chooses_itself_and_code_without_a_sign_are_left_alone(script: str, asked: Strategy) -> None:
    found = examine(make_spec(asked, {}), {"train.py": script}).findings
    assert "wrong_strategy" not in [one.code for one in found]


@pytest.mark.parametrize(("script", "right"), WRITTEN)
def test_a_first_job_has_the_strategy_that_the_code_was_written_for(script: str, right: Strategy) -> None:
    likely = likely_job(files_of(script), "train.py")
    assert likely is not None
    assert likely.strategy is right


def test_a_first_job_of_plain_code_is_a_single_task_with_what_its_parser_requires() -> None:
    script = argparse_of(
        '"--log_dir"', '"--train_dir", required=True', '"data_dir"', '"--rate", required=True, type=float'
    )
    assert likely_job({"train.py": script}, "train.py") == Likely(
        SINGLE, ("--train_dir=$LOG_DIR", "$DATA_DIR"), "train.py"
    )
    assert likely_job({"train.py": CHOOSES + "tf.distribute.MirroredStrategy()\n"}, "train.py") == Likely(
        SINGLE, (), "train.py"
    )


def test_nothing_is_proposed_of_code_that_is_distributed_in_a_way_of_its_own_or_cannot_be_read() -> None:
    assert likely_job({"train.py": "import os\nos.environ['TF_CONFIG']\n"}, "train.py") is None
    assert likely_job({"train.py": "x ="}, "train.py") is None
    assert likely_job({}, "train.py") is None


def test_a_script_of_a_package_is_run_as_its_module_and_old_code_in_its_mode() -> None:
    files = {"net/train.py": "from .data import x\n", "net/data.py": "x = 1\n", "net/__init__.py": ""}
    assert likely_job(files, "net/train.py") == Likely(SINGLE, (), "-m net.train")
    either = "try:\n    from .data import x\nexcept ImportError:\n    from data import x\n"
    assert likely_job({"net/train.py": either}, "net/train.py") == Likely(SINGLE, (), "net/train.py")
    old = "import tensorflow as tf\ntf.placeholder(tf.float32)\n"
    assert likely_job({"train.py": old}, "train.py") == Likely(SINGLE, (), "train.py", tf1=True)
    new = old.replace("import tensorflow as tf", "import tensorflow.compat.v1 as tf")
    assert likely_job({"train.py": new}, "train.py") == Likely(SINGLE, (), "train.py")


def test_a_first_job_of_a_notebook() -> None:
    cell = {"cell_type": "code", "metadata": {}, "outputs": [], "source": "%matplotlib inline\nprint(1)"}
    book = json.dumps({"nbformat": 4, "nbformat_minor": 4, "metadata": {}, "cells": [cell]})
    assert likely_job({"a.ipynb": book}, "a.ipynb") == Likely(SINGLE, (), "a.ipynb")
    assert likely_job({"a.ipynb": "{"}, "a.ipynb") is None


@pytest.mark.parametrize(
    ("path", "text", "fixes"),
    [
        ("net/train.py", "import os\nfrom .data import x\n", (Fix("Run -m net.train", "entry_point", "-m net.train"),)),
        ("train.py", "import os\nfrom . import data\n", ()),
        ("my-net/train.py", "import os\nfrom .data import x\n", ()),
    ],
)
def test_an_import_with_a_leading_dot_is_noticed_in_a_script_and_its_module_offered(path, text, fixes) -> None:
    spec = replace(make_spec(SINGLE, {}), entry_point=path)
    (found,) = [one for one in examine(spec, {path: text}).findings if one.code == "relative_import"]
    assert (found.file, found.line, found.fixes) == (path, 2, fixes)


@pytest.mark.parametrize("entry", ["-m net.train", "net/other.py", "net/lazy.py"])
def test_an_import_with_a_leading_dot_is_right_in_a_module_and_in_what_a_script_imports(entry: str) -> None:
    files = {
        "net/train.py": "from .data import x\n",
        "net/other.py": "import net.train\n",
        "net/lazy.py": "def f():\n    from .data import x\n",
        "net/data.py": "x = 1\n",
    }
    found = examine(replace(make_spec(SINGLE, {}), entry_point=entry), files).findings
    assert "relative_import" not in [one.code for one in found]


def test_large_code_is_proposed_for_from_its_sandbox() -> None:
    files = {"train.py": FLAGS + "# dull\n" * bounded.HARMLESS}
    assert likely_bounded(files, "train.py") == Likely(BG, (), "train.py")
    assert likely_bounded({"train.py": f"import a{'.a' * 60_000}\n"}, "train.py") is None
