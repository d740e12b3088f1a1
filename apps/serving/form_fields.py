"""The form of "Try it", made from a signature, and what was filled in as a request to the model. Pure.

One example at a time. What the signature says comes from a user's model: nothing of it is believed beyond its form.
"""

from __future__ import annotations

import base64
import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

MOST_BOXES = 16
"""Numbers of one input that get a box each; more are written as JSON."""
MOST_INPUTS = 20
LONGEST = 2 << 20
_FLOATS = ("DT_FLOAT", "DT_DOUBLE", "DT_HALF", "DT_BFLOAT16")
_WHOLES = ("DT_INT8", "DT_INT16", "DT_INT32", "DT_INT64", "DT_UINT8", "DT_UINT16", "DT_UINT32", "DT_UINT64")

_VERBS = {"tensorflow/serving/classify": "classify", "tensorflow/serving/regress": "regress"}


class NotFilled(ValueError):
    """A field holds what cannot be sent. The text is for the person who filled it in."""


@dataclass(frozen=True)
class Field:
    """One input of the signature, without its batch dimension. `kind` says how it is asked for: `text`, `boxes`,
    `flag`, `json`, or `example` (the features of a `tf.train.Example` by name, as JSON)."""

    name: str
    kind: str
    words: str
    is_whole: bool = False
    shape: tuple[int | None, ...] = ()
    values: tuple[str, ...] = ()
    """What stands in it at first; one text, or one for each box."""

    @property
    def value(self) -> str:
        return self.values[0] if self.values else ""

    @property
    def boxes(self) -> list[tuple[int, str]]:
        """Each box with its number, from 1."""
        count = 1 if not self.shape else self.shape[0] or 1
        return [(at + 1, self.values[at] if at < len(self.values) else "") for at in range(count)]


@dataclass(frozen=True)
class Form:
    """A signature as a form."""

    name: str
    fields: tuple[Field, ...]
    has_rows: bool
    """Every input has a batch dimension: one example is one row."""
    verb: str = "predict"
    """How it is asked: `predict`, or `classify` or `regress` for signatures of these methods."""


def forms_of(signatures: Mapping[str, Any]) -> list[Form]:
    """The default signature first; those that no form can ask for are left out."""
    found = [form for name, one in signatures.items() if (form := _form(str(name), one)) is not None]
    return sorted(found, key=lambda form: (form.name != "serving_default", form.name))[:MOST_INPUTS]


def _form(name: str, signature: Any) -> Form | None:
    inputs = signature.get("inputs") if isinstance(signature, dict) else None
    if not isinstance(inputs, dict) or not 0 < len(inputs) <= MOST_INPUTS:
        return None
    verb = _VERBS.get(str(signature.get("method_name")))
    if verb is not None:
        return Form(name, (Field("inputs", "example", "features by name"),), True, verb)
    shapes = {key: _shape(one) for key, one in inputs.items()}
    has_rows = all(shape is not None and shape[:1] == (None,) for shape in shapes.values())
    fields = [_field(str(key), one, shapes[key], has_rows) for key, one in inputs.items()]
    return Form(name, tuple(fields), has_rows)


def _shape(tensor: Any) -> tuple[int | None, ...] | None:
    """None where any rank is taken, or nothing that can be read is said."""
    try:
        shape = tensor["tensor_shape"]
        if shape.get("unknown_rank"):
            return None
        sizes = [int(one["size"]) for one in shape["dim"]]
    except (TypeError, KeyError, ValueError, AttributeError, OverflowError):
        return None
    return tuple(None if size < 0 else size for size in sizes)


def _field(name: str, tensor: Any, shape: tuple[int | None, ...] | None, has_rows: bool) -> Field:
    dtype = str(tensor.get("dtype", "")) if isinstance(tensor, dict) else ""
    inner = shape[1:] if has_rows and shape is not None else shape
    sizes = "any shape" if inner is None else "×".join("?" if one is None else str(one) for one in inner) or "one value"
    words = f"{dtype.removeprefix('DT_').lower() or 'unknown type'}, {sizes}"
    is_small = inner == () or (
        inner is not None and len(inner) == 1 and inner[0] is not None and inner[0] <= MOST_BOXES
    )
    if dtype == "DT_STRING" and inner in ((), (1,)):
        return Field(name, "text", words, shape=inner)
    if dtype in (*_FLOATS, *_WHOLES) and inner is not None and is_small and inner != (0,):
        return Field(name, "boxes", words, dtype in _WHOLES, inner)
    if dtype == "DT_BOOL" and inner == ():
        return Field(name, "flag", words, shape=inner)
    return Field(name, "json", words, dtype in _WHOLES, inner or ())


def request_of(form: Form, texts: Mapping[str, Sequence[str]], files: Mapping[str, bytes]) -> bytes:
    """The body of a request with the form's verb. Raises `NotFilled` with the field and what it expects."""
    values = {field.name: _value(field, texts.get(f"in-{field.name}", ()), files.get(f"file-{field.name}"))
              for field in form.fields}  # fmt: skip
    body: dict[str, Any] = {"signature_name": form.name}
    if form.verb != "predict":
        return json.dumps(body | {"examples": list(values.values())}).encode()
    body |= {"instances": [values]} if form.has_rows else {"inputs": values}
    return json.dumps(body).encode()


def _value(field: Field, texts: Sequence[str], file: bytes | None) -> Any:
    if field.kind == "text":
        found: Any = {"b64": base64.b64encode(file).decode("ascii")} if file else (texts[0] if texts else "")
        return [found] if field.shape == (1,) else found
    if field.kind == "flag":
        return bool(texts)
    if field.kind == "boxes":
        numbers = [_number(field, text) for text in texts]
        if len(numbers) != len(field.boxes):
            raise NotFilled(f"{field.name}: fill in {len(field.boxes)} numbers.")
        return numbers if field.shape else numbers[0]
    found = _json(field, texts[0] if texts else "")
    if field.kind == "example" and not isinstance(found, dict):
        raise NotFilled(f'{field.name}: write an object of features, such as {{"age": 40, "name": "Ada"}}.')
    return found


def _number(field: Field, text: str) -> float:
    try:
        number = float(text)
    except ValueError:
        raise NotFilled(f"{field.name}: write a number in every box.") from None
    if field.is_whole and not number.is_integer():
        raise NotFilled(f"{field.name}: write whole numbers.")
    _require_bounded(field, number, text)
    return int(number) if field.is_whole else number


def _json(field: Field, text: str) -> Any:
    if len(text) > LONGEST:
        raise NotFilled(f"{field.name}: the text is too long. Use the API.")
    try:
        return json.loads(text, parse_float=lambda word: _require_bounded(field, float(word), word))
    except (ValueError, RecursionError) as error:
        if isinstance(error, NotFilled):
            raise
        raise NotFilled(f"{field.name}: write JSON, such as [[0, 1], [2, 3]] ({field.words}).") from None


def _require_bounded(field: Field, number: float, text: str) -> float:
    """Infinite only where that was written."""
    if math.isinf(number) and "inf" not in text.lower():
        raise NotFilled(f"{field.name}: {text[:40]} is too large for a number.")
    return number
