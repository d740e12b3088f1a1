"""Requests of `:classify` and `:regress`, read, and their answers: TensorFlow Serving's form. Pure.

A request has `{"examples": [{"feature": value or list, …}, …]}`, and in `context` features that all examples share.
The model gets serialized `tf.train.Example`. The kind of a feature is what JSON shows: 1 is an integer, 1.0 a float.
"""

from __future__ import annotations

import base64
import binascii
import struct
from dataclasses import dataclass
from typing import Any, Dict, List, Mapping, Tuple, Union

from yardmaster_runner.data import example_bytes
from yardmaster_runner.serving.requests import MOST_ROWS, is_bytes, opened
from yardmaster_runner.serving.signatures import CLASSIFY, PREDICT, REGRESS, BadRequest, Signature, chosen, shortened

METHODS = {"classify": CLASSIFY, "regress": REGRESS}
INPUT, CLASSES, SCORES, VALUES = "inputs", "classes", "scores", "outputs"
"""Names of inputs and outputs in signatures of these methods."""
_OUTPUTS = {CLASSIFY: (CLASSES, SCORES), REGRESS: (VALUES,)}
KNOWN = ("signature_name", "context", "examples")
MOST_BYTES = 64 << 20
"""Of all serialized examples of a request. The context is repeated in each."""
_KINDS = {bool: "int64", int: "int64", float: "float", str: "bytes"}
_SMALLEST, _LARGEST = -(1 << 63), (1 << 63) - 1
Value = Union[int, float, bytes]


@dataclass(frozen=True)
class Examples:
    """A request that was read: what the model gets, one serialized `tf.train.Example` each."""

    signature: Signature
    method: str
    serialized: List[bytes]


def read(body: bytes, signatures: Mapping[str, Signature], verb: str) -> Examples:
    """`verb` is `classify` or `regress`. Raises `BadRequest` with what is wrong and what was expected."""
    data, name = opened(body, KNOWN, '{"examples": [{"feature": value, …}, …]}')
    signature = _fitting(signatures, name, verb)
    rows = data.get("examples")
    if not isinstance(rows, list) or not rows:
        raise BadRequest('"examples" is a list with at least one object of features.')
    if len(rows) > MOST_ROWS:
        raise BadRequest("%d examples in one request; the most is %d. Send several requests." % (len(rows), MOST_ROWS))
    shared = _serialized(data["context"], "context") if "context" in data else b""
    left = MOST_BYTES - len(rows) * len(shared)
    found: List[bytes] = []
    for place, row in enumerate(rows):
        one = _serialized(row, "examples[%d]" % place) if left >= 0 else b""
        left -= len(one)
        if left < 0:
            message = "The examples have more than %d bytes with their context. Send fewer examples per request."
            raise BadRequest(message % MOST_BYTES, 413)
        found.append(shared + one)  # of a feature in both the later one, the example's, counts
    return Examples(signature, METHODS[verb], found)


def _fitting(signatures: Mapping[str, Signature], name: str, verb: str) -> Signature:
    """The signature, if it is of this method or of `predict`, as TensorFlow 2 exports all, and has its input and
    outputs. Raises `BadRequest` with those that fit."""
    found, method = chosen(signatures, name), METHODS[verb]
    if _fits(found, method):
        return found
    fitting = ", ".join(sorted(one.name for one in signatures.values() if _fits(one, method))[:20]) or "none"
    if found.method != method:
        message = "The signature %s has the method %s; :%s needs %s. Signatures that fit: %s."
        raise BadRequest(message % (found.name, shortened(found.method), verb, method, fitting))
    outputs = " or ".join(_OUTPUTS[method])
    message = "The signature %s has the method %s, but not one input %s of serialized examples and an output %s."
    raise BadRequest(message % (found.name, method, INPUT, outputs))


def _fits(signature: Signature, method: str) -> bool:
    only = signature.inputs.get(INPUT) if len(signature.inputs) == 1 else None
    has_form = (
        only is not None and only.dtype == "string" and any(name in signature.outputs for name in _OUTPUTS[method])
    )
    return has_form and signature.method in (method, PREDICT)


def _serialized(features: Any, where: str) -> bytes:
    if not isinstance(features, dict):
        raise BadRequest('%s is not an object of features: {"feature": value, …}.' % where)
    found: Dict[str, example_bytes.Values] = {}
    for name, content in features.items():
        try:
            name.encode("utf-8")
            values = content if isinstance(content, list) else [content]
            found[name] = _feature(values, where, name)
        except UnicodeEncodeError:
            raise _unlike(where, name, "it has text that is no Unicode") from None
    return example_bytes.example(found)


def _feature(values: List[Any], where: str, name: str) -> example_bytes.Values:
    """The kind and the values; all of a feature are of one kind."""
    kinds = {"bytes" if is_bytes(one) else _KINDS.get(type(one), "") for one in values}
    if "" in kinds:
        raise _unlike(where, name, 'it has null, a list in a list, or an object other than {"b64": …}')
    if len(kinds) > 1:
        raise _unlike(where, name, "its values are of several kinds (%s): write all alike" % ", ".join(sorted(kinds)))
    kind = kinds.pop() if kinds else ""
    if kind == "bytes":
        return kind, [_bytes(one, where, name) for one in values]
    if kind == "int64" and not all(_SMALLEST <= one <= _LARGEST for one in values):
        raise _unlike(where, name, "it has integers of more than 64 bits")
    if kind == "float":
        _require_float32(values, where, name)
    return kind or "float", values


def _require_float32(values: List[float], where: str, name: str) -> None:
    try:
        struct.pack("<%df" % len(values), *values)
    except OverflowError:
        raise _unlike(where, name, "it has numbers that are too large for float32") from None


def _bytes(value: Any, where: str, name: str) -> bytes:
    if isinstance(value, str):
        return value.encode("utf-8")
    try:
        return base64.b64decode(value["b64"], validate=True)
    except (binascii.Error, ValueError, TypeError):
        raise _unlike(where, name, 'it has a "b64" that is no base64') from None


def _unlike(where: str, name: str, why: str) -> BadRequest:
    return BadRequest("%s: the feature %s cannot be read: %s." % (where, shortened(name), why))


def require_answers(asked: Examples, outputs: Mapping[str, Any]) -> None:
    """Whether the arrays of the model are an answer. Raises `BadRequest` where one has another shape or type."""
    count, shapes = len(asked.serialized), []
    for name in _OUTPUTS[asked.method]:
        if name not in outputs:
            continue
        shape = tuple(outputs[name].shape)
        kinds, wanted = _expected(name)
        fits = len(shape) == 2 or (name == VALUES and len(shape) == 1)
        if not fits or shape[0] != count or (name == VALUES and shape[1:] not in ((), (1,))):
            message = "The output %s of the model has the shape %s for %d examples. Expected %s."
            raise BadRequest(message % (name, list(shape), count, wanted))
        if outputs[name].dtype.kind not in kinds:
            raise BadRequest("The output %s of the model has the type %s." % (name, outputs[name].dtype))
        shapes.append(shape)
    if len(set(shapes)) > 1:
        raise BadRequest("The outputs classes and scores of the model have different shapes.")


def _expected(name: str) -> Tuple[str, str]:
    """Kinds of elements as NumPy names them, and the shape in words."""
    if name == VALUES:
        return "f", "[examples] or [examples, 1]"
    return ("OSU" if name == CLASSES else "f"), "[examples, classes]"


def answer(asked: Examples, outputs: Mapping[str, Any]) -> Dict[str, Any]:
    """The answer's JSON; `outputs` are nested lists by name, of shapes that `require_answers` has let through."""
    if asked.method == REGRESS:
        return {"results": [one[0] if isinstance(one, list) else one for one in outputs[VALUES]]}
    classes, scores = outputs.get(CLASSES), outputs.get(SCORES)
    labels = classes if classes is not None else [[""] * len(row) for row in scores or ()]
    numbers = scores if scores is not None else [[0.0] * len(row) for row in labels]
    return {"results": [[list(pair) for pair in zip(*row)] for row in zip(labels, numbers)]}
