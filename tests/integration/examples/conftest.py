"""The digits, prepared once for all tests of the examples, and TensorFlow, imported once for most of their tasks."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

import pytest

from portal.env import task_python
from tests.real.digits import digits as prepared
from tests.real.portal import ROOT
from tests.real.tensorflow_forks import TensorFlowForks


@pytest.fixture(scope="session")
def digits(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the shards, as `prepare.py` writes them."""
    return prepared(tmp_path_factory.mktemp("digits") / "data")


@pytest.fixture(scope="session")
def forks() -> Iterator[Callable[[Mapping[str, str]], TensorFlowForks]]:
    """The process that has imported TensorFlow as this environment would. Which Keras is imported is told by it."""
    told = "TF_USE_LEGACY_KERAS"
    known: dict[str, TensorFlowForks] = {}

    def of(environment: Mapping[str, str]) -> TensorFlowForks:
        keras = environment.get(told, "0")
        if keras not in known:
            paths = {"PYTHONPATH": str(ROOT / "platform")}  # some scripts import yardmaster_runner.data, as in a job
            known[keras] = TensorFlowForks(task_python(), {**os.environ, **paths, told: keras})
        return known[keras]

    yield of
    for one in known.values():
        one.close()
