"""Requests of `:classify` and `:regress`: what is read of them, what is refused, and how answers are written."""

from __future__ import annotations

import json
import tracemalloc
from types import SimpleNamespace

import pytest

from yardmaster.formats.tf_example import parse_example
from yardmaster_runner.data import example_bytes
from yardmaster_runner.serving import examples
from yardmaster_runner.serving.signatures import CLASSIFY, REGRESS, BadRequest, Signature, Tensor

INPUTS = {"inputs": Tensor("inputs", "string", (None,))}
CLASSES, SCORES = Tensor("classes", "string", (None, None)), Tensor("scores", "float32", (None, None))
LABELS = Signature("labels", INPUTS, {"classes": CLASSES, "scores": SCORES}, CLASSIFY)
PRICE = Signature("price", INPUTS, {"outputs": Tensor("outputs", "float32", (None, 1))}, REGRESS)
ROWS = Signature("serving_default", {"x": Tensor("x", "float32", (None,))}, {"y": Tensor("y", "float32", (None,))})
SIGNATURES = {one.name: one for one in (LABELS, PRICE, ROWS)}


def read(body, verb="classify", name="labels"):
    return examples.read(json.dumps({"signature_name": name, **body}).encode(), SIGNATURES, verb)


def features(serialized):
    found = parse_example(serialized, most=1000)
    return {name: (one.dtype, [bytes(v) if one.dtype == "bytes" else v for v in one.values])
            for name, one in found.items()}  # fmt: skip


def refused(body, verb="classify", name="labels"):
    with pytest.raises(BadRequest) as error:
        read(body, verb, name)
    return error.value


def array(shape, kind="f"):
    return SimpleNamespace(shape=shape, dtype=SimpleNamespace(kind=kind))


def test_features_are_of_the_kind_that_their_values_show():
    row = {"age": 40, "ok": True, "size": [1.5, -2.0], "name": "hé", "image": {"b64": "AP8="}, "none": []}
    assert features(read({"examples": [row]}).serialized[0]) == {
        "age": ("int64", [40]), "ok": ("int64", [1]), "size": ("float", [1.5, -2.0]),
        "name": ("bytes", ["hé".encode()]), "image": ("bytes", [b"\x00\xff"]), "none": ("float", []),
    }  # fmt: skip


def test_the_context_is_in_every_example():
    shared = example_bytes.example({"where": ("bytes", [b"here"])})
    found = read({"context": {"where": "here"}, "examples": [{"x": 1.0}, {"x": 2.0}]}).serialized
    assert found == [shared + example_bytes.example({"x": ("float", [x])}) for x in (1.0, 2.0)]


@pytest.mark.parametrize(
    ("body", "words"),
    [
        ({}, "at least one"), ({"examples": []}, "at least one"), ({"examples": {"x": 1}}, "at least one"),
        ({"examples": [5]}, "examples[0] is not an object"), ({"examples": [{"x": None}]}, "null"),
        ({"examples": [{"x": 1}, {"x": [[1]]}]}, "examples[1]: the feature 'x'"),
        ({"examples": [{"x": [1, 2.5]}]}, "several kinds (float, int64)"),
        ({"examples": [{"x": 1 << 63}]}, "64 bits"), ({"examples": [{"x": 1e39}]}, "float32"),
        ({"examples": [{"x": {"b64": "?"}}]}, "base64"), ({"examples": [{"x": "\ud800"}]}, "Unicode"),
        ({"examples": [{"\ud800": 1}]}, "Unicode"), ({"examples": [{"x": 1}], "context": [1]}, "context is not"),
        ({"examples": [{"x": 1}], "instances": []}, "Unknown field"), ({"examples": [{}] * 10_001}, "10000"),
    ],
)  # fmt: skip
def test_what_is_no_example_is_refused_with_its_place(body, words):
    found = refused(body)
    assert found.status == 400
    assert words in found.message


def test_a_context_is_not_multiplied_without_a_bound():
    found = refused({"context": {"x": "a" * 100_000}, "examples": [{}] * 10_000})
    assert (found.status, "Send fewer" in found.message) == (413, True)


def test_a_signature_of_another_method_is_refused_with_those_that_fit():
    found = refused({"examples": [{"x": 1}]}, "classify", "serving_default")
    assert found.status == 400
    assert "serving_default has the method 'tensorflow/serving/predict'" in found.message
    assert found.message.endswith("Signatures that fit: labels.")
    assert "Signatures that fit: price." in refused({"examples": [{"x": 1}]}, "regress", "labels").message


def test_a_signature_of_predict_with_the_form_of_the_method_is_taken_as_tensorflow_2_exports_no_other():
    newer = Signature("newer", INPUTS, {"scores": SCORES})
    body = b'{"signature_name": "newer", "examples": [{"x": 1}]}'
    asked = examples.read(body, {**SIGNATURES, "newer": newer}, "classify")
    assert examples.answer(asked, {"scores": [[0.5, 0.5]]}) == {"results": [[["", 0.5], ["", 0.5]]]}
    with pytest.raises(BadRequest, match="Signatures that fit: price"):
        examples.read(body, {**SIGNATURES, "newer": newer}, "regress")


@pytest.mark.parametrize(
    ("inputs", "outputs"),
    [(ROWS.inputs, LABELS.outputs), ({**INPUTS, **ROWS.inputs}, LABELS.outputs), (INPUTS, PRICE.outputs),
     ({"inputs": Tensor("inputs", "float32", (None,))}, LABELS.outputs)],
)  # fmt: skip
def test_a_signature_without_the_inputs_and_outputs_of_its_method_is_refused(inputs, outputs):
    odd = {"odd": Signature("odd", inputs, outputs, CLASSIFY)}
    with pytest.raises(BadRequest, match="output classes or scores"):
        examples.read(b'{"examples": [{"x": 1}]}', odd, "classify")


def test_classes_and_scores_are_pairs_and_values_stand_alone():
    asked = read({"examples": [{"x": 1}, {"x": 2}]})
    classes, scores = [["a", "b"], ["b", "a"]], [[0.9, 0.1], [0.8, 0.2]]
    both = examples.answer(asked, {"classes": classes, "scores": scores})
    assert both == {"results": [[["a", 0.9], ["b", 0.1]], [["b", 0.8], ["a", 0.2]]]}
    assert examples.answer(asked, {"scores": scores})["results"][0] == [["", 0.9], ["", 0.1]]
    assert examples.answer(asked, {"classes": classes})["results"][0] == [["a", 0.0], ["b", 0.0]]
    price = read({"examples": [{"x": 1}, {"x": 2}]}, "regress", "price")
    assert examples.answer(price, {"outputs": [[1.5], [2.5]]}) == {"results": [1.5, 2.5]}
    assert examples.answer(price, {"outputs": [1.5, 2.5]}) == {"results": [1.5, 2.5]}


@pytest.mark.parametrize(
    "outputs",
    [{"scores": array((1, 3))}, {"scores": array((2,))}, {"scores": array((2, 3), "i")},
     {"scores": array((2, 3)), "classes": array((2, 4), "O")}, {"classes": array((2, 3), "i")}],
)  # fmt: skip
def test_outputs_that_are_no_classification_are_refused(outputs):
    with pytest.raises(BadRequest):
        examples.require_answers(read({"examples": [{"x": 1}, {"x": 2}]}), outputs)


def test_outputs_that_are_one_value_each_are_let_through():
    price = read({"examples": [{"x": 1}, {"x": 2}]}, "regress", "price")
    for shape in ((2,), (2, 1)):
        examples.require_answers(price, {"outputs": array(shape)})
    for shape in ((2, 2), (1,), (), (2, 1, 1)):
        with pytest.raises(BadRequest, match="Expected"):
            examples.require_answers(price, {"outputs": array(shape)})


def test_of_many_numbers_the_bytes_of_each_are_not_in_memory_at_once():
    values = [1] * 500_000
    tracemalloc.start()
    try:
        found = example_bytes.example({"x": ("int64", values)})
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert features(found)["x"][1] == values[:1000]
    assert peak < 8 * len(values)
