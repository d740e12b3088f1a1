"""Code under a strategy that it was not written for, and what a first job of it most likely is."""

from __future__ import annotations

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
    assert likely_job({"train.py": script}, "train.py") == Likely(SINGLE, ("--train_dir=$LOG_DIR", "$DATA_DIR"))
    assert likely_job({"train.py": CHOOSES + "tf.distribute.MirroredStrategy()\n"}, "train.py") == Likely(SINGLE, ())


def test_nothing_is_proposed_of_code_that_is_distributed_in_a_way_of_its_own_or_cannot_be_read() -> None:
    assert likely_job({"train.py": "import os\nos.environ['TF_CONFIG']\n"}, "train.py") is None
    assert likely_job({"train.py": "x ="}, "train.py") is None
    assert likely_job({}, "train.py") is None


def test_large_code_is_proposed_for_from_its_sandbox() -> None:
    files = {"train.py": FLAGS + "# dull\n" * bounded.HARMLESS}
    assert likely_bounded(files, "train.py") == Likely(BG, ())
    assert likely_bounded({"train.py": f"import a{'.a' * 60_000}\n"}, "train.py") is None
