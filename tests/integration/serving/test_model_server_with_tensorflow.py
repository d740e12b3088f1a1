"""The model server with real models: TensorFlow Serving's REST API, the right numbers, and clear words for the rest."""

from __future__ import annotations

import base64
import json
import os
import socket
import subprocess
from contextlib import closing
from http.client import HTTPConnection
from pathlib import Path

import pytest

from portal.env import task_python

pytestmark = [pytest.mark.tensorflow, pytest.mark.slow]

ROOT = Path(__file__).resolve().parents[3]


@pytest.fixture(scope="module")
def models(tmp_path_factory):
    """Sockets by model, and why the others were refused."""
    environment = {
        "PATH": os.environ["PATH"], "PYTHONPATH": str(ROOT / "platform"), "TF_CPP_MIN_LOG_LEVEL": "3",
        "CUDA_VISIBLE_DEVICES": "-1", "HOME": str(tmp_path_factory.mktemp("home")),
    }  # fmt: skip
    program = str(Path(__file__).with_name("serve_models.py"))
    with subprocess.Popen(
        [task_python(), program, str(tmp_path_factory.mktemp("models"))], env=environment, stdin=subprocess.PIPE,
        stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True,
    ) as process:  # fmt: skip
        yield json.loads(process.stdout.readline())
        process.stdin.close()


def ask(models, name, path, body=None):
    with closing(HTTPConnection("localhost")) as connection:
        connection.sock = socket.socket(socket.AF_UNIX)
        connection.sock.settimeout(20)
        connection.sock.connect(models["sockets"][name])
        connection.request("GET" if body is None else "POST", path, None if body is None else json.dumps(body))
        answer = connection.getresponse()
        return answer.status, json.load(answer)


def predict(models, body, name="small"):
    return ask(models, name, f"/v1/models/{name}:predict", body)


def test_rows_and_columns_are_answered_with_the_numbers_of_the_newest_version(models):
    rows = predict(models, {"instances": [[1, 0], [0, 1.5]]})
    assert rows == (200, {"predictions": [[2.0, 3.0], [6.0, 7.5]]})
    assert predict(models, {"inputs": {"x": [[1, 0]]}}) == (200, {"outputs": [[2.0, 3.0]]})
    versioned = ask(models, "small", "/v1/models/small/versions/7:predict", {"instances": [{"x": [0, 1]}]})
    assert versioned == (200, {"predictions": [[4.0, 5.0]]})


def test_text_and_bytes_go_both_ways(models):
    data = base64.b64encode(b"\x00\xff").decode()
    rows = [{"text": "hé", "more": 1}, {"text": {"b64": data}, "more": 2}]
    status, answer = predict(models, {"signature_name": "words", "instances": rows})
    assert status == 200
    assert answer["predictions"][1] == {"length": 4, "raw_bytes": {"b64": data}}
    assert answer["predictions"][0]["length"] == 4


def test_numbers_that_json_lacks_go_both_ways(models):
    body = {"signature_name": "roots", "inputs": [-1, 4]}
    outputs = predict(models, body)[1]["outputs"]
    assert (repr(outputs["root"]), outputs["sum"]) == ("[nan, 2.0]", 3.0)
    for infinite in (float("inf"), "Infinity"):
        body = {"signature_name": "roots", "inputs": [4, infinite]}
        assert predict(models, body)[1]["outputs"] == {"root": [2.0, float("inf")], "sum": float("inf")}
    for unknown in (float("nan"), "NaN"):
        body = {"instances": [[unknown, 1], [float("-inf"), 1]]}
        assert predict(models, body)[0] == 200
    assert predict(models, {"instances": [["nothing", 1]]})[0] == 400
    whole = {"signature_name": "words", "instances": [{"text": "a", "more": float("nan")}]}
    assert predict(models, whole)[0] == 400


def test_an_output_without_rows_asks_for_the_column_format(models):
    status, answer = predict(models, {"signature_name": "roots", "instances": [1, 4]})
    assert status == 400
    assert "column format" in answer["error"]


@pytest.mark.parametrize("name", ["keras", "h5"])
def test_files_of_keras_are_served_as_the_default_signature(models, name):
    assert predict(models, {"instances": [[1, 2, 3]]}, name) == (200, {"predictions": [[6.0, 6.0]]})


@pytest.mark.parametrize(
    ("body", "words"),
    [
        ({"instances": [[1, 2, 3]]}, "has the shape [1, 3]. Expected x: float32 [?, 2]."),
        ({"instances": [[1, 2], [1]]}, "rows differ in length"),
        ({"instances": [["a", "b"]]}, "text"),
        ({"instances": [[None, 1]]}, "null"),
        ({"instances": [[1e39, 1]]}, "too large for its type"),
        ({"instances": [{"z": [1, 2]}]}, "unknown input 'z'"),
        ({"instances": []}, "at least one example"),
        ({"signature_name": "other", "instances": [1]}, "Its signatures: roots, serving_default, words."),
        ({"signature_name": "words", "instances": ["a"]}, "has 2 inputs"),
        ({"signature_name": "words", "instances": [{"text": "a"}]}, "the input more is missing"),
        ({"signature_name": "words", "instances": [{"text": "a", "more": 1.5}]}, "no integers"),
        ({"signature_name": "words", "instances": [{"text": 5, "more": 1}]}, "neither text nor"),
        ({"signature_name": "words", "inputs": {"text": ["a", "b"], "more": [1, 2, 3]}}, "The model"),
    ],
)
def test_what_does_not_fit_is_refused_with_what_was_expected(models, body, words):
    status, answer = predict(models, body)
    assert status == 400
    assert words in answer["error"]


def of_examples(models, verb, *rows, name="flat", **more):
    return ask(models, name, f"/v1/models/{name}:{verb}", {"examples": list(rows), **more})


@pytest.mark.parametrize("name", ["flat", "flat_text"])
def test_classes_with_their_scores_and_values_are_answered_for_examples(models, name):
    found = of_examples(models, "classify", {"x": 0.75}, {"x": [0.25]}, name=name)
    assert found == (200, {"results": [[["large", 0.75], ["small", 0.25]], [["large", 0.25], ["small", 0.75]]]})
    found = of_examples(models, "regress", {"x": 0.5, "place": "ab"}, {"x": 2.0}, name=name, signature_name="price")
    assert found == (200, {"results": [3.0, 4.0]})


def test_a_context_is_given_to_every_example_and_an_example_may_say_otherwise(models):
    rows = [{"x": 1.0}, {"x": 1.0, "place": {"b64": base64.b64encode(b"abcd").decode()}}]
    found = of_examples(models, "regress", *rows, context={"place": "ab"}, signature_name="price")
    assert found == (200, {"results": [4.0, 6.0]})


def test_a_signature_may_have_classes_or_scores_alone(models):
    assert of_examples(models, "classify", {"x": 1.0}, signature_name="scores")[1] == {
        "results": [[["", 1.0], ["", 0.0]]]
    }
    found = of_examples(models, "classify", {"x": 1.0}, signature_name="classes")[1]
    assert found == {"results": [[["large", 0.0], ["small", 0.0]]]}


def test_examples_that_the_model_cannot_read_and_signatures_of_another_method_are_refused(models):
    for row, word in (({"x": 1}, "float"), ({}, "x"), ({"x": "one"}, "x")):
        status, answer = of_examples(models, "classify", row)
        assert status == 400
        assert word in answer["error"]
    status, answer = of_examples(models, "regress", {"x": 1.0})
    assert (status, "tensorflow/serving/classify" in answer["error"]) == (400, True)
    assert answer["error"].endswith("Signatures that fit: price.")
    assert of_examples(models, "classify", {"x": 1.0}, name="small")[1]["error"].endswith("Signatures that fit: none.")


def test_the_metadata_has_the_methods_and_predict_takes_such_signatures_too(models):
    told = ask(models, "flat", "/v1/models/flat/metadata")[1]["metadata"]["signature_def"]["signature_def"]
    assert {name: one["method_name"].rpartition("/")[2] for name, one in told.items()} == {
        "serving_default": "classify", "scores": "classify", "classes": "classify", "price": "regress",
        "plain": "predict",
    }  # fmt: skip
    assert predict(models, {"signature_name": "plain", "instances": [0.25]}, "flat")[1] == {
        "predictions": [[0.25, 0.75]]
    }


def test_status_and_metadata_are_those_of_tensorflow_serving(models):
    status = ask(models, "small", "/v1/models/small")[1]["model_version_status"]
    assert status == [{"version": "7", "state": "AVAILABLE", "status": {"error_code": "OK", "error_message": ""}}]
    told = ask(models, "small", "/v1/models/small/metadata")[1]
    x = told["metadata"]["signature_def"]["signature_def"]["serving_default"]["inputs"]["x"]
    assert x["dtype"] == "DT_FLOAT"
    assert [one["size"] for one in x["tensor_shape"]["dim"]] == ["-1", "2"]


def test_a_model_that_cannot_be_served_says_why(models):
    refused = models["refused"]
    assert set(refused) == {"without", "broken", "torch"}
    assert "has no signature" in refused["without"]
    assert "cannot be loaded" in refused["broken"]
    assert "neither a SavedModel" in refused["torch"]
