"""Middleware for measurements: each answer says in `X-Statements` how many statements the database was sent for it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from django.db import connection
from django.http import HttpRequest, HttpResponse

STATEMENTS = "X-Statements"
_ENDS = ("BEGIN", "COMMIT", "SAVEPOINT", "RELEASE", "ROLLBACK", "SET TRANSACTION")
"""The ends of a transaction: they ask for no rows."""


class CountStatements:
    """Outermost, so that what other middleware asks is counted too. Of an answer that is sent piece by piece, what is
    asked for its pieces is not."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponse]) -> None:
        self._get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        count = 0

        def counted(execute: Callable[..., Any], sql: str, params: Any, many: bool, context: Any) -> Any:
            nonlocal count
            count += not sql.startswith(_ENDS)
            return execute(sql, params, many, context)

        with connection.execute_wrapper(counted):
            answer = self._get_response(request)
        answer[STATEMENTS] = str(count)
        return answer
