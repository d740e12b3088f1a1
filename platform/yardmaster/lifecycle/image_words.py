"""Why the image of a task cannot be had, or cannot run one: words of the vocabulary (`failures.REASONS`), each with its
title, its sentence and its remedy. All are the platform's. Only words.
"""

from __future__ import annotations

from collections.abc import Mapping

IMAGE_PULL = "ImagePull"
IMAGE_NOT_FOUND = "ImageNotFound"
IMAGE_ACCESS_DENIED = "ImageAccessDenied"
REGISTRY_UNREACHABLE = "RegistryUnreachable"
IMAGE_PLATFORM = "ImagePlatform"
IMAGE_LACKS_PYTHON = "ImageLacksPython"

NOT_PULLED = frozenset({IMAGE_PULL, IMAGE_NOT_FOUND, IMAGE_ACCESS_DENIED, REGISTRY_UNREACHABLE})
"""Of a task whose node tries to pull the image, again and again."""

IMAGES: Mapping[str, tuple[str, str, str, bool]] = {
    IMAGE_PULL: (
        "The image could not be pulled",
        "{task} could not start: its container image could not be pulled.",
        "Ask an administrator to check the image's name and the access to its registry.",
        False,
    ),
    IMAGE_NOT_FOUND: (
        "The image is not in its registry",
        "{task} could not start.",
        "Choose another image, or ask an administrator to push this one again or correct its reference: see "
        "docs/images.md.",
        False,
    ),
    IMAGE_ACCESS_DENIED: (
        "The registry refuses the image",
        "{task} could not start.",
        "Ask an administrator to correct the image's pull secret: its login must be allowed to pull, and it must name "
        "the registry as the image does.",
        False,
    ),
    REGISTRY_UNREACHABLE: (
        "The image's registry does not answer",
        "{task} could not start.",
        "If it repeats, ask an administrator to check whether the cluster's nodes reach the registry and trust its "
        "certificate.",
        False,
    ),
    IMAGE_PLATFORM: (
        "The image is for other machines",
        "{task} could not start.",
        "Choose another image, or ask an administrator for one that is built for the processors of the nodes.",
        True,
    ),
    IMAGE_LACKS_PYTHON: (
        "The image has no Python",
        "{task} could not start.",
        "Choose another image, or ask an administrator to correct it: docs/images.md says what an image must have.",
        True,
    ),
    "ImageInvalid": (
        "The image name is invalid",
        "{task} could not start: the name of its container image is not valid.",
        "Ask an administrator to correct the image's name in the settings of the engine.",
        True,
    ),
}
"""The last says whether starting the same task again cannot help."""
