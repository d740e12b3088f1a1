"""The body of a predict request, read, and the answer's body: TensorFlow Serving's two formats. Pure.

Row format: `{"instances": […]}`, one value or one object of named values per example, answered with `predictions`.
Column format: `{"inputs": …}`, one value or one object of whole tensors, answered with `outputs`. Bytes are
`{"b64": "…"}`. As there, numbers may be NaN, Infinity and -Infinity. Not here: tensors (`tensors`),
`:classify` and `:regress` (`examples`), and the model.
"""

from __future__ import annotations

import json
import math
import re
from dataclasses import dataclass
from typing import Any, Dict, List, Mapping, Sequence, Tuple

from yardmaster_runner.serving.signatures import BadRequest, Signature, chosen, shortened

MOST_ROWS = 10_000
_PERHAPS_LARGE = re.compile(r"[eE]\+?0*[1-9][0-9]{2}|[0-9]{200}")
KNOWN = ("signature_name", "instances", "inputs")


@dataclass(frozen=True)
class Asked:
    """A request that was read: the values of each input, still as JSON has them."""

    signature: Signature
    is_rows: bool
    values: Mapping[str, Any]


def read(body: bytes, signatures: Mapping[str, Signature]) -> Asked:
    """Raises `BadRequest` with what is wrong and what was expected."""
    data, name = opened(body, KNOWN, '{"instances": […]} or {"inputs": …}')
    signature = chosen(signatures, name)
    if ("instances" in data) == ("inputs" in data):
        raise BadRequest('Send either "instances" (row format) or "inputs" (column format).')
    if "instances" in data:
        return Asked(signature, True, _rows(data["instances"], signature))
    return Asked(signature, False, _columns(data["inputs"], signature))


def opened(body: bytes, known: Sequence[str], wanted: str) -> Tuple[Dict[str, Any], str]:
    """The request's object, with none but the known fields, and its signature's name ("": the default). Raises
    `BadRequest`."""
    data = _parsed(body)
    if not isinstance(data, dict):
        raise BadRequest("The body is not a JSON object. Send %s." % wanted)
    unknown = [key for key in data if key not in known]
    if unknown:
        raise BadRequest("Unknown field %s. Known: %s." % (shortened(unknown[0]), ", ".join(known)))
    name = data.get("signature_name") or ""
    if not isinstance(name, str):
        raise BadRequest("signature_name is not a text.")
    return data, name


def _parsed(body: bytes) -> Any:
    try:
        text = body.decode("utf-8")
        # A number of JSON that is too large becomes infinite; `Infinity` is what was meant. Few requests have any.
        return json.loads(text, parse_float=_bounded) if _PERHAPS_LARGE.search(text) else json.loads(text)
    except UnicodeDecodeError:
        raise BadRequest("The body is not UTF-8 text.") from None
    except RecursionError:
        raise BadRequest("The body is nested too deeply.") from None
    except ValueError as error:
        raise BadRequest("The body is not JSON: %s." % str(error)[:200]) from None


def _bounded(text: str) -> float:
    number = float(text)
    if math.isinf(number):
        raise BadRequest("%s is too large for a number. Infinity is written as Infinity." % shortened(text))
    return number


def is_bytes(value: Any) -> bool:
    """Whether a value stands for bytes."""
    return isinstance(value, dict) and set(value) == {"b64"}


def _rows(rows: Any, signature: Signature) -> Dict[str, List[Any]]:
    if not isinstance(rows, list) or not rows:
        raise BadRequest('"instances" is a list with at least one example. Expected: %s.' % signature.words())
    if len(rows) > MOST_ROWS:
        raise BadRequest("%d examples in one request; the most is %d. Send several requests." % (len(rows), MOST_ROWS))
    named = [isinstance(row, dict) and not is_bytes(row) for row in rows]
    if not any(named):
        return {_only_input(signature): rows}
    if not all(named):
        place = named.index(not named[0])
        raise BadRequest("instances[%d] is not like instances[0]: write all as objects, or none." % place)
    columns: Dict[str, List[Any]] = {name: [] for name in signature.inputs}
    for place, row in enumerate(rows):
        _require_names(row, signature, "instances[%d]" % place)
        for name, value in row.items():
            columns[name].append(value)
    return columns


def _columns(inputs: Any, signature: Signature) -> Dict[str, Any]:
    if not isinstance(inputs, dict) or is_bytes(inputs):
        return {_only_input(signature): inputs}
    _require_names(inputs, signature, "inputs")
    return dict(inputs)


def _only_input(signature: Signature) -> str:
    if len(signature.inputs) != 1:
        message = "The signature %s has %d inputs: name each value. Expected: %s."
        raise BadRequest(message % (signature.name, len(signature.inputs), signature.words()))
    return next(iter(signature.inputs))


def _require_names(values: Mapping[str, Any], signature: Signature, where: str) -> None:
    for name in values:
        if name not in signature.inputs:
            raise BadRequest("%s: unknown input %s. Expected: %s." % (where, shortened(name), signature.words()))
    for name in signature.inputs:
        if name not in values:
            raise BadRequest("%s: the input %s is missing. Expected: %s." % (where, name, signature.words()))


def answer(asked: Asked, outputs: Mapping[str, Any]) -> Dict[str, Any]:
    """The answer's JSON; `outputs` are nested lists by name. One output stands for itself."""
    if not asked.is_rows:
        return {"outputs": next(iter(outputs.values())) if len(outputs) == 1 else dict(outputs)}
    count = len(next(iter(asked.values.values())))
    for name, value in outputs.items():
        if not isinstance(value, list) or len(value) != count:
            message = 'The output %s has no row per example. Use the column format: send "inputs".'
            raise BadRequest(message % name)
    if len(outputs) == 1:
        return {"predictions": next(iter(outputs.values()))}
    return {"predictions": [{name: value[row] for name, value in outputs.items()} for row in range(count)]}
