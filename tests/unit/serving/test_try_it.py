"""The form of "Try it" and what is shown of a prediction; and when an idle service is stopped."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta

import pytest

from apps.serving.form_fields import NotFilled, forms_of, request_of
from apps.serving.results import bars_of, outputs_of
from yardmaster.lifecycle.idleness import LONGEST_LOADING, Idle, Use, idle_step, stops_at, stops_by_age
from yardmaster.lifecycle.phases import Phase, Wanted
from yardmaster_runner.serving.signatures import CLASSIFY, REGRESS, Signature, Tensor

NOW = datetime(2026, 11, 24, 12, tzinfo=UTC)
LIMIT = timedelta(minutes=15)


def form_of(**inputs):
    tensors = {name: Tensor(name, dtype, shape) for name, (dtype, shape) in inputs.items()}
    return forms_of({"serving_default": Signature("serving_default", tensors, {}).to_json()})[0]


@pytest.mark.parametrize(
    ("dtype", "shape", "kind"),
    [
        ("float32", (None, 4), "boxes"), ("int64", (None,), "boxes"), ("float32", (None, 64), "json"),
        ("float32", (None, 28, 28), "json"), ("string", (None,), "text"), ("string", (None, 1), "text"),
        ("bool", (None,), "flag"), ("float32", None, "json"), ("float32", (None, None), "json"),
    ],
)  # fmt: skip
def test_each_input_is_asked_for_by_what_it_is(dtype, shape, kind):
    assert form_of(x=(dtype, shape)).fields[0].kind == kind


def test_what_was_filled_in_becomes_one_row():
    form = form_of(age=("int64", (None,)), size=("float32", (None, 2)), name=("string", (None,)))
    texts = {"in-age": ["40"], "in-size": ["1.5", "2"], "in-name": ["Ada"]}
    body = json.loads(request_of(form, texts, {}))
    assert body == {
        "signature_name": "serving_default", "instances": [{"age": 40, "size": [1.5, 2.0], "name": "Ada"}],
    }  # fmt: skip


def test_a_file_is_sent_as_bytes_in_the_place_of_text():
    form = form_of(image=("string", (None,)))
    body = json.loads(request_of(form, {"in-image": [""]}, {"file-image": b"\x89PNG"}))
    assert body["instances"] == [{"image": {"b64": "iVBORw=="}}]


def example_form(method=CLASSIFY):
    one = Signature("labels", {"inputs": Tensor("inputs", "string", (None,))}, {}, method)
    return forms_of({"labels": one.to_json()})[0]


@pytest.mark.parametrize(("method", "verb"), [(CLASSIFY, "classify"), (REGRESS, "regress")])
def test_a_signature_of_examples_is_asked_for_the_features_of_one(method, verb):
    form = example_form(method)
    assert (form.verb, [field.kind for field in form.fields]) == (verb, ["example"])
    body = json.loads(request_of(form, {"in-inputs": ['{"x": 2.0, "place": "here"}']}, {}))
    assert body == {"signature_name": "labels", "examples": [{"x": 2.0, "place": "here"}]}
    for text in ("5", "[1]", "{", "", '{"x": 1e999}'):
        with pytest.raises(NotFilled, match="inputs: "):
            request_of(form, {"in-inputs": [text]}, {})


def test_results_of_classify_are_bars_with_its_labels_and_of_regress_a_value():
    found = outputs_of(b'{"results": [[["cat", 0.25], ["dog", 0.75]]]}')
    assert [(bar.name, bar.percent) for bar in found[0].bars] == [("dog", "75.0 %"), ("cat", "25.0 %")]
    unnamed = outputs_of(b'{"results": [[["", 0.25], ["", 0.75]]]}', ["no", "yes"])
    assert unnamed[0].bars[0].name == "yes"
    scores = outputs_of(b'{"results": [[["cat", 2.5], ["dog", -1]]]}')
    assert (scores[0].bars, scores[0].text) == ((), '[["cat", 2.5], ["dog", -1]]')
    assert outputs_of(b'{"results": [3.5]}')[0].text == "3.5"
    assert [one.text for one in outputs_of(b'{"results": []}')] == ["null"]


def test_inputs_without_a_batch_are_sent_whole():
    form = form_of(x=("float32", (2,)))
    assert json.loads(request_of(form, {"in-x": ["1", "2"]}, {}))["inputs"] == {"x": [1.0, 2.0]}


@pytest.mark.parametrize(
    ("inputs", "texts"),
    [
        ({"x": ("float32", (None, 2))}, {"in-x": ["1", ""]}), ({"x": ("float32", (None, 2))}, {"in-x": ["1"]}),
        ({"x": ("int64", (None,))}, {"in-x": ["1.5"]}), ({"x": ("int64", (None,))}, {"in-x": ["nan"]}),
        ({"x": ("int64", (None,))}, {"in-x": ["inf"]}), ({"x": ("float32", (None,))}, {"in-x": ["1e999"]}),
        ({"x": ("float32", (None, 64))}, {"in-x": ["[1, 2"]}), ({"x": ("float32", (None, 64))}, {"in-x": ["[1e999]"]}),
        ({"x": ("float32", (None, 64))}, {"in-x": ["[" * 100_000]}), ({"x": ("float32", (None, 64))}, {}),
    ],
)  # fmt: skip
def test_what_cannot_be_sent_is_said_with_the_field(inputs, texts):
    with pytest.raises(NotFilled, match="x: "):
        request_of(form_of(**inputs), texts, {})


@pytest.mark.parametrize(("shape", "text", "sent"), [
    ((None,), "nan", b"NaN"), ((None,), "-inf", b"-Infinity"), ((None, 64), "[NaN, -Infinity]", b"[NaN, -Infinity]"),
])  # fmt: skip
def test_numbers_that_json_lacks_are_sent_as_tensorflow_serving_reads_them(shape, text, sent):
    assert sent in request_of(form_of(x=("float32", shape)), {"in-x": [text]}, {})


@pytest.mark.parametrize("signatures", [{}, {"a": 5}, {"a": {"inputs": {}}}, {"a": {"inputs": [1]}}])
def test_signatures_that_are_none_make_no_form(signatures):
    assert forms_of(signatures) == []


@pytest.mark.parametrize("size", ["many", float("inf"), None, [], "9" * 5000])
def test_a_signature_that_says_nonsense_is_asked_for_as_json(size):
    form = forms_of({"a": {"inputs": {"x": {"dtype": 5, "tensor_shape": {"dim": [{"size": size}]}}}}})[0]
    assert form.fields[0].kind == "json"


def test_probabilities_are_bars_with_the_names_of_the_classes():
    bars = bars_of([0.1, 0.7, 0.2], ["cat", "dog", "fish"])
    assert [(bar.name, bar.percent) for bar in bars] == [("dog", "70.0 %"), ("fish", "20.0 %"), ("cat", "10.0 %")]
    assert [bar.name for bar in bars_of([0.1, 0.9], ["only one"])] == ["1", "0"]
    assert bars_of([0.1, 0.7]) == ()
    assert bars_of(["a", "b"]) == ()
    assert bars_of([float("nan"), 1.0]) == ()


def test_outputs_are_those_of_the_first_row_by_name():
    found = outputs_of(b'{"predictions": [{"score": [0.25, 0.75], "label": "dog"}]}')
    assert found is not None
    assert [(one.name, len(one.bars), one.text) for one in found] == [
        ("score", 2, "[0.25, 0.75]"), ("label", 0, "dog"),
    ]  # fmt: skip


@pytest.mark.parametrize("body", [b"", b"[1]", b"\xff", b"[" * 100_000, b" " * (2 << 20)])
def test_an_answer_that_is_no_prediction_is_not_shown(body):
    assert outputs_of(body) is None


def use(**changes):
    values = {
        "phase": Phase.RUNNING, "wanted": Wanted.RUN, "running_since": NOW, "answers_since": NOW, "last_used": None,
        "limit": LIMIT,
    }  # fmt: skip
    return Use(**{**values, **changes})


def test_the_time_counts_from_the_first_answer_and_not_while_a_model_is_loaded():
    assert stops_at(use(answers_since=NOW + timedelta(minutes=40))) == NOW + timedelta(minutes=55)
    loading = use(answers_since=None)
    assert idle_step(loading, NOW + timedelta(minutes=90)) is Idle.LEAVE
    assert idle_step(loading, NOW + LONGEST_LOADING + LIMIT) is Idle.STOP


def test_the_time_counts_from_the_last_use_and_a_warning_comes_before_the_stop():
    used = use(last_used=NOW + timedelta(minutes=5))
    assert stops_at(used) == NOW + timedelta(minutes=20)
    assert idle_step(used, NOW + timedelta(minutes=17, seconds=59)) is Idle.LEAVE
    assert idle_step(used, NOW + timedelta(minutes=18)) is Idle.WARN
    assert idle_step(used, NOW + timedelta(minutes=20)) is Idle.STOP


@pytest.mark.parametrize(
    "changes", [{"phase": Phase.QUEUED}, {"phase": Phase.STARTING}, {"wanted": Wanted.STOP}, {"running_since": None}]
)
def test_what_does_not_run_is_not_idle(changes):
    assert idle_step(use(**changes), NOW + timedelta(days=9)) is Idle.LEAVE


def test_the_end_of_the_longest_life_is_the_stop_where_it_comes_first_and_is_announced_an_hour_before():
    day = timedelta(days=1)
    used = use(longest=day, last_used=NOW + day)
    assert (stops_at(used), stops_by_age(used)) == (NOW + day, True)
    assert idle_step(used, NOW + timedelta(hours=22, minutes=59)) is Idle.LEAVE
    assert idle_step(used, NOW + timedelta(hours=23)) is Idle.WARN
    assert idle_step(used, NOW + day) is Idle.STOP
    unused = use(longest=day)
    assert (stops_at(unused), stops_by_age(unused)) == (NOW + LIMIT, False)
    assert not stops_by_age(use(phase=Phase.STOPPING, longest=day))
    assert stops_at(use(phase=Phase.STOPPING, longest=day)) is None
