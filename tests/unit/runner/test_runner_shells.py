"""A runner's WebSocket client against a real server, and a shell in a real terminal behind it."""

from __future__ import annotations

import contextlib
import json
import os
import select
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from websockets.exceptions import ConnectionClosed
from websockets.sync.server import Server, ServerConnection, serve

from yardmaster_runner import shells as shells_module
from yardmaster_runner.processes import descendants
from yardmaster_runner.settings import read_settings
from yardmaster_runner.shell_protocol import WINDOW, amount_read, command_in, cost, ends_input, is_size, read_json
from yardmaster_runner.shells import Shells
from yardmaster_runner.websocket import Closed, WebSocket, connect

pytestmark = pytest.mark.linux
PATIENCE = 20.0
TOKEN = "ymt.secret"
PATIENT = shells_module.PROGRAM.replace(
    "from ", "from yardmaster_runner import shell_host; shell_host.LAST_WORDS *= 6; from ", 1
)
"""A host that waits longer for a portal which still sends what is not read."""


@contextlib.contextmanager
def serving(handle: Callable[[ServerConnection], None]) -> Iterator[str]:
    """The http address of a WebSocket server."""
    with serve(handle, "127.0.0.1", 0, compression=None, max_size=1 << 22) as server:
        thread = threading.Thread(target=server.serve_forever, daemon=True)
        thread.start()
        yield _address(server)
        server.shutdown()
        thread.join()


def _address(server: Server) -> str:
    return f"http://127.0.0.1:{server.socket.getsockname()[1]}"


def received(socket: WebSocket, count: int) -> list[Any]:
    found: list[Any] = []
    while len(found) < count:
        writers = [socket] if socket.unsent else []
        assert any(select.select([socket], writers, [], PATIENCE)), found
        found += socket.receive()
        socket.flush()
    return found


@pytest.mark.parametrize("size", [0, 1, 125, 126, 65_535, 65_536, 900_000])
def test_messages_of_every_length_come_back_as_they_were_sent(size):
    def echo(connection: ServerConnection) -> None:
        for message in connection:
            connection.send(message)

    with serving(echo) as address:
        socket = connect(address + "/a?b=c", {}, PATIENCE)
        sent = bytes(number % 251 for number in range(size))
        socket.send(sent)
        socket.send("ünï" * (size // 8))
        assert received(socket, 2) == [sent, "ünï" * (size // 8)]
        socket.close()


def test_fragments_are_joined_and_pings_are_answered():
    heard: list[float] = []

    def handle(connection: ServerConnection) -> None:
        pong = connection.ping()
        connection.send([b"one ", b"two ", b"three"])
        pong.wait(PATIENCE)
        heard.append(1)
        connection.recv()

    with serving(handle) as address:
        socket = connect(address, {"Authorization": "Bearer x"}, PATIENCE)
        assert received(socket, 1) == [b"one two three"]
        socket.flush()
        deadline = time.monotonic() + PATIENCE
        while not heard and time.monotonic() < deadline:
            select.select([socket], [], [], 0.05)
            with contextlib.suppress(Closed):
                socket.receive()
                socket.flush()
        assert heard
        socket.close()


def test_a_message_without_end_ends_the_connection():
    def handle(connection: ServerConnection) -> None:
        with contextlib.suppress(ConnectionClosed):
            connection.send(b"x" * (1 << 20) + b"more")
            connection.recv()

    with serving(handle) as address:
        socket = connect(address, {}, PATIENCE)
        with pytest.raises(Closed):
            received(socket, 1)
        socket.close()


def test_an_address_that_is_none_of_ours_is_said(tmp_path):
    with pytest.raises(Closed, match="http"):
        connect("ftp://127.0.0.1/", {}, PATIENCE)
    with pytest.raises(Closed, match=r"127\.0\.0\.1:1"):
        connect("http://127.0.0.1:1/", {}, PATIENCE)


class Portal:
    """The other side of one terminal."""

    def __init__(self, connection: ServerConnection) -> None:
        self.connection = connection
        self.path = connection.request.path
        self.token = connection.request.headers["Authorization"]
        self.printed = bytearray()
        self.ended: dict[str, Any] = {}
        self.read_there = 0

    def type(self, text: str) -> None:
        self.connection.send(text.encode())

    def take(self, timeout: float = PATIENCE, *, says_read: bool = True) -> None:
        message = self.connection.recv(timeout=timeout)
        if isinstance(message, bytes):
            self.printed += message
            if says_read:
                with contextlib.suppress(ConnectionClosed):  # what was said before is still to be read
                    self.connection.send(json.dumps({"read": cost(message)}))
        else:
            value = read_json(message)
            self.read_there += amount_read(value)
            self.ended = value if "ended" in value else self.ended

    def until(self, text: str) -> str:
        """What was printed up to here."""
        while text.encode() not in self.printed:
            try:
                self.take()
            except TimeoutError:
                raise AssertionError(f"{text} was not printed: {self.printed!r}") from None
        found = self.printed.decode(errors="replace")
        self.printed.clear()
        return found

    def until_silent(self, silence: float, *, at_least: int) -> int:
        """Read, and do not say so, until nothing comes for so many seconds: how many bytes were printed. The silence
        counts once `at_least` are there, however slow the machine is. Raises `TimeoutError` where they never come."""
        while len(self.printed) < at_least:
            self.take(says_read=False)
        with contextlib.suppress(TimeoutError):
            while True:
                self.take(timeout=silence, says_read=False)
        return len(self.printed)

    def until_ended(self) -> dict[str, Any]:
        with contextlib.suppress(ConnectionClosed):
            while True:
                self.take()
        return self.ended


@pytest.fixture
def opened(tmp_path) -> Iterator[Callable[[Callable[[Portal], None]], Shells]]:
    """Start shells of a task, whose portal is this function."""
    with contextlib.ExitStack() as stack:

        def start(handle: Callable[[Portal], None]) -> Shells:
            trouble: list[BaseException] = []

            def serve_one(connection: ServerConnection) -> None:
                try:
                    handle(Portal(connection))
                except BaseException as error:
                    trouble.append(error)
                    raise

            address = stack.enter_context(serving(serve_one))
            shells = shells_of(tmp_path, address)
            shells.trouble = trouble  # type: ignore[attr-defined]
            stack.callback(shells.close, "the test is over")
            return shells

        yield start


def shells_of(folder: Path, address: str) -> Shells:
    (folder / "token").write_text(TOKEN)
    told = {
        "YARDMASTER_URL": address, "YARDMASTER_TOKEN_FILE": str(folder / "token"), "YARDMASTER_ROLE": "worker",
        "YARDMASTER_INDEX": "3", "YARDMASTER_WORK_DIR": str(folder),
    }  # fmt: skip
    inherited = {"PATH": os.environ["PATH"], "YARDMASTER_TOKEN_FILE": str(folder / "token")}
    shells = Shells(replace(read_settings(told), loopback_only=False), lambda: TOKEN, inherited)
    shells.begin({"PATH": os.environ["PATH"], "COLOUR": "green", "PS1": "$ ", "HOME": str(folder)}, str(folder), None)
    return shells


def wait_for(condition: Callable[[], Any]) -> None:
    deadline = time.monotonic() + 3 * PATIENCE
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.02)


def run(opened: Any, talk: Callable[[Portal], None], *names: str, commands: tuple[str, ...] = ()) -> Shells:
    """Open terminals, and have each talked with to its end."""
    done: list[str] = []

    def handle(portal: Portal) -> None:
        talk(portal)
        done.append(portal.path)

    shells = opened(handle)
    shells.open(names or ("a",), commands)
    wait_for(lambda: len(done) == len(names or ("a",)) or shells.trouble)
    assert not shells.trouble
    return shells


def test_a_shell_has_the_scripts_environment_and_folder_and_not_the_token(opened, tmp_path):
    def talk(portal: Portal) -> None:
        assert portal.token == f"Bearer {TOKEN}"
        assert portal.path == "/ws/task/shells/a/?role=worker&index=3"
        portal.type("env; pwd; cat /proc/$PPID/environ /proc/$PPID/cmdline | tr '\\0' ' '; echo do''ne\n")
        said = portal.until("done")
        assert "COLOUR=green" in said
        assert str(tmp_path) in said
        assert TOKEN not in said
        assert "YARDMASTER_TOKEN_FILE" not in said.split("PATH=")[1]
        portal.type("exit 7\n")
        assert portal.until_ended() == {"ended": "The shell has ended.", "exit_code": 7}

    run(opened, talk)


def test_it_is_a_terminal_of_the_size_that_is_said(opened):
    def talk(portal: Portal) -> None:
        portal.connection.send(json.dumps({"rows": 33, "columns": 101}))
        portal.type("test -t 0 && stty size\n")
        portal.until("33 101")
        assert portal.read_there > 0, "what was typed is acknowledged"
        portal.type("sleep 4713\n")
        wait_for(sleepers)
        portal.connection.send(b"\x03")  # Ctrl-C, from the terminal's own line discipline
        portal.type("echo $?''!\n")
        portal.until("130!")

    run(opened, talk)


def test_output_that_no_one_reads_is_not_made(opened):
    def talk(portal: Portal) -> None:
        portal.type("yes\n")
        portal.until("y\r\ny\r\n")
        assert portal.until_silent(2.0, at_least=WINDOW // 4) < 2 * WINDOW
        portal.connection.send(json.dumps({"read": WINDOW}))
        portal.connection.send(b"\x03")
        portal.take()

    run(opened, talk)


def test_what_was_started_ends_with_the_shell(opened):
    def talk(portal: Portal) -> None:
        portal.type("setsid sleep 4711 & nohup sleep 4712 & sleep 0.3; echo up''\n")
        portal.until("up")
        wait_for(lambda: len(sleepers()) == 2)
        portal.connection.close()

    run(opened, talk)
    wait_for(lambda: not sleepers())


def sleepers() -> list[int]:
    found = []
    for one in descendants(os.getpid()):
        with contextlib.suppress(OSError):
            if b"sleep\x00471" in Path(f"/proc/{one.pid}/cmdline").read_bytes():
                found.append(one.pid)
    return found


def test_a_task_that_ends_says_why_and_opens_no_more(opened, monkeypatch):
    monkeypatch.setattr(shells_module, "END_PATIENCE", 30.0)  # the last words have half of it
    ended: list[dict[str, Any]] = []

    def handle(portal: Portal) -> None:
        portal.type("echo up''\n")
        portal.until("up")
        ended.append({})
        ended.append(portal.until_ended())

    shells = opened(handle)
    shells.open(["a"])
    wait_for(lambda: ended)
    shells.close("The task has ended (exit code 1).")
    wait_for(lambda: len(ended) == 2)
    assert ended[1] == {"ended": "The task has ended (exit code 1).", "exit_code": None}
    shells.open(["b"])
    assert not shells.is_alive()


def test_two_are_open_at_a_time_and_each_id_once(opened):
    opened_paths: list[str] = []
    gate = threading.Event()

    def handle(portal: Portal) -> None:
        opened_paths.append(portal.path)
        gate.wait(PATIENCE)

    shells = opened(handle)
    shells.open(["a", "b", "c"])
    wait_for(lambda: len(opened_paths) == 2)
    shells.open(["a", "b", "c"])
    time.sleep(0.5)
    assert len(opened_paths) == 2
    gate.set()


def test_it_dies_with_a_runner_that_is_killed(tmp_path):
    paths: list[str] = []

    def handle(connection: ServerConnection) -> None:
        paths.append(connection.request.path)
        with contextlib.suppress(ConnectionClosed):
            while True:
                connection.recv()
        paths.append("closed")

    with serving(handle) as address:
        code = (
            "import sys, time; from pathlib import Path; from tests.unit.runner.test_runner_shells import shells_of;"
            "shells_of(Path(sys.argv[1]), sys.argv[2]).open(['a']); time.sleep(1000)"
        )
        runner = subprocess.Popen([sys.executable, "-c", code, str(tmp_path), address], start_new_session=True)
        wait_for(lambda: paths)
        runner.send_signal(signal.SIGKILL)
        runner.wait()
        wait_for(lambda: "closed" in paths)


def told(portal: Portal, *command: str, given: bytes = b"") -> tuple[bytes, bytes, dict[str, Any]]:
    """Run a command: what it printed on each stream, and how it ended."""
    portal.connection.send(json.dumps({"command": command}))
    with contextlib.suppress(ConnectionClosed):  # a command may end before it has read its input
        for at in range(0, len(given), 16_000):
            portal.connection.send(given[at : at + 16_000])
        portal.connection.send(json.dumps({"input": None}))
    streams = {1: bytearray(), 2: bytearray()}
    with contextlib.suppress(ConnectionClosed):
        while True:
            portal.take()
            if portal.printed:
                streams[portal.printed[0]] += portal.printed[1:]
                portal.printed.clear()
    return bytes(streams[1]), bytes(streams[2]), portal.ended


@pytest.mark.parametrize(
    ("command", "given", "out", "code"),
    [
        (["sh", "-c", "cat; echo bad >&2; exit 7"], b"a\r\x03\x04b", b"a\r\x03\x04b", 7),
        (["sh", "-c", "test -t 0 || echo $COLOUR; kill -9 $$"], b"", b"green\n", 137),
        (["sh", "-c", "head -c 1"], b"x" * 100_000, b"x", 0),
        (["sh", "-c", "yes | head -c 400000"], b"", b"y\n" * 200_000, 0),
        (["printf", "%s|", "*", "a b", "ünï"], b"", "*|a b|ünï|".encode(), 0),
        (["/no/such/command"], b"ignored", b"", 127),
        (["/"], b"", b"", 126),
    ],
    ids=["streams", "signal", "input that is not read", "much", "arguments", "missing", "no program"],
)
def test_a_command_has_pipes_and_its_exit_code(opened, monkeypatch, command, given, out, code):
    monkeypatch.setattr(shells_module, "PROGRAM", PATIENT)
    found: list[Any] = []

    def talk(portal: Portal) -> None:
        assert portal.path == "/ws/task/shells/a/?role=worker&index=3&command=1"
        found.append(told(portal, *command, given=given))

    run(opened, talk, commands=("a",))
    assert found[0][0] == out
    assert found[0][2] == {"ended": "The command has ended.", "exit_code": code}
    if code in (126, 127):
        assert b"cannot be started" in found[0][1]


def test_output_of_a_command_that_no_one_reads_is_not_made_and_it_ends_with_its_connection(opened):
    def talk(portal: Portal) -> None:
        portal.connection.send(json.dumps({"command": ["sh", "-c", "sleep 4711 & trap '' TERM; yes"]}))
        assert portal.until_silent(1.0, at_least=WINDOW // 4) < 2 * WINDOW
        portal.connection.close()

    run(opened, talk, commands=("a",))
    wait_for(lambda: not sleepers())


def test_what_is_said_of_a_command_is_checked():
    assert command_in({"command": ["ls", ""]}) == ["ls", ""]
    for wrong in ([], [""], "ls", ["ls", 1], ["a\0b"], None, {"ls": 1}):
        assert command_in({"command": wrong}) == []
    assert command_in({"command": ["ls"], "more": 1}) == []
    assert ends_input({"input": None})
    assert not ends_input({"input": "x"})


def test_what_is_said_of_the_terminal_is_checked():
    assert is_size({"rows": 24, "columns": 80})
    for wrong in ({"rows": 0, "columns": 80}, {"rows": 24}, {"rows": True, "columns": 1}, {"rows": 1001, "columns": 1}):
        assert not is_size(wrong)
    assert [amount_read({"read": one}) for one in (1, 0, -1, True, "1", 1 << 40)] == [1, 0, 0, 0, 0, 0]
    assert read_json("[" * 100_000) == read_json("[]") == read_json("nonsense") == {}
