"""Records as tensors, by the features that a dataset's description names. TensorFlow is handed in."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Dict, Mapping, Optional, Tuple

from yardmaster_runner.data.description import Description, Feature


@dataclass(frozen=True)
class Wanted:
    """How examples are to look. `image_size` None: images keep their own sizes."""

    decode_images: bool = True
    image_size: Optional[Tuple[int, int]] = None
    channels: int = 3
    as_dict: bool = False


class Parser:
    """Parses records of one description: a batch at a time, or one by one where images are decoded."""

    def __init__(self, tensorflow: Any, description: Description, wanted: Wanted) -> None:
        self._tf = tensorflow
        self._features = description.features
        self._label = description.label
        self._wanted = wanted
        self._specs = {name: self._spec(one) for name, one in description.features.items()}

    @property
    def is_one_by_one(self) -> bool:
        return any(self._is_image(one) for one in self._features.values())

    @property
    def is_ragged(self) -> bool:
        """Whether some feature has a length of its own in each record."""
        return any(one.shape is None for one in self._features.values())

    def one(self, record: Any) -> Any:
        """The example of one record."""
        found = self._tf.io.parse_single_example(record, self._specs)
        return self._arranged({name: self._decoded(name, value, False) for name, value in found.items()})

    def many(self, records: Any) -> Any:
        """The examples of a batch of records."""
        found = self._tf.io.parse_example(records, self._specs)
        return self._arranged({name: self._decoded(name, value, True) for name, value in found.items()})

    def _is_image(self, one: Feature) -> bool:
        return self._wanted.decode_images and one.encoding == "image" and one.shape is not None

    def _spec(self, one: Feature) -> Any:
        io = self._tf.io
        kind = {"int64": self._tf.int64, "float": self._tf.float32, "bytes": self._tf.string}[one.kind]
        if one.encoding.startswith("raw:"):
            return io.FixedLenFeature([], kind)
        if one.shape is None:
            return io.RaggedFeature(kind)
        return io.FixedLenFeature(list(one.shape), kind)

    def _decoded(self, name: str, value: Any, is_batch: bool) -> Any:
        one = self._features[name]
        if self._is_image(one):
            return self._image(value)
        if one.encoding.startswith("raw:"):
            items = self._tf.io.decode_raw(value, one.encoding.partition(":")[2])
            if one.shape is not None:
                items = self._tf.reshape(items, [-1, *one.shape] if is_batch else list(one.shape))
            return items
        return value

    def _image(self, value: Any) -> Any:
        image = self._tf.io.decode_image(value, channels=self._wanted.channels, expand_animations=False)
        image.set_shape([None, None, self._wanted.channels])
        if self._wanted.image_size is not None:
            image = self._tf.image.resize(image, self._wanted.image_size)
        return image

    def _arranged(self, found: Mapping[str, Any]) -> Any:
        features: Dict[str, Any] = dict(found)
        if self._wanted.as_dict or not self._label or self._label not in features:
            return features
        label = features.pop(self._label)
        return (next(iter(features.values())) if len(features) == 1 else features), label
