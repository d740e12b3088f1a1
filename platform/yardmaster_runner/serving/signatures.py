"""What a model takes and gives, as frozen values, and the form in which TensorFlow Serving describes it. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Dict, List, Mapping, Optional, Sequence, Tuple

DEFAULT = "serving_default"
PREDICT = "tensorflow/serving/predict"
CLASSIFY = "tensorflow/serving/classify"
REGRESS = "tensorflow/serving/regress"

DTYPES = {
    "float16": "DT_HALF", "bfloat16": "DT_BFLOAT16", "float32": "DT_FLOAT", "float64": "DT_DOUBLE",
    "int8": "DT_INT8", "int16": "DT_INT16", "int32": "DT_INT32", "int64": "DT_INT64",
    "uint8": "DT_UINT8", "uint16": "DT_UINT16", "uint32": "DT_UINT32", "uint64": "DT_UINT64",
    "bool": "DT_BOOL", "string": "DT_STRING", "complex64": "DT_COMPLEX64", "complex128": "DT_COMPLEX128",
}  # fmt: skip
"""TensorFlow's names of what an element is, and the protocol's."""


class BadRequest(Exception):
    """The request cannot be answered. `status` is HTTP's; the text is for the caller."""

    def __init__(self, message: str, status: int = 400) -> None:
        super().__init__(message)
        self.message = message
        self.status = status


@dataclass(frozen=True)
class Tensor:
    """One input or output. A dimension of None may have any size; a shape of None may have any rank."""

    name: str
    dtype: str
    shape: Optional[Tuple[Optional[int], ...]]

    def words(self) -> str:
        """`image: float32 [?, 28, 28]`."""
        if self.shape is None:
            return "%s: %s of any shape" % (self.name, self.dtype)
        sizes = ", ".join("?" if size is None else str(size) for size in self.shape)
        return "%s: %s [%s]" % (self.name, self.dtype, sizes)

    def takes(self, shape: Sequence[int]) -> bool:
        """Whether a value of this shape fits."""
        if self.shape is None:
            return True
        return len(shape) == len(self.shape) and all(
            wanted is None or wanted == size for wanted, size in zip(self.shape, shape)
        )

    def to_json(self) -> Dict[str, Any]:
        """As TensorFlow Serving writes a `TensorInfo`."""
        sizes = [{"size": str(-1 if size is None else size), "name": ""} for size in self.shape or ()]
        return {
            "dtype": DTYPES.get(self.dtype, "DT_INVALID"),
            "tensor_shape": {"dim": sizes, "unknown_rank": self.shape is None},
            "name": self.name,
        }


@dataclass(frozen=True)
class Signature:
    """One way to call the model. `method` is the one that the SavedModel names."""

    name: str
    inputs: Mapping[str, Tensor]
    outputs: Mapping[str, Tensor]
    method: str = PREDICT

    def words(self) -> str:
        return "; ".join(one.words() for one in self.inputs.values()) or "no input"

    def to_json(self) -> Dict[str, Any]:
        return {
            "inputs": {name: one.to_json() for name, one in self.inputs.items()},
            "outputs": {name: one.to_json() for name, one in self.outputs.items()},
            "method_name": self.method,
        }


def chosen(signatures: Mapping[str, Signature], name: str) -> Signature:
    """The signature of this name; of no name the default, or the only one. Raises `BadRequest`."""
    if not name:
        name = DEFAULT if DEFAULT in signatures or len(signatures) != 1 else next(iter(signatures))
    if name not in signatures:
        known = ", ".join(sorted(signatures)[:20])
        raise BadRequest("The model has no signature %s. Its signatures: %s." % (shortened(name), known))
    return signatures[name]


def metadata(model: str, version: str, signatures: Mapping[str, Signature]) -> Dict[str, Any]:
    """The answer to `GET /v1/models/NAME/metadata`."""
    described = {name: one.to_json() for name, one in signatures.items()}
    return {
        "model_spec": {"name": model, "signature_name": "", "version": version},
        "metadata": {"signature_def": {"signature_def": described}},
    }


def status(version: str, state: str, message: str = "") -> Dict[str, List[Dict[str, Any]]]:
    """The answer to `GET /v1/models/NAME`."""
    code = "OK" if not message else "UNKNOWN"
    one = {"version": version, "state": state, "status": {"error_code": code, "error_message": message}}
    return {"model_version_status": [one]}


def shortened(text: str, most: int = 80) -> str:
    """A text of the caller as it may be repeated."""
    shown = "".join(letter if letter.isprintable() else "?" for letter in text[: most + 1])
    return repr(shown if len(shown) <= most else shown[: most - 1] + "…")
