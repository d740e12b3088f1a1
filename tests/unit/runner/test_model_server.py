"""The model server without TensorFlow: what may be asked, what is read of a body, and what a bad client cannot do."""

from __future__ import annotations

import json
import os
import socket
import threading
import time

import pytest

from yardmaster.formats.model_files import find_model
from yardmaster_runner.serving import http_server, requests
from yardmaster_runner.serving.api import Api
from yardmaster_runner.serving.loading import NotLoaded, find
from yardmaster_runner.serving.signatures import BadRequest, Signature, Tensor

NUMBERS = Signature("serving_default", {"x": Tensor("x", "float32", (None, 2))}, {"y": Tensor("y", "float32", (None,))})
SIGNATURES = {"serving_default": NUMBERS}


@pytest.fixture
def api():
    return Api("digits", "3", 1 << 20)


@pytest.fixture
def served(tmp_path):
    """A server whose answers say what it was asked; one connection's worth of waiting."""
    server = http_server.Server(str(tmp_path / "s"), lambda *asked: (200, {"length": len(asked[2])}), 1000)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True)
    thread.start()
    yield server
    server.shutdown()
    thread.join()
    server.server_close()


def connected(server):
    one = socket.socket(socket.AF_UNIX)
    one.settimeout(10)
    one.connect(server.server_address)
    return one


def sent(server, data, *, then_close=False):
    with connected(server) as one:
        one.sendall(data)
        if then_close:
            one.shutdown(socket.SHUT_WR)
        return b"".join(iter(lambda: one.recv(65536), b""))


def test_a_model_that_loads_is_said_to_load(api):
    assert api.answer("GET", "/healthz", b"") == (503, {"state": "loading"})
    assert api.answer("POST", "/v1/models/digits:predict", b"{}")[0] == 503
    status = api.answer("GET", "/v1/models/digits", b"")[1]
    assert status["model_version_status"][0]["state"] == "LOADING"


@pytest.mark.parametrize(
    ("method", "path", "status"),
    [
        ("GET", "/v1/models/other", 404),
        ("GET", "/v1/models/digits/versions/4", 404),
        ("GET", "/v1/models/digits/labels/stable", 404),
        ("GET", "/v1/models/digits:predict", 405),
        ("POST", "/v1/models/digits", 405),
        ("GET", "/v1/models/digits:classify", 405),
        ("POST", "/v1/models/digits:classify", 503),
        ("POST", "/v1/models/digits:regress", 503),
        ("POST", "/v1/models/digits:other", 404),
        ("GET", "/../../etc/passwd", 404),
    ],
)
def test_addresses_that_mean_nothing_here_are_refused_in_words(api, method, path, status):
    found, answer = api.answer(method, path, b"{}")
    assert found == status
    assert answer["error"]


@pytest.mark.parametrize(
    "body",
    [b"", b"[1]", b"{", b"\xff", b'{"instances": [1e999]}', b'{"instances": [' + b"9" * 400 + b".0]}",
     b'{"instances": [1], "inputs": [1]}', b'{"rows": [1]}',
     b'{"signature_name": 5, "instances": [1]}', b'{"instances": 5}', b"[" * 100_000],
)  # fmt: skip
def test_a_body_that_is_no_request_is_refused(body):
    with pytest.raises(BadRequest) as error:
        requests.read(body, SIGNATURES)
    assert error.value.status == 400


def test_numbers_that_json_lacks_are_read_and_written_as_by_tensorflow_serving():
    one = Signature("s", {"x": Tensor("x", "float32", (None,))}, {})
    values = requests.read(b'{"instances": [NaN, Infinity, -Infinity, 1e30, 2e100]}', {"s": one}).values["x"]
    assert [str(value) for value in values] == ["nan", "inf", "-inf", "1e+30", "2e+100"]


def test_rows_are_put_together_by_input_and_answers_taken_apart_by_row():
    two = Signature("s", {"a": Tensor("a", "float32", (None,)), "b": Tensor("b", "string", (None,))}, {})
    asked = requests.read(b'{"instances": [{"a": 1, "b": "x"}, {"a": 2, "b": "y"}]}', {"s": two})
    assert dict(asked.values) == {"a": [1, 2], "b": ["x", "y"]}
    answer = requests.answer(asked, {"p": [0.1, 0.9], "q": [1, 2]})
    assert answer == {"predictions": [{"p": 0.1, "q": 1}, {"p": 0.9, "q": 2}]}


def test_bytes_alone_are_a_value_and_no_named_inputs():
    text = Signature("s", {"b": Tensor("b", "string", (None,))}, {})
    assert requests.read(b'{"instances": [{"b64": "AAE="}]}', {"s": text}).values["b"] == [{"b64": "AAE="}]


def test_the_newest_numbered_folder_is_the_model(tmp_path):
    for number in ("2", "10"):
        (tmp_path / "export" / number).mkdir(parents=True)
        (tmp_path / "export" / number / "saved_model.pb").touch()
    assert find(str(tmp_path)) == ("saved_model", str(tmp_path / "export" / "10"))


@pytest.mark.parametrize(
    ("paths", "loaded"),
    [
        (["model.keras", "1/saved_model.pb"], "1"),
        (["model.h5", "export/2/saved_model.pb", "export/2/variables/variables.index"], "export/2"),
        (["model.keras", "model.weights.h5"], "model.keras"),
        (["best.keras", "last.keras"], "best.keras"),
        (["1/saved_model.pb", "assets/vocab.h5"], "1"),
        (["saved_model.pb", "assets.extra/9/saved_model.pb"], ""),
        (["a/b/c/d/e/f/saved_model.pbtxt"], "a/b/c/d/e/f"),
        (["model.onnx", "deep/model.HDF5"], "deep/model.HDF5"),
    ],
)
def test_the_server_loads_the_model_that_the_page_shows(tmp_path, paths, loaded):
    for path in paths:
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / path).touch()
    place = os.path.relpath(find(str(tmp_path))[1], tmp_path)
    assert place == (loaded or ".")
    shown = find_model(paths)
    assert shown.path in (loaded, os.path.join(loaded, "saved_model.pb"), os.path.join(loaded, "saved_model.pbtxt"))


@pytest.mark.parametrize("paths", [[], ["model.weights.h5"], ["model.tflite"], ["notes.txt"]])
def test_files_without_a_model_that_can_be_served_say_so(tmp_path, paths):
    for path in paths:
        (tmp_path / path).touch()
    with pytest.raises(NotLoaded, match="no model that can be served"):
        find(str(tmp_path))


def test_a_request_is_answered_and_the_connection_closed(served):
    answer = sent(served, b"POST /x HTTP/1.1\r\nContent-Length: 3\r\n\r\nabc")
    assert answer.startswith(b"HTTP/1.1 200")
    assert json.loads(answer.partition(b"\r\n\r\n")[2]) == {"length": 3}


@pytest.mark.parametrize(
    ("head", "status"),
    [
        (b"POST /x HTTP/1.1\r\nContent-Length: 1000000000\r\n\r\n", b"413"),
        (b"POST /x HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n", b"411"),
        (b"POST /x HTTP/1.1\r\nContent-Length: -1\r\n\r\n", b"411"),
        (b"DELETE /x HTTP/1.1\r\n\r\n", b"501"),
        (b"GET /" + b"x" * 70_000 + b" HTTP/1.1\r\n\r\n", b"414"),
        (b"rubbish\r\n\r\n", b"400"),
    ],
)
def test_a_request_that_is_none_is_refused_as_json(served, head, status):
    answer = sent(served, head, then_close=True)
    assert answer.split(b" ", 2)[1] == status
    assert json.loads(answer.partition(b"\r\n\r\n")[2])["error"]


def test_a_client_that_does_not_finish_its_request_is_cut_off(served, monkeypatch):
    monkeypatch.setattr(http_server, "TIME_TO_SEND", 0.2)
    begun = time.monotonic()
    assert sent(served, b"POST /x HTTP/1.1\r\nContent-Length: 500\r\n\r\nabc") == b""
    assert time.monotonic() - begun < 8


def test_slow_clients_do_not_keep_others_waiting_for_ever(served, monkeypatch):
    short, usual, has_begun = [0.3] * http_server.THREADS, served.deadlines.set, threading.Semaphore(0)

    def set_deadline(connection, seconds):
        if seconds is None or not short:
            return usual(connection, seconds)
        usual(connection, short.pop())
        return has_begun.release()

    monkeypatch.setattr(served.deadlines, "set", set_deadline)
    held = [connected(served) for _ in range(http_server.THREADS)]
    try:
        assert all(has_begun.acquire(timeout=20) for _ in held), "each has its thread, and a short time"
        assert sent(served, b"GET /x HTTP/1.1\r\n\r\n").startswith(b"HTTP/1.1 200")
    finally:
        for one in held:
            one.close()
