"""Values of JSON as arrays that fit an input of the model, and arrays as values of JSON. NumPy, where the task has it.

What does not fit is refused with the name, the type and the shape that were expected, never converted by guess: text is
no number, a fraction is no integer, and a number that its type cannot hold is not cut off.
"""

from __future__ import annotations

import base64
import binascii
from typing import Any, Callable

from yardmaster_runner.serving.requests import is_bytes
from yardmaster_runner.serving.signatures import BadRequest, Tensor, shortened

DEEPEST = 16
EXACT = 2.0**53
"""Below this a number with a fraction part of zero is an integer for certain."""
NOT_FINITE = {"nan": "NaN", "inf": "Infinity", "-inf": "-Infinity"}
"""Numbers that JSON does not have, in the words of TensorFlow Serving and of protocol buffers."""
_BY_WORD = {word: float(short) for short, word in NOT_FINITE.items()}


def as_array(tensor: Tensor, value: Any) -> Any:
    """The value as an array of the input's type and shape. Raises `BadRequest`."""
    import numpy

    if tensor.dtype == "string":
        array = numpy.array(_texts(tensor, value, 0), dtype=object)
        if any(isinstance(one, list) for one in array.ravel()):
            raise _unlike(tensor, "its rows differ in length")
    elif tensor.dtype == "bool":
        array = _plain(numpy, tensor, value, "b")
    elif tensor.dtype.startswith(("int", "uint")):
        array = _whole(numpy, tensor, value)
    elif tensor.dtype in ("float16", "float32", "float64"):
        array = _fraction(numpy, tensor, value)
    else:
        raise BadRequest("The input %s has the type %s, which JSON cannot carry." % (tensor.name, tensor.dtype))
    if not tensor.takes(array.shape):
        message = "The input %s has the shape %s. Expected %s."
        raise BadRequest(message % (tensor.name, list(array.shape), tensor.words()))
    return array


def _plain(numpy: Any, tensor: Tensor, value: Any, kinds: str) -> Any:
    """An array of one of these kinds of elements, whatever its shape."""
    try:
        array = numpy.array(value)
    except (ValueError, OverflowError, TypeError, RecursionError):
        raise _unlike(tensor, "its rows differ in length, or are nested too deeply") from None
    if array.size == 0 and array.dtype.kind == "f":
        return array
    if array.dtype.kind not in kinds or array.ndim > DEEPEST:
        raise _unlike(tensor, "it has other values, such as text, true, null or an object")
    return array


def _whole(numpy: Any, tensor: Tensor, value: Any) -> Any:
    array = _plain(numpy, tensor, value, "iuf")
    if array.dtype.kind == "f" and not ((abs(array) < EXACT).all() and (array == numpy.floor(array)).all()):
        raise _unlike(tensor, "it has numbers that are no integers, or too large")
    bounds = numpy.iinfo(tensor.dtype)
    if array.size and not (bounds.min <= array.min() and array.max() <= bounds.max):
        raise _unlike(tensor, "it has numbers outside of %d to %d" % (bounds.min, bounds.max))
    return array.astype(tensor.dtype)


def _fraction(numpy: Any, tensor: Tensor, value: Any) -> Any:
    try:
        array = _plain(numpy, tensor, value, "iuf")
    except BadRequest:  # perhaps for the words of numbers, which stand in few requests
        array = _plain(numpy, tensor, _without_words(value, 0), "iuf")
    with numpy.errstate(over="ignore"):
        made = array.astype(tensor.dtype)
    if (numpy.isinf(made) & numpy.isfinite(array)).any():
        raise _unlike(tensor, "it has numbers that are too large for its type")
    return made


def _without_words(value: Any, depth: int) -> Any:
    """The same nesting with numbers in the place of `NaN`, `Infinity` and `-Infinity`."""
    if isinstance(value, list) and depth <= DEEPEST:
        return [_without_words(one, depth + 1) for one in value]
    return _BY_WORD.get(value, value) if isinstance(value, str) else value


def _texts(tensor: Tensor, value: Any, depth: int) -> Any:
    """The same nesting with bytes in the place of each text."""
    if depth > DEEPEST:
        raise _unlike(tensor, "it is nested too deeply")
    if isinstance(value, list):
        return [_texts(tensor, one, depth + 1) for one in value]
    if isinstance(value, str):
        try:
            return value.encode("utf-8")
        except UnicodeEncodeError:
            raise _unlike(tensor, "it has text that is no Unicode") from None
    if is_bytes(value):
        try:
            return base64.b64decode(value["b64"], validate=True)
        except (binascii.Error, ValueError, TypeError):
            raise _unlike(tensor, 'it has a "b64" that is no base64') from None
    raise _unlike(tensor, 'it has values that are neither text nor {"b64": …}')


def _unlike(tensor: Tensor, why: str) -> BadRequest:
    return BadRequest("The input %s cannot be read: %s. Expected %s." % (shortened(tensor.name), why, tensor.words()))


def as_json(name: str, array: Any, *, strict: bool = False) -> Any:
    """An output as nested lists of what JSON has. Numbers that it does not have stay numbers, which are written as
    TensorFlow Serving writes them; `strict`: they are texts."""
    import numpy

    array = numpy.asarray(array)
    kind = array.dtype.kind
    if kind in "OSU":
        return _each(array.tolist(), lambda one: _text(name, one))
    if kind == "c":
        raise BadRequest("The output %s has complex numbers, which JSON cannot carry." % name)
    if kind not in "biuf":
        array = array.astype("float32")  # bfloat16 and its like
    if array.dtype.kind != "f":
        return array.tolist()
    # In the fewest digits that its own type needs: 0.1, not 0.10000000149011612.
    values = array.tolist() if array.dtype.itemsize > 4 else _short(array).tolist()
    return _each(values, _number) if strict and not numpy.isfinite(array).all() else values


def _short(array: Any) -> Any:
    import numpy

    return numpy.array([float(str(one)) for one in array.ravel()], dtype="float64").reshape(array.shape)


def _each(value: Any, change: Callable[[Any], Any]) -> Any:
    return [_each(one, change) for one in value] if isinstance(value, list) else change(value)


def _number(value: float) -> Any:
    return NOT_FINITE.get(repr(value), value)


def _text(name: str, value: Any) -> Any:
    """TensorFlow Serving's rule: outputs whose name ends in `_bytes` are bytes; so is what is no UTF-8."""
    if not isinstance(value, (str, bytes)):
        raise BadRequest("The output %s is ragged or sparse, which this server cannot write." % name)
    data = value.encode("utf-8", "surrogateescape") if isinstance(value, str) else value
    if not name.endswith("_bytes"):
        try:
            return data.decode("utf-8")
        except UnicodeDecodeError:
            pass  # not text: written in base64, as the bytes that it is
    return {"b64": base64.b64encode(data).decode("ascii")}
