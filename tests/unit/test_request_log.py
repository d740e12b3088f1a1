"""A signed address is a right for who reads it, and is not written into the log, also where the request is refused."""

import pytest
from django.conf import settings
from django.http import HttpResponse
from django.test import RequestFactory
from django.utils.module_loading import import_string
from structlog.testing import capture_logs


@pytest.mark.parametrize("status", [200, 403])
def test_a_request_is_logged_without_its_query(status):
    [name] = [one for one in settings.MIDDLEWARE if "RequestMiddleware" in one or "RequestLog" in one]
    answer = import_string(name)(lambda request: HttpResponse(status=status))
    with capture_logs() as lines:
        answer(RequestFactory().get("/storage/objects/a.txt?expires=9&signature=0123abcd"))
    finished = [one for one in lines if one["event"] == "request_finished"]
    assert [one["request"] for one in finished] == ["GET /storage/objects/a.txt"]
    assert "0123abcd" not in repr(lines)
