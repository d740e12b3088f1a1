"""What a node says of an image that it cannot pull or start, in plain words with the image's name. Pure.

The words are those of containerd, and of CRI-O where they are others. What is not known is said as the node says it.
"""

from __future__ import annotations

import re

from yardmaster.engines.kubernetes.client.objects import Raw
from yardmaster.engines.kubernetes.observe.placing import Cause, short
from yardmaster.engines.kubernetes.render import names
from yardmaster.lifecycle.image_words import (
    IMAGE_ACCESS_DENIED,
    IMAGE_LACKS_PYTHON,
    IMAGE_NOT_FOUND,
    IMAGE_PLATFORM,
    IMAGE_PULL,
    REGISTRY_UNREACHABLE,
)

PULL_WORDS = frozenset(
    {
        "ErrImagePull",
        "ImagePullBackOff",
        "ErrImageNeverPull",
        "ImageInspectError",
        "RegistryUnavailable",
    }
)
_BACK_OFF = re.compile(r'Back-off pulling image "[^"]*"(?:: (?:ErrImagePull: )?)?')
_FAILED_PULL = re.compile(r'Failed to pull image "[^"]*": ')
"""What kubelets say before the words of the registry; older ones say while they wait that they wait, and no more."""
_REFERENCE = re.compile(r'(?:image|reference) "([^"]+)"')
_ONLY_WAITS = "It waits before it tries again."
_PREFIXES = re.compile(
    r'(?:rpc error: code = \w+ desc = |failed to (?:pull and unpack image|resolve reference) "[^"]*": )*', re.IGNORECASE
)
_SIGNS = (
    (IMAGE_PLATFORM, r"no match for platform|no matching manifest|no image found in (?:image index|manifest list)",
     "{image} is not for the processor of the node."),
    (IMAGE_ACCESS_DENIED,
     r"\b40[13] (?:Unauthorized|Forbidden)|unauthorized|authorization failed|authentication required|access .*denied"
     r"|denied:|no basic auth credentials|insufficient_scope",
     "The registry does not let the cluster pull {image}."),
    (IMAGE_NOT_FOUND, r"not found|manifest unknown|name unknown|does not exist|\b404\b",
     "The registry does not have {image}: the name or the digest is wrong, or it was deleted there."),
    (REGISTRY_UNREACHABLE,
     r"dial tcp|connection re(?:fused|set)|no such host|i/o timeout|handshake timeout|deadline exceeded|\bEOF\b"
     r"|server misbehaving|\b50[0-4] |x509:|HTTP response to HTTPS",
     "The registry of {image} does not answer the cluster's node."),
)  # fmt: skip
_FOREIGN = re.compile(r"^[^\n]*\bexec\b[^\n]*: exec format error(?:: unknown)?\s*\Z")
_NO_PYTHON = re.compile(
    r'exec: "[^"]*python[^"]*": (?:executable file not found|permission denied|stat [^:]*: no such file)'
)


def lacks_words(message: str) -> bool:
    """Whether a kubelet's message on an image says only that it waits: the words are in an event."""
    return message.endswith(_ONLY_WAITS)


def why_not_pulled(pod: Raw, message: str, events: tuple[Raw, ...]) -> Cause:
    """The same while the image is tried and while the next try is waited for."""
    said, reference = _registry_words(message, events), _REFERENCE.search(message)
    image = _called(pod, reference[1] if reference else "")
    if not said:
        return Cause(IMAGE_PULL, f"The node could not pull {image}. {_ONLY_WAITS}")
    for reason, sign, sentence in _SIGNS:
        if re.search(sign, said, re.IGNORECASE):
            return Cause(reason, short(f"{_begun(sentence.format(image=image))} The node says: {said}"))
    return Cause(IMAGE_PULL, short(f"The node could not pull {image}. It says: {said}"))


def is_for_others(output: str) -> bool:
    """Whether this, all that a container printed, is the kernel's word on a program for another processor. Nodes pull
    an image that has one variant without asking which."""
    return bool(_FOREIGN.search(output))


def start_failure(pod: Raw, message: str) -> Cause:
    """Why a container could not be started, in the container runtime's words."""
    if _FOREIGN.search(message):
        sentence = f"{_called(pod, '')} is not for the processor of the node."
        return Cause(IMAGE_PLATFORM, short(f"{_begun(sentence)} The node says: {message.strip()}"))
    if _NO_PYTHON.search(message):
        image = _called(pod, "")
        sentence = f"{image} has no Python that its tasks may start."
        return Cause(IMAGE_LACKS_PYTHON, short(f"{_begun(sentence)} The node says: {message}"))
    return Cause("StartFailed", short(message))


def _registry_words(message: str, events: tuple[Raw, ...]) -> str:
    """Without what is said before them; empty where they are not known."""
    found = _BACK_OFF.match(message)
    if found is None or found.end() < len(message):
        said = message[found.end() :] if found else message
        return said[_end_of_prefixes(said) :]
    for event in events:
        failed = _FAILED_PULL.match(str(event.get("message", "")))
        if event.get("reason") == "Failed" and failed is not None:
            said = str(event["message"])[failed.end() :]
            return said[_end_of_prefixes(said) :]
    return ""


def _end_of_prefixes(said: str) -> int:
    found = _PREFIXES.match(said)
    return found.end() if found else 0


def _called(pod: Raw, reference: str) -> str:
    """The image as it is called in the catalogue, and where it is pulled from."""
    name = (pod.get("metadata", {}).get("annotations") or {}).get(names.IMAGE, "")
    if name:
        return f"the image {name} ({reference})" if reference else f"the image {name}"
    return f"the image {reference}" if reference else "the image"


def _begun(sentence: str) -> str:
    return sentence[0].upper() + sentence[1:]
