"""What is read from a `saved_model.pb`, and from what only says it is one."""

from __future__ import annotations

import contextlib
import io
import struct

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from yardmaster.formats.model_files import FoundModel, ModelFormat, find_model
from yardmaster.formats.saved_model import MOST_FIELDS, saved_model_facts
from yardmaster_runner.protowire import WireError


def number(value: int) -> bytes:
    out = b""
    value &= (1 << 64) - 1
    while value > 0x7F:
        out += bytes([value & 0x7F | 0x80])
        value >>= 7
    return out + bytes([value])


def field(at: int, value: bytes | int) -> bytes:
    if isinstance(value, int):
        return number(at << 3) + number(value)
    return number(at << 3 | 2) + number(len(value)) + value


def tensor(dtype: int, *shape: int, unknown: bool = False) -> bytes:
    dims = b"".join(field(2, field(1, one)) for one in shape)
    return field(1, b"x:0") + field(2, dtype) + field(3, dims + (field(3, 1) if unknown else b""))


def signature(name: bytes, inputs: dict[bytes, bytes], outputs: dict[bytes, bytes]) -> bytes:
    body = b"".join(field(1, field(1, key) + field(2, one)) for key, one in inputs.items())
    body += b"".join(field(2, field(1, key) + field(2, one)) for key, one in outputs.items())
    return field(5, field(1, name) + field(2, body + field(3, b"tensorflow/serving/predict")))


def saved_model(graph: bytes = b"nodes", tags: tuple[bytes, ...] = (b"serve",), more: bytes = b"") -> bytes:
    meta = field(1, b"".join(field(4, tag) for tag in tags) + field(5, b"2.21.0") + field(2, b"ops"))
    serving = signature(
        b"serving_default", {b"pixels": tensor(1, -1, 64)}, {b"scores": tensor(1, -1, 10), b"label": tensor(7)}
    )
    hidden = signature(b"__saved_model_init_op", {}, {b"op": tensor(1, unknown=True)})
    return field(1, 1) + field(2, meta + field(2, graph) + hidden + serving + more)


def facts(data: bytes) -> dict:
    return saved_model_facts(io.BytesIO(data), len(data))


def test_signatures_have_names_types_and_shapes():
    found = facts(saved_model(more=signature(b"any", {b"a": tensor(3, unknown=True)}, {})))
    assert (found["version"], found["tags"]) == ("2.21.0", ["serve"])
    serving, other = found["signatures"]
    assert (serving["name"], serving["method"]) == ("serving_default", "tensorflow/serving/predict")
    assert serving["inputs"] == [{"name": "pixels", "dtype": "float32", "shape": [None, 64]}]
    assert serving["outputs"] == [
        {"name": "label", "dtype": "string", "shape": []}, {"name": "scores", "dtype": "float32", "shape": [None, 10]},
    ]  # fmt: skip
    assert other["inputs"] == [{"name": "a", "dtype": "int32", "shape": None}]


def test_the_graph_for_serving_is_taken_before_others():
    both = saved_model(tags=(b"train",)) + saved_model(tags=(b"serve", b"gpu"))
    assert facts(both)["tags"] == ["serve", "gpu"]


@pytest.mark.parametrize(
    "data",
    [
        b"",
        saved_model()[:-1],
        field(2, b"\x0a"),
        number(2 << 3 | 2) + number(1 << 60),
        number(2 << 3 | 1) + struct.pack("<d", 1.0),
        b"\x80" * 100,
        field(1, 1) * (MOST_FIELDS + 1),
    ],
)
def test_what_is_no_saved_model_is_refused(data):
    with pytest.raises(WireError):
        facts(data)


def test_many_signatures_and_long_names_are_cut_off():
    many = b"".join(signature(b"s%d" % n, {b"n" * 5000: tensor(1)}, {}) for n in range(50))
    found = facts(saved_model(more=many))["signatures"]
    assert len(found) == 20
    assert max(len(one["name"]) for signature in found for one in signature["inputs"]) == 200


@settings(max_examples=200)
@given(st.binary(max_size=300), st.integers(0, 200))
def test_damage_is_never_worse_than_an_error(noise, at):
    whole = saved_model()
    with contextlib.suppress(WireError):
        facts(whole[:at] + noise + whole[at:])


@pytest.mark.parametrize(
    ("paths", "found"),
    [
        (["a.txt", "m.h5", "x/saved_model.pb"], FoundModel(ModelFormat.SAVED_MODEL, "x/saved_model.pb")),
        (["9/saved_model.pb", "10/saved_model.pb"], FoundModel(ModelFormat.SAVED_MODEL, "10/saved_model.pb")),
        (["deep/er/saved_model.pb", "saved_model.pb"], FoundModel(ModelFormat.SAVED_MODEL, "saved_model.pb")),
        (["m.keras", "m.h5"], FoundModel(ModelFormat.KERAS, "m.keras")),
        (["lite/m.TFLITE"], FoundModel(ModelFormat.TFLITE, "lite/m.TFLITE")),
        (["model.index", "model.data-00000-of-00001"], FoundModel(ModelFormat.CHECKPOINT, "model.index")),
        (["model.weights.h5", "model.h5"], FoundModel(ModelFormat.HDF5, "model.h5")),
        (["model.weights.h5"], FoundModel(ModelFormat.OTHER)),
        (["a/m.keras", "b/2/m.keras", "c/10/m.keras", "x.keras/m.txt"], FoundModel(ModelFormat.KERAS, "a/m.keras")),
        (["weights.bin"], FoundModel(ModelFormat.OTHER)),
        ([], FoundModel(ModelFormat.OTHER)),
    ],
)
def test_the_format_is_found_by_the_names_of_files(paths, found):
    assert find_model(paths) == found
