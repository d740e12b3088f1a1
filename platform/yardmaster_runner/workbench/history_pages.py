"""Spark's history server below the path that a session has: an application (WSGI) that asks it, and answers."""

from __future__ import annotations

import http.client
from typing import Any, Callable, Dict, Iterable, List, Tuple
from urllib.parse import quote, urlsplit

Start = Callable[..., Any]
TIME = 60.0
"""Seconds in which it answers: it reads a log when its application is first looked at."""
MOST_ANSWER = 64 << 20
"""Bytes of an answer. Whole event logs may be larger; they are outputs of the job."""
_OWN = frozenset(("connection", "content-length", "date", "keep-alive", "server", "transfer-encoding"))
_PASSED = ("HTTP_ACCEPT", "HTTP_ACCEPT_LANGUAGE", "HTTP_IF_MODIFIED_SINCE", "HTTP_IF_NONE_MATCH")


class HistoryPages:
    """`prefix` is the path of the session, without a slash at its end."""

    def __init__(self, port: int, prefix: str) -> None:
        self._port, self._prefix = port, prefix

    def __call__(self, environment: Dict[str, Any], start: Start) -> Iterable[bytes]:
        if environment["REQUEST_METHOD"] not in ("GET", "HEAD"):
            return _refused(start, "405 Method Not Allowed", "The history is read-only.")
        path = str(environment["PATH_INFO"])
        if not path.startswith(self._prefix + "/"):
            return _refused(start, "404 Not Found", "This page does not exist.")
        try:
            return self._passed_on(environment, path[len(self._prefix) :], start)
        except (OSError, http.client.HTTPException) as error:
            return _refused(start, "502 Bad Gateway", "Spark's history server does not answer: %s." % error)

    def _passed_on(self, environment: Dict[str, Any], path: str, start: Start) -> Iterable[bytes]:
        """Raises `OSError` and `HTTPException`."""
        query = str(environment.get("QUERY_STRING") or "")
        target = quote(path.encode("latin-1"), safe="/:;=@,+&!$'()*~") + ("?" + query if query else "")
        headers = {one[5:].replace("_", "-").title(): str(environment[one]) for one in _PASSED if one in environment}
        connection = http.client.HTTPConnection("127.0.0.1", self._port, timeout=TIME)
        try:
            connection.request(str(environment["REQUEST_METHOD"]), target, headers=headers)
            answer = connection.getresponse()
            content = answer.read(MOST_ANSWER + 1)
            if len(content) > MOST_ANSWER:
                words = "The response is larger than %d MiB. Download the event log from the outputs of its job." % (
                    MOST_ANSWER >> 20
                )
                return _refused(start, "413 Content Too Large", words)
            start("%d %s" % (answer.status, answer.reason), [self._header(*one) for one in _kept(answer)])
            return [content]
        finally:
            connection.close()

    def _header(self, name: str, value: str) -> Tuple[str, str]:
        """A redirect of Spark names its own address, with or without the session's path."""
        if name.lower() != "location":
            return name, value
        parts = urlsplit(value)
        path = parts.path if parts.path.startswith(self._prefix + "/") else self._prefix + (parts.path or "/")
        return name, path + ("?" + parts.query if parts.query else "")


def _kept(answer: http.client.HTTPResponse) -> List[Tuple[str, str]]:
    return [(name, value) for name, value in answer.getheaders() if name.lower() not in _OWN]


def _refused(start: Start, status: str, message: str) -> Iterable[bytes]:
    start(status, [("Content-Type", "text/plain; charset=utf-8")])
    return [message.encode()]
