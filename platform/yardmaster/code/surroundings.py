"""What a check of code must know beside the code: what the job's tasks will find around them."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from yardmaster.code.task_modules import MODULES
from yardmaster_runner.requirement_files import normal

MOST_NAMES = 20_000
OWN_TENSORFLOW = "2.21"
"""Of the engines' own image, whose modules are `MODULES`."""
_OWN_MODULES = frozenset(module for modules in MODULES.values() for module in modules)
_WITH_TENSORFLOW = frozenset({
    "absl", "astunparse", "certifi", "charset_normalizer", "flatbuffers", "gast", "google.protobuf", "grpc", "h5py",
    "idna", "keras", "markdown", "numpy", "opt_einsum", "packaging", "pkg_resources", "requests", "setuptools", "six",
    "tensorboard", "tensorflow", "tensorflow_estimator", "termcolor", "typing_extensions", "urllib3", "werkzeug",
    "wrapt",
})  # fmt: skip
"""What is there wherever TensorFlow is, whatever its version, as far as scripts import it."""


@dataclass(frozen=True)
class ImageFacts:
    """What is known of the image that the tasks run in. `packages`: the modules or distributions that it has, by name;
    None: not known. Versions are empty where they are not known."""

    packages: frozenset[str] | None
    python: str = ""
    tensorflow: str = ""

    @classmethod
    def common(cls, facts: Sequence[ImageFacts]) -> ImageFacts:
        """What is true of all of them."""
        if len(set(facts)) == 1:
            return facts[0]
        first, *rest = [one.modules for one in facts]
        common = first
        for modules in rest:
            common = None if common is None or modules is None else common & modules
        return cls(common, _one({one.python for one in facts}), _one({one.tensorflow for one in facts}))

    @property
    def modules(self) -> frozenset[str] | None:
        """What is there, with what TensorFlow brings; None: not known."""
        if self.packages is None:
            return None
        found = {module for one in self.packages for module in MODULES.get(normal(one), ())} | self.packages
        brings = bool(self.tensorflow) or "tensorflow" in found
        return frozenset(found | _WITH_TENSORFLOW if brings else found)

    @property
    def tensorflow_release(self) -> tuple[int, int] | None:
        """`(2, 19)`; None: not known."""
        found = re.match(r"(\d{1,4})\.(\d{1,4})", self.tensorflow)
        return (int(found[1]), int(found[2])) if found else None

    @property
    def is_parsed_here(self) -> bool:
        """Whether what this process cannot parse cannot be parsed there either: they have the same Python."""
        return self.python.split(".")[:2] == [str(one) for one in sys.version_info[:2]]

    @property
    def is_own(self) -> bool:
        """Whether it is the engines' own."""
        return self == OWN_IMAGE

    @property
    def is_current(self) -> bool:
        """Whether it has the TensorFlow with Keras 3 and without Estimators, which came with 2.16."""
        return (self.tensorflow_release or (0, 0)) >= (2, 16)


OWN_IMAGE = ImageFacts(_OWN_MODULES, f"{sys.version_info[0]}.{sys.version_info[1]}", OWN_TENSORFLOW)
"""The engines' own."""


@dataclass(frozen=True)
class Surroundings:
    """`own_names`: the names of all files and folders of the code, as modules have them, also of files that are not
    read. `has_way_out`: tasks reach addresses outside. `image`: what is known of the image that a script runs in."""

    own_names: frozenset[str] = frozenset()
    has_way_out: bool = True
    image: ImageFacts = OWN_IMAGE

    def as_json(self) -> dict[str, Any]:
        """For another process; `of_json` reads it."""
        image = self.image
        packages = None if image.packages is None or image.is_own else sorted(image.packages)
        facts = None if image.is_own else [packages, image.python, image.tensorflow]
        return {"own_names": sorted(self.own_names), "has_way_out": self.has_way_out, "image": facts}

    @classmethod
    def of_json(cls, data: Mapping[str, Any]) -> Surroundings:
        """What `as_json` wrote."""
        image = OWN_IMAGE
        if data["image"] is not None:
            packages, python, tensorflow = data["image"]
            image = ImageFacts(None if packages is None else frozenset(packages), python, tensorflow)
        return cls(frozenset(data["own_names"]), data["has_way_out"], image)


def own_names(paths: Iterable[str]) -> frozenset[str]:
    """The names under which a script may import what lies in its code, from whatever folder."""
    found: set[str] = set()
    for path in paths:
        found.update(part.partition(".")[0] for part in path.split("/"))
        if len(found) > MOST_NAMES:
            break
    return frozenset(found)


def _one(versions: set[str]) -> str:
    return versions.pop() if len(versions) == 1 else ""
