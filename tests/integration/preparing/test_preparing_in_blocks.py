"""What is written and counted of many records at once is what single ones give. In the Python of tasks, for NumPy."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from portal.env import task_python

pytestmark = [pytest.mark.tensorflow]

PLATFORM = Path(__file__).resolve().parents[3] / "platform"
COMPARE = """
import math, random, numpy
from yardmaster_runner.data import example_bytes
from yardmaster_runner.prepare import wire
from yardmaster_runner.prepare.histogram import Histogram
from yardmaster_runner.prepare.numbers import Numbers

draw = random.Random(5)
kinds = {"a": "float", "n": "int64", "ü": "bytes", "b": "float"}
columns = {
    "a": [draw.uniform(-1e6, 1e6) for _ in range(500)], "b": [1, 2.5, float("nan"), float("inf")] * 125,
    "n": [draw.choice([0, 1, 127, 128, -1, True, 2**63 - 1, -(2**63), draw.randrange(10**6)]) for _ in range(500)],
    "ü": [bytes(draw.choice([0, 1, 127, 128, 300, 20_000])) for _ in range(500)],
}
encoder = wire.Encoder(kinds)
order = ["n", "ü", "a", "b"]
single = [example_bytes.example({name: (kinds[name], [columns[name][at]]) for name in order}) for at in range(500)]
assert encoder.examples(columns) == single
assert encoder.examples({name: column[:3] for name, column in columns.items()}) == single[:3]
one = wire.Encoder({"n": "int64"})
assert one.examples({"n": [5]}) == [example_bytes.example({"n": ("int64", [5])})]

for trial in range(200):
    scale = 10.0 ** draw.randrange(-300, 38)
    values = [draw.choice([0.0, 1.0, -1.0, draw.gauss(draw.choice([0, 1000]), 1)]) * scale for _ in range(60)]
    values += [draw.uniform(-1, 1) * 10.0 ** draw.randrange(-30, 38)] * draw.randrange(2)
    histogram, both = Histogram(), Histogram()
    numbers = Numbers()
    for value in values:
        histogram.add(value)
        numbers.add(value)
    at = draw.randrange(60)
    for part in (values[:at], [], values[at:]):
        both.add_all(numpy.array(part))
    assert both.to_members() == histogram.to_members(), (values, both.facts(), histogram.facts())
    assert sum(both.bins.values()) == len(values)
    many = Numbers().with_all(numpy.array(values[:at])).with_all(numpy.array(values[at:]))
    for name, value in numbers.facts().items():
        assert math.isclose(value, many.facts()[name], rel_tol=1e-6, abs_tol=1e-6 * abs(numbers.high)), (name, values)
"""


def test_blocks_give_what_single_records_give():
    environment = {"PATH": os.environ["PATH"], "PYTHONPATH": str(PLATFORM)}
    done = subprocess.run([task_python(), "-c", COMPARE], capture_output=True, text=True, env=environment, timeout=100)
    assert done.returncode == 0, done.stderr
