"""One call to the portal: address, token, JSON in and out, and what each answer means, as typed errors (`answers`).

Not here: which calls there are (`task_api`) and how long to keep trying (each caller's matter).
"""

from __future__ import annotations

import http.client
import json
import uuid
from typing import Any, Dict, Iterator, Mapping, Optional, Set, Tuple
from urllib.parse import urlencode

from yardmaster_runner.answers import PortalAway, PortalRefused, meaning
from yardmaster_runner.http_hosts import Hosts, NetworkTrouble, is_loopback

TIMEOUT = 30.0
LARGEST_ANSWER = 64 << 20


class Portal:
    """The portal's task API as seen by one job. Safe to use from several threads."""

    def __init__(self, url: str, token_file: str, hosts: Optional[Hosts] = None) -> None:
        self.hosts = hosts or Hosts()
        self.is_near = is_loopback(url)
        self._base = url.rstrip("/") + "/api/v1/"
        self._token_file = token_file
        self._token = ""
        self.tokens: Set[str] = set()
        """All that were read so far: what must not be seen in a log."""

    def call(
        self,
        method: str,
        path: str,
        query: Optional[Mapping[str, Any]] = None,
        body: Optional[Mapping[str, Any]] = None,
        raw: Optional[bytes] = None,
        headers: Optional[Mapping[str, str]] = None,
        timeout: float = TIMEOUT,
    ) -> Dict[str, Any]:
        """The JSON object of a 2xx answer. Raises `PortalAway`, `PortalRefused` or `PortalRejected`, nothing else.

        The token file is read again when the token is refused: an engine may have replaced it.
        """
        url = self._base + path + ("?" + urlencode(query) if query else "")
        content = raw if raw is not None else json.dumps(body).encode() if body is not None else None
        sent = {"Accept": "application/json", **(headers or {})}
        if body is not None:
            sent.update({"Content-Type": "application/json", "Idempotency-Key": str(uuid.uuid4())})
        for token in self._tokens():
            answer = self._exchange(method, url, content, {**sent, "Authorization": token}, timeout)
            if answer[0] != 401:
                break
        return meaning(*answer, "%s %s" % (method, path))

    def token(self) -> str:
        """The task's token as it is now. Raises `PortalRefused`."""
        return self._read_token().partition(" ")[2]

    def _tokens(self) -> Iterator[str]:
        if not self._token:
            self._token = self._read_token()
        tried = self._token
        yield tried
        self._token = self._read_token()
        if self._token != tried:
            yield self._token

    def _read_token(self) -> str:
        try:
            with open(self._token_file, encoding="utf-8") as file:
                token = file.read().strip()
        except OSError as error:
            raise PortalRefused("the token file cannot be read: %s" % error) from error
        self.tokens = {*self.tokens, token} - {""}
        return "Bearer " + token

    def _exchange(
        self, method: str, url: str, content: Optional[bytes], headers: Mapping[str, str], timeout: float
    ) -> Tuple[int, str, bytes, str]:
        try:
            response = self.hosts.request(method, url, headers, content, timeout)
            answer = response.read(LARGEST_ANSWER)
            if response.will_close or not response.isclosed():
                self.hosts.forget(url)
            headers_back = response.headers
            return response.status, headers_back.get("Content-Type", ""), answer, headers_back.get("Retry-After", "")
        except NetworkTrouble as error:
            raise PortalAway(str(error)) from error
        except (OSError, http.client.HTTPException) as error:
            self.hosts.forget(url)
            raise PortalAway("the response was interrupted: %s" % (error or type(error).__name__)) from error
