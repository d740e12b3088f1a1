"""One message to a real receiver: the address that was checked, TLS, and bounds of time and size."""

from __future__ import annotations

import socket
import ssl
import threading

import pytest

from tests.real.receiver import CERTIFICATE, receiver_on
from yardmaster.outgoing.posting import MOST_KEPT, NotSent, post
from yardmaster.outgoing.targets import Policy, Target, policy_of

INSIDE = policy_of(["127.0.0.0/8"], allow_http=True)
HEADERS = {"Content-Type": "application/json"}


def to(port: int, host: str = "hooks.test", scheme: str = "http") -> Target:
    return Target(scheme, host, port, "/hook")


def here(*_: object) -> list[str]:
    return ["127.0.0.1"]


def test_a_message_arrives_and_its_answer_is_read() -> None:
    with receiver_on() as receiver:
        receiver.status, receiver.headers = 429, {"Retry-After": "7"}
        reply = post(to(receiver.port), b"{}", HEADERS, INSIDE, resolve=here)
        (got,) = receiver.got
    assert (reply.status, reply.excerpt, reply.retry_after) == (429, "ok", "7")
    assert (got.path, got.body, got.headers["Host"]) == ("/hook", b"{}", f"hooks.test:{receiver.port}")


@pytest.mark.parametrize(
    "address",
    ["127.0.0.1", "10.0.0.1", "169.254.169.254", "100.64.0.1", "::1", "::ffff:127.0.0.1", "64:ff9b::a00:1", "fe80::1%1",
     "fd00:ec2::254", "0.0.0.0"],
)  # fmt: skip
def test_a_name_that_leads_inside_is_refused_before_anything_is_sent(address, monkeypatch) -> None:
    def dial(*_: object, **__: object) -> socket.socket:
        pytest.fail("connected")

    monkeypatch.setattr(socket, "create_connection", dial)
    with pytest.raises(NotSent, match="nothing is sent to"):
        post(to(443, scheme="https"), b"{}", HEADERS, Policy(), resolve=lambda *_: ["8.8.8.8", address])


def test_a_name_that_changes_between_check_and_connection_gains_nothing(monkeypatch) -> None:
    answers, dialed = iter([["8.8.8.8"], ["127.0.0.1"]]), []

    def dial(address: tuple[str, int], timeout: float) -> socket.socket:
        dialed.append(address[0])
        raise ConnectionRefusedError

    monkeypatch.setattr(socket, "create_connection", dial)
    for words in ("accepts no connection", "nothing is sent to"):
        with pytest.raises(NotSent, match=words):
            post(to(443), b"{}", HEADERS, Policy(), resolve=lambda *_: next(answers))
    assert dialed == ["8.8.8.8"]


@pytest.mark.parametrize("place", ["http://127.0.0.1/", "http://169.254.169.254/latest/meta-data/"])
def test_a_redirect_is_an_answer_and_is_not_followed(place: str) -> None:
    with receiver_on() as receiver:
        receiver.status, receiver.headers = 307, {"Location": place}
        assert post(to(receiver.port), b"{}", HEADERS, INSIDE, resolve=here).status == 307
        assert len(receiver.got) == 1


def test_a_receiver_that_sends_byte_by_byte_is_cut_off() -> None:
    policy = policy_of(["127.0.0.0/8"], allow_http=True, seconds=0.3)
    with receiver_on() as receiver:
        receiver.slow = True
        with pytest.raises(NotSent, match=r"did not answer within 0\.3 seconds"):
            post(to(receiver.port), b"{}", HEADERS, policy, resolve=here)


def test_a_receiver_that_never_ends_its_handshake_is_cut_off() -> None:
    policy = policy_of(["127.0.0.0/8"], seconds=0.3)
    with socket.create_server(("127.0.0.1", 0)) as silent, pytest.raises(NotSent, match="did not answer within"):
        post(to(silent.getsockname()[1], scheme="https"), b"{}", HEADERS, policy, resolve=here)


def test_a_look_up_that_never_ends_is_cut_off(monkeypatch) -> None:
    ended = threading.Event()
    policy = policy_of([], seconds=0.2)
    try:
        with pytest.raises(NotSent, match="did not answer within"):
            post(to(443), b"{}", HEADERS, policy, resolve=lambda *_: [str(ended.wait(60))])
    finally:
        ended.set()


def test_of_a_huge_answer_the_beginning_is_kept() -> None:
    with receiver_on() as receiver:
        receiver.answer = b"a\x00" * (8 << 20)
        reply = post(to(receiver.port), b"{}", HEADERS, INSIDE, resolve=here)
    assert reply.status == 200
    assert len(reply.excerpt) == MOST_KEPT
    assert "\x00" not in reply.excerpt


def test_a_huge_head_is_cut_off_after_the_status() -> None:
    with receiver_on() as receiver:
        receiver.headers = {f"X-{number}": "a" * 60_000 for number in range(3)}
        reply = post(to(receiver.port), b"{}", HEADERS, INSIDE, resolve=here)
    assert (reply.status, reply.excerpt) == (200, "")


def test_tls_is_verified_for_the_name_and_the_address_is_pinned() -> None:
    context = ssl.create_default_context(cafile=str(CERTIFICATE))
    with receiver_on(tls=True) as receiver:
        target = to(receiver.port, "store.test", "https")
        assert post(target, b"{}", HEADERS, INSIDE, resolve=here, context=context).status == 200
        with pytest.raises(NotSent, match=r"certificate of store\.test is not valid"):
            post(target, b"{}", HEADERS, INSIDE, resolve=here)
        with pytest.raises(NotSent, match=r"certificate of other\.test is not valid"):
            post(to(receiver.port, "other.test", "https"), b"{}", HEADERS, INSIDE, resolve=here, context=context)


def test_why_nothing_came_back() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
    with pytest.raises(NotSent, match="accepts no connection"):
        post(to(port), b"{}", HEADERS, INSIDE, resolve=here)

    def unknown(*_: object) -> list[str]:
        raise socket.gaierror

    with pytest.raises(NotSent, match=r"name hooks\.test is not known"):
        post(to(port), b"{}", HEADERS, INSIDE, resolve=unknown)
