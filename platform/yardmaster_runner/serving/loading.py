"""A model from a folder, as something that can be called: a SavedModel, or a file of Keras. TensorFlow 2 is imported
here, when the model is loaded. Not here: which of several models is meant (`model_choice`).
"""

from __future__ import annotations

import os
from typing import Any, Callable, Dict, Iterator, List, Mapping, Optional, Tuple

from yardmaster_runner.model_choice import KERAS, SAVED_MODEL, SERVED, model_among
from yardmaster_runner.serving.signatures import DEFAULT, PREDICT, BadRequest, Signature, Tensor

Call = Callable[[Mapping[str, Any]], Mapping[str, Any]]


class NotLoaded(Exception):
    """The model cannot be served. The text says why, in one line."""


class Loaded:
    """A model that is in memory."""

    def __init__(self, kind: str, signatures: Mapping[str, Signature], calls: Mapping[str, Call]) -> None:
        self.kind = kind
        self.signatures = signatures
        self._calls = calls

    def run(self, signature: str, inputs: Mapping[str, Any]) -> Dict[str, Any]:
        """The outputs, as arrays. Raises `BadRequest` where the model refuses what it was given."""
        import tensorflow as tf

        errors = tf.errors
        try:
            return {name: one.numpy() for name, one in self._calls[signature](inputs).items()}
        except errors.ResourceExhaustedError as error:
            raise BadRequest("There is not enough memory for this request: %s" % first_line(error), 503) from error
        except (errors.InvalidArgumentError, errors.UnimplementedError, errors.NotFoundError) as error:
            raise BadRequest("The model refused the input: %s" % first_line(error)) from error
        except (ValueError, TypeError) as error:
            raise BadRequest("The model could not be called: %s" % first_line(error)) from error


def first_line(error: BaseException) -> str:
    """What an exception says, short enough for an answer; of one in a graph what its node says, not where it stands."""
    lines = [line.strip() for line in str(getattr(error, "message", "") or error).splitlines() if line.strip()]
    if lines and lines[0] == "Graph execution error:":
        lines = [line for line in lines if not line.startswith("[[")][-1:]
    return (lines[0] if lines else type(error).__name__)[:400]


def find(folder: str) -> Tuple[str, str]:
    """(`saved_model` or `keras`, path). Raises `NotLoaded`."""
    found = model_among(_files_of(folder))
    if found is None or found[0] not in SERVED:
        raise NotLoaded(
            "There is no model that can be served: neither a SavedModel (saved_model.pb) nor a file of Keras "
            "(.keras, .h5) is among its files"
        )
    path = os.path.join(folder, found[1])
    return (SAVED_MODEL, os.path.dirname(path)) if found[0] == SAVED_MODEL else (KERAS, path)


def _files_of(folder: str) -> Iterator[str]:
    """Their paths from the folder on, as the portal keeps them."""
    for place, _, names in os.walk(folder):
        below = os.path.relpath(place, folder)
        yield from (name if below == "." else "%s/%s" % (below, name) for name in names)


def load(folder: str) -> Loaded:
    """The model in this folder. Raises `NotLoaded`, with the cause in one line."""
    kind, path = find(folder)
    try:
        import tensorflow as tf
    except ImportError as error:
        raise NotLoaded("TensorFlow cannot be imported: %s" % first_line(error)) from error
    if not hasattr(tf, "function"):
        raise NotLoaded("serving needs TensorFlow 2, and this is %s" % tf.__version__)
    try:
        return _saved_model(tf, path) if kind == SAVED_MODEL else _keras(tf, path)
    except NotLoaded:
        raise
    except MemoryError:
        raise
    except Exception as error:  # whatever a library raises about a file that it cannot read
        words = (os.path.relpath(path, folder), type(error).__name__, first_line(error))
        raise NotLoaded("%s cannot be loaded: %s: %s" % words) from error


def _saved_model(tf: Any, path: str) -> Loaded:
    model = tf.saved_model.load(path)
    functions = {name: one for name, one in model.signatures.items() if not name.startswith("__")}
    if not functions:
        raise NotLoaded("the SavedModel has no signature: export it with one, for instance with model.export(…)")
    signatures, calls, methods = {}, {}, _methods(path)
    for name, function in functions.items():
        inputs = {key: _tensor(key, spec) for key, spec in function.structured_input_signature[1].items()}
        outputs = {key: _tensor(key, spec) for key, spec in sorted(function.structured_outputs.items())}
        signatures[name] = Signature(name, inputs, outputs, methods.get(name) or PREDICT)
        calls[name] = _caller(tf, model, function, inputs)
    return Loaded("SavedModel", signatures, calls)


def _methods(path: str) -> Dict[str, str]:
    """The method of each signature, which TensorFlow does not keep when it loads a SavedModel."""
    from google.protobuf import text_format
    from tensorflow.core.protobuf.saved_model_pb2 import SavedModel

    binary, found = os.path.join(path, "saved_model.pb"), SavedModel()
    if os.path.exists(binary):
        with open(binary, "rb") as file:
            found.ParseFromString(file.read())
    else:
        with open(binary + "txt", encoding="utf-8") as file:
            text_format.Parse(file.read(), found)
    return {name: one.method_name for graph in found.meta_graphs for name, one in graph.signature_def.items()}


def _caller(tf: Any, model: Any, function: Any, inputs: Mapping[str, Tensor]) -> Call:
    """`model` is held by the call: its variables live as long as it does."""

    def call(values: Mapping[str, Any], _held: Any = model) -> Mapping[str, Any]:
        given = {name: tf.constant(value, dtype=inputs[name].dtype) for name, value in values.items()}
        found: Mapping[str, Any] = function(**given)
        return found

    return call


def _keras(tf: Any, path: str) -> Loaded:
    """Code that a model carries (a lambda layer) is not run: Keras refuses it in its own words."""
    model = _keras_model(tf, path)
    inputs = {_name_of(one, "input", place): one for place, one in enumerate(_flat(model.inputs))}
    outputs = {_name_of(one, "output", place): one for place, one in enumerate(_output_names(model))}
    signature = Signature(
        DEFAULT,
        {name: _tensor(name, one) for name, one in inputs.items()},
        {name: _tensor(name, one) for name, one in outputs.items()},
    )

    @tf.function  # type: ignore[untyped-decorator]
    def forward(*values: Any) -> List[Any]:
        return _flat(model(values[0] if len(values) == 1 else list(values), training=False))

    def call(values: Mapping[str, Any]) -> Mapping[str, Any]:
        given = [tf.constant(values[name], dtype=signature.inputs[name].dtype) for name in inputs]
        return dict(zip(outputs, forward(*given)))

    return Loaded("Keras", {DEFAULT: signature}, {DEFAULT: call})


def _keras_model(tf: Any, path: str) -> Any:
    """With the Keras that the task has; a file of the older one with that, where it is there."""
    failures = []
    for loader in (lambda: tf.keras.models.load_model(path, compile=False), _older_keras(path)):
        if loader is None:
            continue
        try:
            return loader()
        except (ValueError, TypeError, OSError, ImportError, KeyError, AttributeError) as error:
            failures.append(error)
    raise failures[0]


def _older_keras(path: str) -> Optional[Callable[[], Any]]:
    try:
        import tf_keras
    except ImportError:
        return None
    return lambda: tf_keras.models.load_model(path, compile=False)


def _flat(value: Any) -> List[Any]:
    if isinstance(value, dict):
        return list(value.values())
    return list(value) if isinstance(value, (list, tuple)) else [value]


def _output_names(model: Any) -> List[Any]:
    return _flat(model.outputs)


def _name_of(one: Any, what: str, place: int) -> str:
    name = str(getattr(one, "name", "") or "").split(":")[0].split("/")[0]
    return name if name and not name.startswith("keras_tensor") else "%s_%d" % (what, place) if place else what


def _tensor(name: str, spec: Any) -> Tensor:
    shape: Any = getattr(spec, "shape", None)
    rank = getattr(shape, "rank", None if shape is None else len(shape))
    sizes = None if rank is None else tuple(None if size is None else int(size) for size in shape)
    dtype = spec.dtype
    return Tensor(name, str(getattr(dtype, "name", dtype)), sizes)
