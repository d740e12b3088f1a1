"""Predictions: a request of a user, passed to the service of a version, and its answer back."""

from __future__ import annotations

import json
import re
from typing import Any
from urllib.parse import quote

from django.utils import timezone

from apps.api.inflating import inflated
from apps.errors import NotFound, TooLarge, Unprocessable
from apps.hosting.addresses import address_of
from apps.hosting.dialing import MOST_ANSWER, MOST_BODY, AnswerTooLarge, NotReached, Reply, TooSlow, dial
from apps.hosting.state import State, lost, situation_of, token_for
from apps.registry.models import ModelVersion
from apps.serving.models import Service
from apps.serving.services import request_note
from yardmaster.errors import Unavailable
from yardmaster_runner.serving.signatures import status

REST = re.compile(
    r"(?P<model>v1/models/(?P<name>[^/:?#]{1,300}))(?:/versions/(?P<version>[0-9]{1,10})|/labels/(?P<label>[^/:?#]{1,63}))?"
    r"(?P<rest>/metadata|:[a-z]{1,20})?"
)
"""What of TensorFlow Serving's REST API is passed on."""
_LONGEST_ERROR = 2000


def service_call(service: Service, method: str, path: str, body: bytes = b"") -> Reply:
    """Pass one request to the service. Raises `Unavailable` (503) where it does not run or answer, `TooLarge`, and
    `Unprocessable` where the answer is too large or too slow."""
    if len(body) > MOST_BODY:
        raise TooLarge(f"A request to a service carries at most {MOST_BODY} bytes.", remedy="Send fewer examples.")
    now = timezone.now()
    _require_ready(service)
    assert service.job is not None
    address = address_of(service.job)
    if address is None:
        raise _not_ready("The engine of the service gives the portal no address to connect to.")
    try:
        reply = dial(address, method, path, body, key=token_for(service.job))
    except NotReached as error:
        lost(service)
        raise _not_ready("The service does not answer. It may be restarting.") from error
    except TooSlow as error:
        raise Unprocessable(
            "The service took too long to answer.", "too_slow", remedy="Send fewer examples."
        ) from error
    except AnswerTooLarge as error:
        words = f"The answer has more than {MOST_ANSWER} bytes."
        raise Unprocessable(words, "answer_too_large", remedy="Send fewer examples per request.") from error
    if reply.status == 503:  # the server loads the model again
        lost(service)
    if method == "POST":
        request_note(service, max(now, timezone.now()))
    return reply


def rest_call(service: Service, method: str, rest: str, body: bytes = b"") -> Reply:
    """Pass on a request of a client of TensorFlow Serving. The state of one that does not answer yet is told by the
    portal. Raises `NotFound`, and what `service_call` raises."""
    found = REST.fullmatch(rest)
    if found is None:
        raise NotFound("A service has no such address.", remedy="Its addresses begin with v1/models/NAME.")
    number, label = found["version"], found["label"]
    version = service.version
    if label:
        if label != version.stage:
            words = f"Version {version.number}, which this service serves, does not have the stage {label}."
            raise NotFound(words, remedy="Serve the version that has it, or leave out /labels/.")
        number = str(version.number)
    if method == "GET" and not found["rest"]:
        now = situation_of(service, timezone.now())
        if now.runs and now.state is not State.READY:
            if found["name"] != version.parent.name or number not in (None, str(version.number)):
                raise NotFound(f"This service serves {version.parent.name}, version {version.number}.")
            state = "LOADING" if now.state is State.LOADING else "START"
            return Reply(200, json.dumps(status(str(version.number), state)).encode())
    path = found["model"] + (f"/versions/{number}" if number else "") + (found["rest"] or "")
    return service_call(service, method, "/" + quote(path, safe="/:"), body)


def unpacked(body: bytes, encoding: str) -> bytes:
    """The body as it was before `Content-Encoding`. Raises `Invalid` and `TooLarge`."""
    named = encoding.strip().lower()
    usual = {"": "identity", "x-gzip": "gzip"}.get(named, named)
    return inflated(body, usual, MOST_BODY, "examples", "Send fewer examples.")


def predict(service: Service, body: bytes, verb: str = "predict") -> Reply:
    """`:predict`, `:classify` or `:regress` of the model that the service has. Raises `Unprocessable` with the model
    server's words."""
    version = service.version
    path = f"/v1/models/{quote(version.parent.name, safe='')}/versions/{version.number}:{verb}"
    reply = service_call(service, "POST", path, body)
    if reply.status == 503:
        raise Unavailable(error_of(reply), remedy="Try again in a while, or serve the model with more memory.")
    if reply.status != 200:
        remedy = "Compare the request with the model's signature."
        raise Unprocessable(error_of(reply), "prediction_refused", remedy=remedy)
    return reply


def signatures_of(service: Service) -> dict[str, Any]:
    """The signatures of the model as the server describes them; empty where it describes none."""
    path = f"/v1/models/{quote(service.version.parent.name, safe='')}/metadata"
    data = _parsed(service_call(service, "GET", path), 1 << 20)
    found = data.get("metadata", {}) if isinstance(data, dict) else {}
    for _ in range(2):
        found = found.get("signature_def", {}) if isinstance(found, dict) else {}
    return found if isinstance(found, dict) else {}


def error_of(reply: Reply) -> str:
    """What the service says is wrong."""
    data = _parsed(reply, 64 << 10)
    said = data.get("error") if isinstance(data, dict) else None
    return said[:_LONGEST_ERROR] if isinstance(said, str) and said else f"The service answered {reply.status}."


def _parsed(reply: Reply, most: int) -> Any:
    """The JSON of an answer of a server that runs what users made: None where it is none, or too large."""
    if len(reply.body) > most:
        return None
    try:
        return json.loads(reply.body)
    except (ValueError, RecursionError):
        return None


def _require_ready(service: Service) -> None:
    found = situation_of(service, timezone.now())
    if found.state is State.READY:
        return
    if found.state is State.FAILED:
        raise Unavailable(f"The service failed. {found.message}".strip(), remedy=found.remedy)
    if not found.runs:
        raise not_served(service.version)
    waits = "waits in the queue" if found.state is State.QUEUED else "is starting"
    raise _not_ready(f"The service {waits}. {found.message}".strip())


def not_served(version: ModelVersion) -> Unavailable:
    """What a request is told of a version without a running service."""
    name, number = version.parent.name, version.number
    start = f"Start it on its page, with `yardmaster models serve {name}@{number}`, or with POST /api/v1/services/."
    return Unavailable(f"Version {number} of {name} is not served now.", remedy=start)


def _not_ready(message: str) -> Unavailable:
    return Unavailable(message, remedy="Try again in some seconds.")
