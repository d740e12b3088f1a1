"""Code made to be hard to read costs a bounded time, and its launch a warning."""

from __future__ import annotations

import time
import uuid

import pytest

from yardmaster import preflight_apart
from yardmaster.preflight import preflight
from yardmaster.preflight_apart import HARMLESS, preflight_bounded
from yardmaster.spec import Role, RoleSpec, Strategy, TrainingSpec

SPEC = TrainingSpec("x", Strategy.SINGLE, {Role.WORKER: RoleSpec()}, uuid.UUID(int=1), "train.py")


@pytest.mark.parametrize(
    "text",
    [
        pytest.param(f"import a{'.a' * 60_000}\n", id="a name of many parts: 4 GB in the parser"),
        pytest.param("x = f'" + "{a}" * 200_000 + "'\n", id="a text of many fields: minutes in the parser"),
    ],
)
def test_code_that_is_too_hard_to_read_is_said_to_be(text):
    began = time.monotonic()
    found = preflight_bounded(SPEC, {"train.py": text})
    assert [one.code for one in found] in (["code_not_read"], ["syntax_error"])
    assert time.monotonic() - began < preflight_apart.SECONDS + 5


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
