"""Which columns of a record are which input of the model, and their values as arrays that the input takes.

A column goes to the input of its name, or as `columns` says: `x=pixels`, `x=a+b+c` (numbers, joined in this order),
`examples=*` (the serialized example). For a model with one input what is left over is taken where it fits. What does
not fit an input is a bad record, never converted by guess (`serving.tensors`).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, Collection, Dict, List, Mapping, Sequence, Tuple

from yardmaster_runner.predict.examples import Picture
from yardmaster_runner.predict.records import Record
from yardmaster_runner.prepare.trouble import BadRecord, PrepareError
from yardmaster_runner.serving.signatures import BadRequest, Signature, Tensor
from yardmaster_runner.serving.tensors import as_array

WHOLE = "*"


@dataclass(frozen=True)
class Feed:
    """One input: `tensor` is that of one example, without the dimension of the batch."""

    tensor: Tensor
    columns: Tuple[str, ...]

    @property
    def takes_pixels(self) -> bool:
        shape = self.tensor.shape
        return self.tensor.dtype != "string" and shape is not None and len(shape) == 3


def batch_of(signature: Signature) -> int:
    """How many examples every batch has to have; 0 where any number will do. Raises `PrepareError` for a signature that
    takes no batches."""
    sizes = {None if one.shape is None else (one.shape or (0,))[0] for one in signature.inputs.values()} - {None}
    if 0 in sizes or not signature.inputs or len(sizes) > 1:
        message = "the signature %s takes no batches of examples: %s"
        raise PrepareError(message % (signature.name, signature.words()))
    return next(iter(sizes), 0) or 0


def mapping_of(text: str) -> Dict[str, Tuple[str, ...]]:
    """`x=a+b,y=c` as columns by input. Raises `PrepareError`."""
    found: Dict[str, Tuple[str, ...]] = {}
    for one in filter(None, text.split(",")):
        name, equals, columns = one.partition("=")
        parts = tuple(part.strip() for part in columns.split("+"))
        if not equals or not name.strip() or "" in parts or name.strip() in found:
            raise PrepareError("columns is %r: expected INPUT=COLUMN for each input, such as x=a+b,y=c" % text)
        found[name.strip()] = parts
    return found


def feeds_of(
    signature: Signature, first: Record, mapping: Mapping[str, Tuple[str, ...]], aside: Collection[str]
) -> List[Feed]:
    """Where each input is read from, by a record of the data; columns of `aside` are fed only by name. Raises
    `PrepareError`, which names the inputs and the columns that there are."""
    unknown = sorted(set(mapping) - set(signature.inputs))
    if unknown:
        raise PrepareError("the model has no input %s. It takes %s" % (unknown[0], signature.words()))
    feeds = []
    for name, tensor in signature.inputs.items():
        inner = Tensor(name, tensor.dtype, None if tensor.shape is None else tuple(tensor.shape[1:]))
        columns = mapping.get(name) or ((name,) if name in first.values else ())
        if not columns and len(signature.inputs) == 1:
            columns = _left_over(inner, first, [one for one in first.values if one not in aside])
        if not columns:
            message = "nothing is known to be the input %s: the data has %s. Say it with columns, such as %s=COLUMN"
            raise PrepareError(message % (tensor.words(), ", ".join(list(first.values)[:20]) or "nothing", name))
        feeds.append(Feed(inner, columns))
    return feeds


def _left_over(tensor: Tensor, first: Record, free: Sequence[str]) -> Tuple[str, ...]:
    """What the only input is made of where nothing has its name."""
    if tensor.dtype == "string" and first.whole is not None:
        texts = [one for one in free if isinstance(first.values[one], (bytes, Picture))]
        return (texts[0],) if len(texts) == 1 else (WHOLE,)
    if len(free) == 1:
        return (free[0],)
    if tensor.shape == (len(free),):
        return tuple(free)
    fitting = [one for one in free if _has_size(first.values[one], tensor)]
    return (fitting[0],) if len(fitting) == 1 else ()


def _has_size(value: Any, tensor: Tensor) -> bool:
    """Whether a value has as many elements as the input takes, where those are several."""
    if tensor.shape is None or None in tensor.shape:
        return False
    count = 1
    for size in tensor.shape:
        count *= size or 0
    found = getattr(value, "size", None)
    return count > 1 and count == (len(value) if isinstance(value, list) else found)


def values_for(feed: Feed, record: Record, scale: float) -> Any:
    """The array of one example. Raises `BadRecord`."""
    try:
        if feed.columns == (WHOLE,):
            if record.whole is None:
                raise BadRecord(record.place, "* is the serialized example, and the data has none")
            return _shaped(feed.tensor, _bytes(record.whole))
        parts = [_plain(feed, record.values[name], scale) for name in feed.columns]
        return _shaped(feed.tensor, parts[0] if len(parts) == 1 else _joined(parts))
    except KeyError as error:
        raise BadRecord(record.place, "no column %s" % error) from None
    except BadRequest as error:
        raise BadRecord(record.place, error.message) from None


def _joined(parts: Sequence[Any]) -> Any:
    import numpy

    return numpy.concatenate([one.reshape(-1) for one in parts])


def _plain(feed: Feed, value: Any, scale: float) -> Any:
    """A value of a record as an array of the input's type, whatever its shape."""
    tensor = Tensor(feed.tensor.name, feed.tensor.dtype, None)
    if isinstance(value, Picture) and tensor.dtype != "string":
        return _pixels(feed, value, scale)
    if isinstance(value, Picture):
        value = value.data
    if tensor.dtype == "string" and (isinstance(value, bytes) or _is_bytes(value)):
        return _bytes(value)
    if isinstance(value, bytes) or _is_bytes(value):
        raise BadRequest("The input %s takes %s, and the column holds bytes." % (tensor.name, tensor.dtype))
    if isinstance(value, str) and tensor.dtype != "string":
        value = _number(tensor, value)
    if tensor.dtype == "bool":
        value = _flag(value)
    return as_array(tensor, value)


def _is_bytes(value: Any) -> bool:
    return isinstance(value, list) and bool(value) and isinstance(value[0], bytes)


def _bytes(value: Any) -> Any:
    import numpy

    array = numpy.empty((len(value),) if isinstance(value, list) else (), dtype=object)
    array[...] = value
    return array


def _number(tensor: Tensor, text: str) -> Any:
    """A cell of a table. A cell of another kind is refused."""
    words = {"true": True, "false": False, "1": True, "0": False}
    if tensor.dtype == "bool" and text.strip().lower() in words:
        return words[text.strip().lower()]
    try:
        number = int(text) if tensor.dtype.startswith(("int", "uint")) else float(text)
    except ValueError:
        raise BadRequest("%r is no %s, which the input %s takes." % (text[:40], tensor.dtype, tensor.name)) from None
    if isinstance(number, float) and math.isinf(number) and "inf" not in text.lower():
        raise BadRequest("%r is too large for %s, which the input %s takes." % (text[:40], tensor.dtype, tensor.name))
    return number


def _flag(value: Any) -> Any:
    """Truth values as records keep them: 0 and 1."""
    import numpy

    array = numpy.asarray(value)
    return array.astype(bool) if array.dtype.kind == "i" and numpy.isin(array, (0, 1)).all() else value


def _pixels(feed: Feed, picture: Picture, scale: float) -> Any:
    """0 to 255 times `scale`, in the size and with the channels that the input takes."""
    import tensorflow as tf

    tensor, shape = feed.tensor, feed.tensor.shape
    if shape is not None and not feed.takes_pixels:
        raise BadRequest("The input %s takes no picture of pixels: %s." % (tensor.name, tensor.words()))
    rows, columns, channels = shape or (None, None, 3)
    try:
        image = tf.io.decode_image(picture.data, channels=channels or 3, expand_animations=False)
    except (tf.errors.InvalidArgumentError, ValueError) as error:
        raise BadRequest("The picture cannot be decoded: %s" % str(error).splitlines()[0][:200]) from None
    if rows and columns and tuple(image.shape[:2]) != (rows, columns):
        image = tf.image.resize(image, (rows, columns))
    if scale == 1.0 and not tensor.dtype.startswith("float"):
        image = tf.round(image) if image.dtype != tf.uint8 else image
    return as_array(Tensor(tensor.name, tensor.dtype, None), (tf.cast(image, tf.float32) * scale).numpy())


def _shaped(tensor: Tensor, array: Any) -> Any:
    """The array in the shape of the input, where it has as many elements. Raises `BadRequest`."""
    if tensor.takes(array.shape):
        return array
    wanted = [-1 if size is None else size for size in tensor.shape or ()]
    if wanted.count(-1) <= 1 and (-1 not in wanted or array.size):
        try:
            return array.reshape(wanted)
        except ValueError:
            pass  # another number of values: said below, with both shapes
    message = "The value has the shape %s, and the input takes %s (of each example)."
    raise BadRequest(message % (list(array.shape), tensor.words()))
