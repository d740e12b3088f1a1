"""What is repeated, what is not, and how refusals are told."""

from __future__ import annotations

import socket
from contextlib import closing

import httpx2
import pytest

from tests.unit.client.flaky_server import Cut, FlakyServer, flaky_server
from yardmaster_client.connections import NoAnswer
from yardmaster_client.errors import NotReachable, PortalError
from yardmaster_client.signed import Passing, SignedAddresses
from yardmaster_client.transport import Transport


def test_a_broken_connection_and_a_busy_portal_are_tried_again(server: FlakyServer, transport: Transport) -> None:
    server.answers = [None, (503, {}), (502, b"<html>bad gateway</html>"), (200, {"ok": 1})]
    assert transport.get("me/") == {"ok": 1}
    assert len(server.asked) == 4


def test_a_repeated_post_carries_the_same_key_and_another_one_another(
    server: FlakyServer, transport: Transport
) -> None:
    server.answers = [(503, {}), (200, {}), (200, {})]
    transport.post("jobs/", {})
    transport.post("jobs/", {})
    keys = [asked.headers["idempotency-key"] for asked in server.asked]
    assert keys[0] == keys[1] != keys[2]


def test_a_post_whose_first_try_still_runs_waits_for_its_answer(server: FlakyServer, transport: Transport) -> None:
    server.answers = [None, (409, {"code": "conflict"}), (201, {"id": "1"})]
    assert transport.post("jobs/", {}) == {"id": "1"}


def test_a_conflict_at_once_is_told(server: FlakyServer, transport: Transport) -> None:
    server.answers = [(409, {"code": "quota_full"}), (200, {})]
    with pytest.raises(PortalError):
        transport.post("jobs/", {})
    assert len(server.asked) == 1


def test_a_refusal_has_code_remedy_and_fields(server: FlakyServer, transport: Transport) -> None:
    field = {
        "field": "roles.worker.cpu",
        "code": "too_small",
        "message": "No.",
        "remedy": "More.",
        "value": "0",
        "new": 1,
    }
    server.answers = [(400, {"code": "spec_rejected", "detail": "Bad.", "remedy": "Fix it.", "errors": [field]})]
    with pytest.raises(PortalError) as caught:
        transport.post("jobs/", {})
    error = caught.value
    assert (error.status, error.code, str(error), error.remedy) == (400, "spec_rejected", "Bad.", "Fix it.")
    assert (error.errors[0].field, error.errors[0].remedy) == ("roles.worker.cpu", "More.")


@pytest.mark.parametrize("body", [b"<html>", b"", b"[1]", b"\xff"])
def test_what_a_proxy_answers_is_an_error_and_no_crash(server: FlakyServer, transport: Transport, body: bytes) -> None:
    server.answers = [(500, body)]
    with pytest.raises(PortalError) as caught:
        transport.get("me/")
    assert caught.value.status == 500


def test_a_portal_that_is_not_there_is_not_reachable() -> None:
    with pytest.raises(NotReachable, match="does not answer"):
        Transport("http://127.0.0.1:9", sleep=lambda seconds: None).get("me/")


def test_pages_follow_one_another_at_the_address_by_which_we_reach_the_portal(
    server: FlakyServer, transport: Transport
) -> None:
    server.answers = [
        (200, {"results": [{"n": 1}], "next": "http://portal.invalid/api/v1/jobs/?cursor=abc&page_size=1"}),
        (200, {"results": [{"n": 2}], "next": None}),
    ]
    assert [row["n"] for row in transport.pages("jobs/", page_size=1)] == [1, 2]
    assert server.asked[1].path == "/api/v1/jobs/?cursor=abc&page_size=1"


def test_the_token_goes_to_the_portal_and_not_to_an_object_store(server: FlakyServer, transport: Transport) -> None:
    with flaky_server() as store:
        store.answers = [(200, b"data")]
        server.answers = [(302, f"{store.url}/object?signature=1".encode())]
        got: list[bytes] = []
        transport.download("code-versions/1/files/content/", Passing(got.append), path="a b.py")
        transport.download(f"{store.url}/model?signature=2", Passing(got.append))
        assert b"".join(got) == b"datadata"
        assert ["authorization" in asked.headers for asked in store.asked] == [False, False]
        assert server.asked[0].headers["authorization"] == "Bearer secret"


def test_a_signed_address_of_the_portal_needs_no_token_and_is_not_logged(
    server: FlakyServer, transport: Transport, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("INFO", logger="httpx2")
    server.answers = [(200, b"data"), (200, b"more")]
    got: list[bytes] = []
    transport.download(f"{server.url}/storage/objects/a?signature=1", Passing(lambda piece: got.append(bytes(piece))))
    transport.download(f"{server.url}/api/v1/jobs/1/outputs/content/", Passing(lambda piece: got.append(bytes(piece))))
    assert got == [b"data", b"more"]
    assert ["authorization" in asked.headers for asked in server.asked] == [False, True]
    assert "/outputs/content/" in caplog.text
    assert "signature" not in caplog.text


def test_what_libraries_log_of_a_redirect_and_behind_a_proxy_has_no_signature(
    server: FlakyServer, transport: Transport, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    for name in ("", "httpx2", "httpcore2", "urllib3"):
        caplog.set_level("DEBUG", logger=name)
    with flaky_server() as store:
        store.answers = [(200, b"data"), (200, b"")]
        server.answers = [(302, f"{store.url}/object?X-Amz-Signature=1&X-Amz-Date=2".encode())]
        transport.download("code-versions/1/files/content/", Passing(lambda piece: None), path="a.py")
        monkeypatch.setenv("http_proxy", store.url)
        monkeypatch.setenv("no_proxy", "")
        with closing(Transport("http://portal.example")) as behind:
            behind.put_part("http://store.example/object?expires=1&signature=2", b"data", {})
        assert [one.path.rpartition("=")[2] for one in store.asked] == ["2", "2"]
    assert "/files/content/" in caplog.text
    assert "/object?…" in caplog.text
    assert '"PUT http://store.example/object?… ' in caplog.text, "the libraries have written nothing"
    assert "ignature" not in caplog.text


def test_a_download_that_is_interrupted_continues_where_it_stopped(server: FlakyServer, transport: Transport) -> None:
    with flaky_server() as store:
        store.answers = [
            (200, Cut(b"0123456789", 4)),
            (503, b"SlowDown"),
            None,
            (206, Cut(b"456789", 3)),
            (206, b"789"),
        ]
        got: list[bytes] = []
        target = Passing(got.append)
        transport.read_signed(f"{store.url}/object?signature=1", target)
        assert target.size == 10
        assert b"".join(got) == b"0123456789"
        ranges = [asked.headers.get("range") for asked in store.asked]
        assert ranges == [None, "bytes=4-", "bytes=4-", "bytes=4-", "bytes=7-"]


def test_a_download_that_never_continues_is_an_error_without_its_signature(
    server: FlakyServer, transport: Transport
) -> None:
    with flaky_server() as store:
        store.answers = [(200, Cut(b"0123456789", 4)), None]
        with pytest.raises(NotReachable) as caught:
            transport.read_signed(f"{store.url}/object?signature=1", Passing(lambda data: None))
        assert store.url in str(caught.value)
        assert "signature" not in str(caught.value)
        assert len(store.asked) <= 10


def test_a_server_that_does_not_continue_in_the_middle_gives_no_mixed_file(
    server: FlakyServer, transport: Transport
) -> None:
    with flaky_server() as store:
        store.answers = [(200, Cut(b"0123456789", 4)), (200, b"abcdefghij")]
        got: list[bytes] = []
        with pytest.raises(NotReachable, match="does not continue"):
            transport.read_signed(f"{store.url}/object?signature=1", Passing(got.append))
        assert b"".join(got) == b"0123"


@pytest.mark.parametrize(("given", "first"), [("one", '"one"'), ("", None)])
def test_a_download_continues_in_the_same_object_only(transport: Transport, given: str, first: str | None) -> None:
    with flaky_server() as store:
        store.headers = {"ETag": '"one"'}
        store.answers = [(200, Cut(b"0123456789", 4)), (412, b"")]
        with pytest.raises(PortalError) as caught:
            transport.read_signed(f"{store.url}/object?signature=1", Passing(lambda data: None), given)
        assert caught.value.code == "changed"
        assert [asked.headers.get("if-match") for asked in store.asked] == [first, '"one"']


def test_an_object_with_another_etag_is_refused_also_where_the_server_ignores_the_condition(
    transport: Transport,
) -> None:
    with flaky_server() as store:
        store.headers, store.answers = {"ETag": '"two"'}, [(200, b"other")]
        got: list[bytes] = []
        with pytest.raises(PortalError) as caught:
            transport.read_signed(f"{store.url}/object?signature=1", Passing(got.append), "one")
        assert (caught.value.code, got) == ("changed", [])


def test_other_bytes_than_those_asked_for_are_not_taken(transport: Transport) -> None:
    with flaky_server() as store:
        store.headers = {"Content-Range": "bytes 2-9/10"}
        store.answers = [(200, Cut(b"0123456789", 4)), (206, b"23456789")]
        with pytest.raises(NotReachable, match="does not continue"):
            transport.read_signed(f"{store.url}/object?signature=1", Passing(lambda data: None))


def test_a_store_that_stalls_is_not_waited_for_without_end() -> None:
    with socket.create_server(("127.0.0.1", 0)) as stalled:
        url = f"http://127.0.0.1:{stalled.getsockname()[1]}/object?signature=1"
        for call in (
            lambda: SignedAddresses(0.05).get(url, Passing(lambda data: None)),
            lambda: SignedAddresses(0.05).put(url, b"data", {}),
        ):
            with pytest.raises(NoAnswer, match="timed out"):
                call()


def test_connections_to_a_store_are_kept(server: FlakyServer, transport: Transport) -> None:
    server.answers = [(200, b"data")]
    for _ in range(3):
        transport.read_signed(f"{server.url}/object?signature=1", Passing(lambda data: None))
        transport.put_part(f"{server.url}/part?signature=1", b"data", {})
    assert len({asked.peer for asked in server.asked}) == 1


def test_a_refused_download_says_why(server: FlakyServer, transport: Transport) -> None:
    server.answers = [(404, {"code": "not_found", "detail": "There is no such file."})]
    with pytest.raises(PortalError, match="no such file"):
        transport.download("code-versions/1/files/content/", Passing(lambda data: None))


@pytest.mark.parametrize(
    ("asked_for", "tries", "least"), [("7", 2, 7.0), ("60", 2, 60.0), ("soon", 2, 0.0), ("61", 1, None)]
)
def test_a_portal_that_asks_to_wait_is_asked_again_after_that(
    monkeypatch: pytest.MonkeyPatch, asked_for: str, tries: int, least: float | None
) -> None:
    answers = [httpx2.Response(429, headers={"Retry-After": asked_for}), httpx2.Response(200, json={"ok": 1})]
    given: list[httpx2.Response] = []
    paused: list[float] = []
    transport = Transport("http://portal.invalid", sleep=paused.append)

    def request(*_: object, **__: object) -> httpx2.Response:
        given.append(answers[len(given)])
        return given[-1]

    monkeypatch.setattr(transport._client, "request", request)
    if least is None:
        with pytest.raises(PortalError):
            transport.get("me/")
    else:
        assert transport.get("me/") == {"ok": 1}
        assert paused[0] >= least
    assert len(given) == tries


@pytest.mark.parametrize(
    ("work_dir", "own", "said"), [("/work", True, "tasks"), ("/work", False, None), ("", True, None)]
)
def test_a_program_in_a_task_says_so_to_its_own_portal_alone(
    server: FlakyServer, monkeypatch: pytest.MonkeyPatch, work_dir: str, own: bool, said: str | None
) -> None:
    if work_dir:
        monkeypatch.setenv("YARDMASTER_WORK_DIR", work_dir)
    monkeypatch.setenv("YARDMASTER_URL", f"{server.url}/" if own else "https://portal.example")
    server.answers = [(200, {})]
    with closing(Transport(server.url, "secret")) as transport:
        transport.get("me/")
    assert server.asked[0].headers.get("yardmaster-audience") == said
