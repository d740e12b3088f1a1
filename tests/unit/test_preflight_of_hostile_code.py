"""Code made to be hard to read costs a bounded time and memory, and its launch a warning, on every Python.

Parsers differ: what takes 3.11 minutes, later ones may read within the limits. The bounds hold for each text.
"""

from __future__ import annotations

import json
import subprocess
import sys
import time
import uuid
from pathlib import Path

import pytest

from yardmaster.code import bounded
from yardmaster.code.bounded import HARMLESS, preflight_bounded
from yardmaster.code.preflight import preflight
from yardmaster.job.spec import Role, RoleSpec, Strategy, TrainingSpec

SPEC = TrainingSpec("x", Strategy.SINGLE, {Role.WORKER: RoleSpec()}, uuid.UUID(int=1), "train.py")
MANY_PARTS = {"train.py": f"import a{'.a' * 60_000}\n"}
MANY_FIELDS = {"train.py": "x = f'" + "{a}" * 200_000 + "'\n"}
MANY_FIELDS_IN_MANY_FILES = {f"part{n}.py": "x = f'" + "{a}" * 330_000 + "'\n" for n in range(8)} | {
    "train.py": "import part0, part1, part2, part3, part4, part5, part6, part7\n"
}
NOT_READ = [["code_not_read"], ["syntax_error"]]
"""Where memory runs out within the parser, Python itself says that it cannot read the file."""
READ_OR_NOT = NOT_READ if sys.version_info < (3, 12) else [[], *NOT_READ]
TEXTS = [
    pytest.param(MANY_PARTS, NOT_READ, id="a name of many parts: 4 GB in the parser"),
    pytest.param(MANY_FIELDS, READ_OR_NOT, id="a text of many fields: minutes in the parser of 3.11"),
    pytest.param(MANY_FIELDS_IN_MANY_FILES, NOT_READ, id="many such texts: too long in each parser"),
]
MEASURE = """
import json, resource, sys, uuid
from yardmaster.code.bounded import preflight_bounded
from yardmaster.job.spec import Role, RoleSpec, Strategy, TrainingSpec
spec = TrainingSpec("x", Strategy.SINGLE, {Role.WORKER: RoleSpec()}, uuid.UUID(int=1), "train.py")
codes = [one.code for one in preflight_bounded(spec, json.load(sys.stdin))]
used = resource.getrusage(resource.RUSAGE_CHILDREN)
print(json.dumps([codes, used.ru_utime + used.ru_stime, used.ru_maxrss / 2**20]))
"""


@pytest.mark.linux
@pytest.mark.parametrize(("files", "outcomes"), TEXTS)
def test_code_that_is_too_hard_to_read_is_said_to_be_at_a_bounded_cost(
    files: dict[str, str], outcomes: list[list[str]]
):
    environment = {"PYTHONPATH": str(Path(bounded.__file__).parents[2])}
    began = time.monotonic()
    done = subprocess.run(
        [sys.executable, "-c", MEASURE], input=json.dumps(files), env=environment, stdout=subprocess.PIPE, text=True,
        check=True, timeout=60,
    )  # fmt: skip
    took = time.monotonic() - began
    codes, processor_seconds, gibibytes = json.loads(done.stdout)
    assert codes in outcomes
    assert processor_seconds < 4
    assert gibibytes <= 1
    assert took < bounded.SECONDS + 10


def test_large_code_is_looked_at_like_small_code():
    text = "import tensorflow as tf\ntf.placeholder\nopen('/content/x')\n" + "# dull\n" * HARMLESS
    found = preflight_bounded(SPEC, {"train.py": text})
    assert found == preflight(SPEC, {"train.py": text})
    assert found


@pytest.mark.parametrize("text", ["import a" + ".a" * 6000, "print(" * 190 + ")" * 190, "f'" + "{a}" * 4000 + "'"])
def test_what_is_read_in_this_process_is_cheap(text):
    text = (text + "\n") * max(1, HARMLESS // len(text) - 1)
    began = time.process_time()
    preflight(SPEC, {"train.py": text})
    assert time.process_time() - began < 2
