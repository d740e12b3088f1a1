"""TensorFlow Serving's REST API for one model: which address means what, and what is answered while it loads.

Who asks has passed the gate. Not here: HTTP (`http_server`), the JSON (`requests`,
`examples`).
"""

from __future__ import annotations

import re
import threading
import time
from dataclasses import dataclass
from typing import Any, Dict, Optional
from urllib.parse import unquote

from yardmaster_runner.serving import examples, requests, tensors
from yardmaster_runner.serving.http_server import Answer
from yardmaster_runner.serving.loading import Loaded
from yardmaster_runner.serving.signatures import BadRequest, metadata, shortened, status

MODEL = re.compile(
    r"^/v1/models/(?P<name>[^/:]+)(?:/versions/(?P<version>[^/:]+)|/labels/(?P<label>[^/:]+))?"
    r"(?P<rest>/metadata|:[a-z]+)?$"
)
AT_ONCE = 2
"""Requests that the model computes at the same time; each uses all of the task's processors."""


@dataclass
class Usage:
    """What was asked of the model so far."""

    requests: int = 0
    failed: int = 0
    last_at: Optional[float] = None


class Api:
    """`loaded` is None until the model is in memory."""

    def __init__(self, model: str, version: str, most_answer: int) -> None:
        self.loaded: Optional[Loaded] = None
        self.usage = Usage()
        self._model = model
        self._version = version
        self._most_answer = most_answer
        self._computing = threading.BoundedSemaphore(AT_ONCE)
        self._counting = threading.Lock()

    def answer(self, method: str, path: str, body: bytes) -> Answer:
        """Never raises for what a caller sent."""
        path = path.partition("?")[0]
        if path == "/healthz":
            return self._health(method)
        try:
            return self._of_model(method, path, body)
        except BadRequest as error:
            self._count(failed=True)
            return error.status, {"error": error.message}
        except MemoryError:
            self._count(failed=True)
            return 503, {"error": "There is not enough memory for this request. Send fewer examples."}

    def _health(self, method: str) -> Answer:
        if method != "GET":
            return 405, {"error": "Use GET."}
        return (503, {"state": "loading"}) if self.loaded is None else (200, {"state": "ready"})

    def _of_model(self, method: str, path: str, body: bytes) -> Answer:
        found = MODEL.match(path)
        if found is None:
            if path == "/statistics" and method == "GET":
                return 200, self._statistics()
            return 404, {"error": "There is no %s. Try /v1/models/%s." % (shortened(path), self._model)}
        self._require_model(found)
        rest = found.group("rest") or ""
        if rest.startswith(":"):
            if method != "POST":
                return 405, {"error": "Use POST for %s." % rest}
            return self._call(rest[1:], body)
        if method != "GET":
            return 405, {"error": "Use GET, or POST to :predict, :classify or :regress."}
        return self._described(rest)

    def _require_model(self, found: "re.Match[str]") -> None:
        name, version = unquote(found.group("name")), found.group("version")
        if name != self._model:
            raise BadRequest("This server has no model %s. It serves %s." % (shortened(name), self._model), 404)
        if found.group("label"):
            raise BadRequest("This server knows no version labels. It serves version %s." % self._version, 404)
        if version and unquote(version) != self._version:
            message = "This server has no version %s. It serves version %s."
            raise BadRequest(message % (shortened(version), self._version), 404)

    def _described(self, rest: str) -> Answer:
        if not rest:
            return 200, dict(status(self._version, "LOADING" if self.loaded is None else "AVAILABLE"))
        return 200, metadata(self._model, self._version, self._ready().signatures)

    def _call(self, verb: str, body: bytes) -> Answer:
        if verb == "predict":
            answer = self._predicted(body)
        elif verb in examples.METHODS:
            answer = self._of_examples(verb, body)
        else:
            return 404, {"error": "There is no :%s. Use :predict, :classify or :regress." % verb[:40]}
        self._count(failed=False)
        return 200, answer

    def _predicted(self, body: bytes) -> Dict[str, Any]:
        model = self._ready()
        asked = requests.read(body, model.signatures)
        del body
        inputs = {name: tensors.as_array(asked.signature.inputs[name], one) for name, one in asked.values.items()}
        if asked.is_rows and len({one.shape[:1] for one in inputs.values()}) > 1:
            raise BadRequest("The inputs have different numbers of examples.")
        outputs = self._outputs(model, asked.signature.name, inputs)
        return requests.answer(asked, {name: tensors.as_json(name, one) for name, one in outputs.items()})

    def _of_examples(self, verb: str, body: bytes) -> Dict[str, Any]:
        model = self._ready()
        asked = examples.read(body, model.signatures, verb)
        del body
        outputs = self._outputs(model, asked.signature.name, {examples.INPUT: asked.serialized})
        examples.require_answers(asked, outputs)
        return examples.answer(asked, {name: tensors.as_json(name, one) for name, one in outputs.items()})

    def _outputs(self, model: Loaded, signature: str, inputs: Dict[str, Any]) -> Dict[str, Any]:
        with self._computing:
            outputs = model.run(signature, inputs)
        if sum(one.nbytes for one in outputs.values()) > self._most_answer:
            raise BadRequest("The answer is too large. Send fewer examples per request.", 413)
        return outputs

    def _ready(self) -> Loaded:
        if self.loaded is None:
            raise BadRequest("The model is still being loaded. Send the request again in a while.", 503)
        return self.loaded

    def _count(self, *, failed: bool) -> None:
        with self._counting:
            self.usage.requests += 1
            self.usage.failed += failed
            self.usage.last_at = time.time()

    def _statistics(self) -> Dict[str, Any]:
        usage = self.usage
        return {"requests": usage.requests, "failed": usage.failed, "last_request_at": usage.last_at}
