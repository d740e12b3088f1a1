"""Which nodes of clusters a connection may name, and which addresses the portal connects to."""

from __future__ import annotations

import json
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from yardmaster.errors import SpecRejected
from yardmaster.ignite import looking
from yardmaster.ignite.guarded import masked
from yardmaster.ignite.looking import Wanted, look
from yardmaster.ignite.nodes import ignite_policy, nodes_of, policy_from_json, policy_to_json, text_of
from yardmaster.ignite.program import _fitting
from yardmaster.ignite.refusals import NotLooked, problem_of
from yardmaster.sandbox.process import Ended
from yardmaster_runner.data.ignite_reader.errors import IgniteSignInError, IgniteUnavailable

PUBLIC = ignite_policy([], ["10800-10900"])
LOCAL = ignite_policy(["127.0.0.1"], ["1-65535"])


def refused(text: str, policy: object = PUBLIC) -> list[tuple[str, str, str]]:
    with pytest.raises(SpecRejected) as error:
        nodes_of(text, policy)  # type: ignore[arg-type]
    return [(one.field, one.code, one.value) for one in error.value.problems]


def test_hosts_are_kept_in_one_form() -> None:
    nodes = nodes_of(" One.example.org, two.example.org:10801,one.example.org:10800 ", PUBLIC)
    assert nodes == (("one.example.org", 10800), ("two.example.org", 10801))
    assert text_of(nodes) == "one.example.org,two.example.org:10801"
    assert nodes_of(text_of(nodes), PUBLIC) == nodes


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("", "invalid"), ("http://one", "invalid"), ("one two", "invalid"), ("one:port", "invalid"),
        ("0x7f.1", "invalid"), ("1.2.3", "invalid"), ("one:22", "port_not_allowed"), ("one:6379", "port_not_allowed"),
        ("127.0.0.1", "address_not_allowed"), ("169.254.169.254", "address_not_allowed"),
        ("10.0.0.1", "address_not_allowed"), ("::1", "address_not_allowed"), ("0.0.0.0", "address_not_allowed"),
        (",".join(f"h{one}" for one in range(17)), "too_many"), ("a" * 1_001, "too_long"),
    ],
)  # fmt: skip
def test_what_is_no_host_or_not_allowed_is_named(text: str, code: str) -> None:
    assert [(field, said) for field, said, _ in refused(text)] == [("hosts", code)]


def test_an_administrator_allows_hosts_networks_and_ports() -> None:
    policy = ignite_policy(["ignite.internal:9000", "10.1.0.0/16"], ["10800"])
    assert nodes_of("ignite.internal:9000,10.1.2.3", policy)
    assert refused("10.2.0.1", policy) == [("hosts", "address_not_allowed", "10.2.0.1")]
    assert refused("other.internal:9000", policy) == [("hosts", "port_not_allowed", "other.internal:9000")]
    assert policy_from_json(json.loads(json.dumps(policy_to_json(policy)))) == policy
    for word in ("x", "10900-10800", "0", "70000"):
        with pytest.raises(ValueError, match="neither a port"):
            ignite_policy([], [word])


def test_a_refusal_names_the_setting_and_what_to_add() -> None:
    policy = ignite_policy([], ["10800-10802", "11000", "10803"])
    with pytest.raises(SpecRejected) as error:
        nodes_of("127.0.0.1:41299", policy)
    port, address = error.value.problems
    assert port.message == (
        "The portal does not connect to the port 41299: YARDMASTER_IGNITE_PORTS allows 10800-10803,11000."
    )
    assert "add 41299 to YARDMASTER_IGNITE_PORTS, or 127.0.0.1:41299 to YARDMASTER_IGNITE_HOSTS" in port.remedy
    assert "add 127.0.0.1 to YARDMASTER_IGNITE_HOSTS" in address.remedy


def test_a_link_address_is_never_allowed() -> None:
    policy = ignite_policy(["169.254.0.0/16", "169.254.169.254"], ["10800"])
    assert refused("169.254.169.254", policy) == [("hosts", "address_not_allowed", "169.254.169.254")]


def test_a_name_that_leads_inside_is_refused_when_it_is_dialed() -> None:
    with pytest.raises(NotLooked) as error:
        look(Wanted([("localhost", 10800)], {}), PUBLIC)
    assert (error.value.problem.field, error.value.problem.code) == ("hosts", "address_not_allowed")


@contextmanager
def answering(what: bytes) -> Iterator[int]:
    """A server that says this to each client that connects."""
    with socket.create_server(("127.0.0.1", 0)) as server:

        def serve() -> None:
            while True:
                try:
                    connection, _ = server.accept()
                except OSError:
                    return
                with connection:
                    connection.recv(1 << 16)
                    connection.sendall(what)

        threading.Thread(target=serve, daemon=True).start()
        yield server.getsockname()[1]


LET_IN = b"\x07\x00\x00\x00" + b"\x01" + b"\x0c" + bytes(4) + b"\x65"


@pytest.mark.parametrize(
    ("what", "code"),
    [
        (b"HTTP/1.1 400 Bad Request\r\n\r\n", "ignite_certificate"),
        (b"\x02\x00\x00\x00\x01\x0c", "ignite_broken"),
        (LET_IN + b"\xff\xff\xff\x7f" + bytes(10), "ignite_unavailable"),
        (LET_IN, "ignite_unavailable"),
    ],
    ids=["http", "cut", "two gigabytes", "ends"],
)  # fmt: skip
def test_a_server_that_is_no_ignite_is_told_in_words(what: bytes, code: str) -> None:
    with answering(what) as port, pytest.raises(NotLooked) as error:
        look(Wanted([("127.0.0.1", port)], {}), LOCAL)
    problem = error.value.problem
    assert (problem.field in ("hosts", "certificate"), problem.code) == (True, code)
    assert problem.remedy
    assert f"127.0.0.1:{port}" in problem.value


def test_values_of_secrets_are_not_repeated() -> None:
    task = {"secrets": {"username": "ada", "password": "open-sesame"}, "hosts": "one"}
    said = problem_of(IgniteSignInError("it does not let this script in as the user 'ada': ada is wrong."), task)
    assert "ada" not in said.message
    assert said.field == "password"
    assert masked({"caches": [{"name": "x open-sesame y"}]}, task) == {"caches": [{"name": "x [secret] y"}]}


HALF_AND_NUL = [
    {"found": {"caches": [{"preview": [["\ud800", "a\0b"]]}]}},
    {"refused": {"code": "ignite_refused", "message": "\ud800", "value": "a\0b"}},
]


@pytest.mark.parametrize("said", HALF_AND_NUL, ids=["found", "refused"])
def test_no_row_or_message_of_a_server_has_what_no_database_or_page_takes(said: dict, monkeypatch) -> None:
    class Program:
        def run(self, task: bytes, *, seconds: float) -> Ended:
            return Ended(json.dumps(said).encode(), True)

    monkeypatch.setattr(looking, "_PROGRAM", Program())
    try:
        shown = str(look(Wanted([("one", 10800)], {}), PUBLIC))
    except NotLooked as error:
        shown = f"{error.problem.message} {error.problem.value}"
    assert "?" in shown
    assert "a\ufffdb" in shown
    shown.encode()


def test_an_address_that_is_away_keeps_its_reason() -> None:
    task = {"secrets": {}, "hosts": "one"}
    said = problem_of(IgniteUnavailable("No Ignite server can be reached: x. Check host and port, and more."), task)
    assert (said.code, said.message) == ("ignite_unavailable", "No Ignite server can be reached: x.")


def test_what_is_kept_has_a_bound() -> None:
    row = ["y" * 80] * 64
    caches = [
        {"name": str(one), "columns": [{"name": "n" * 20, "type": "t"}] * 64, "preview": [row] * 5, "problem": ""}
        for one in range(100)
    ]
    kept = _fitting({"caches": caches, "count": 100, "notes": []})
    assert len(json.dumps(kept)) <= 512 << 10
    assert kept["caches"][0]["preview"]
    assert not kept["caches"][-1]["preview"]
