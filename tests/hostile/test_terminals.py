"""Terminals in a running portal: what is in one, what it does to others, and who is kept out."""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import pty
import select
import struct
import subprocess
import sys
import termios
import threading
import time
from collections.abc import Iterator

import pytest
from websockets.exceptions import ConnectionClosed
from websockets.sync.client import ClientConnection, connect

from tests.hostile.conftest import http
from tests.real.portal import ROOT
from tests.real.scene import Scene, until
from yardmaster_client import Job, Yardmaster
from yardmaster_client.errors import PortalError
from yardmaster_client.shell import Shell

pytestmark = [pytest.mark.slow, pytest.mark.linux]

COUNTS = """
import itertools, os, time
for number in itertools.count():
    print("line", number, flush=True)
    time.sleep(0.1)
"""


@pytest.fixture
def job(attacked: Scene) -> Iterator[Job]:
    one = attacked.launch(COUNTS, environment={"COLOUR": "green"})
    until(lambda: _state(attacked, one) == "running", 90)
    yield one
    attacked.client.jobs.stop(one.id)
    attacked.settled(one)


def _state(scene: Scene, job: Job) -> str:
    return str(next(iter(scene.client.jobs.tasks(job.id)))["state"])


class Typed:
    """A terminal that was opened by the SDK."""

    def __init__(self, shell: Shell) -> None:
        self.shell = shell
        self._output = shell.output()
        shell.wait_until_open()

    def until(self, text: str) -> str:
        found = bytearray()
        for printed in self._output:
            found += printed
            if text.encode() in found[-20_000:]:
                return found.decode(errors="replace")
        raise AssertionError(f"{text} was not printed before it ended: {self.shell.why}; {found[-500:]!r}")

    def run(self, command: str) -> str:
        self.shell.send(f"{command}; echo do''ne\n".encode())
        return self.until("done\r\n")


@contextlib.contextmanager
def terminal(client: Yardmaster, job: Job) -> Iterator[Typed]:
    with client.jobs.shell(job.id, "worker-0") as shell:
        yield Typed(shell)


def test_it_is_in_the_task_without_its_token_and_listens_on_loopback_alone(attacked: Scene, job: Job):
    with terminal(attacked.client, job) as one:
        said = one.run("env; pwd")
        assert "COLOUR=green" in said
        assert "/tasks/worker-0/work/code" in said
        assert "ymt." not in said
        assert "YARDMASTER_TOKEN_FILE" not in said
        serves = "import socket; one = socket.socket(); one.bind(('0.0.0.0', 0)); print(one.getsockname()[0])"
        assert "127.0.0.1" in one.run(f'python3 -c "{serves}"')
        mine = [row.pid for row in attacked.processes_of(job)]
        pid = int(one.run("echo pid=$$=").split("pid=")[-1].split("=")[0])
        assert pid in mine, "the engine finds it among the processes of the run"


def test_it_opens_within_seconds_of_the_wish(attacked: Scene, job: Job):
    took = []
    for _ in range(3):
        begun = time.monotonic()
        with terminal(attacked.client, job):
            took.append(time.monotonic() - begun)
        print("a terminal opened after", round(took[-1], 2), "s")
    assert min(took) < 2.5, "less than a runner waits that was not nudged"


def test_output_without_end_disturbs_neither_the_log_nor_the_portal(attacked: Scene, job: Job):
    with terminal(attacked.client, job) as one:
        one.shell.send(b"yes\n")
        one.until("y\r\ny\r\n")
        before = len(attacked.lines(job))
        time.sleep(3)  # no one reads: `yes` is held up
        assert attacked.client.jobs.get(job.id).phase == "RUNNING"
        until(lambda: len(attacked.lines(job)) > before + 20, 60, "the log to continue")
        one.shell.send(b"\x03")
        one.run("true")


def test_sign_out_ends_it(attacked: Scene, job: Job):
    token = attacked.portal.token_of("admin")
    with terminal(Yardmaster(attacked.portal.url, token), job) as one:
        with http(attacked.portal.url, token) as client:
            assert client.delete("/api/v1/tokens/current/").status_code == 204
        with pytest.raises(PortalError) as ended:
            one.until("never")
    assert ended.value.status == 401


def test_it_ends_with_the_task_and_leaves_nothing(attacked: Scene, job: Job):
    with terminal(attacked.client, job) as one:
        one.run("(setsid sleep 3111 &) ; sleep 0.2")
        attacked.client.jobs.stop(job.id)
        with pytest.raises(AssertionError, match="has ended"):
            one.until("never")
    attacked.settled(job)
    assert attacked.processes_of(job) == []
    kinds = [one["kind"] for one in attacked.client.jobs.events(job.id)]
    assert kinds.count("shell_open") == kinds.count("shell_end") == 1


def test_a_stranger_finds_nothing(attacked: Scene, job: Job):
    other = Yardmaster(attacked.portal.url, attacked.portal.token_of("mallory"))
    with pytest.raises(PortalError) as refused, terminal(other, job):
        pass
    assert refused.value.status == 404
    assert attacked.ask("SELECT COUNT(*) FROM jobs_taskshell WHERE job_id = ?", job.id.replace("-", ""))[0][0] == 0


def _pour(flood: ClientConnection) -> None:
    for _ in range(10_000):
        flood.send(b"x" * 16_000)


def test_a_user_who_floods_is_cut_off_alone(attacked: Scene, job: Job):
    address = f"{attacked.portal.url.replace('http', 'ws', 1)}/ws/jobs/{job.id}/tasks/worker-0/shell/"
    with terminal(attacked.client, job) as one:
        header = {"Authorization": f"Bearer {attacked.token}"}
        with connect(address, additional_headers=header, compression=None) as flood:
            while json.loads(flood.recv()).get("state") != "open":
                pass
            with pytest.raises(ConnectionClosed) as closed:
                _pour(flood)
        assert closed.value.rcvd is not None
        assert closed.value.rcvd.code in (4400, 1009)
        one.run("true")


def test_the_command_line_shows_it_in_a_terminal(attacked: Scene, job: Job):
    told = {**attacked.portal.environment, "YARDMASTER_URL": attacked.portal.url, "YARDMASTER_TOKEN": attacked.token}
    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 40, 120, 0, 0))
    command = [sys.executable, "-m", "yardmaster_client", "jobs", "shell", job.id]
    process = subprocess.Popen(command, stdin=theirs, stdout=theirs, stderr=theirs, env=told, cwd=ROOT)
    os.close(theirs)
    shown = bytearray()

    def see(text: bytes) -> None:
        deadline = time.monotonic() + 60
        while text not in shown:
            assert time.monotonic() < deadline, bytes(shown)
            if select.select([ours], [], [], 0.2)[0]:
                with contextlib.suppress(OSError):
                    shown.extend(os.read(ours, 4096))

    see(b"Connected")
    see(b"code")
    os.write(ours, b"while stty size; do sleep 0.2; done\r")  # nothing is typed that the client would wake up for
    see(b"40 120")
    fcntl.ioctl(ours, termios.TIOCSWINSZ, struct.pack("HHHH", 20, 90, 0, 0))
    process.send_signal(28)  # SIGWINCH, which a session of our own would get from the kernel
    see(b"20 90")
    os.write(ours, b"\x03\r~.")
    see(b"It was closed.")
    reaper = threading.Thread(target=process.wait)
    reaper.start()
    reaper.join(30)
    assert process.returncode == 0
    os.close(ours)


@pytest.mark.long
def test_one_command_runs_in_a_script_with_pipes_and_its_exit_code(attacked: Scene, job: Job):
    told = {**attacked.portal.environment, "YARDMASTER_URL": attacked.portal.url, "YARDMASTER_TOKEN": attacked.token}
    command = [sys.executable, "-m", "yardmaster_client", "jobs", "shell", job.id]

    def run(*arguments: str, given: bytes = b"") -> subprocess.CompletedProcess[bytes]:
        whole = [*command, *arguments]
        return subprocess.run(whole, input=given, capture_output=True, env=told, cwd=ROOT, timeout=100, check=False)

    many = bytes(range(256)) * 4000
    done = run("--", "sh", "-c", "cat; echo -n $COLOUR >&2; exit 7", given=many)
    assert (done.returncode, done.stderr, len(done.stdout), done.stdout == many) == (7, b"green", len(many), True)
    assert run("worker-0", "--", "printf", "%s|", "-l", "*").stdout == b"-l|*|"
    refused = run("worker-7", "--", "true")
    assert (refused.returncode, b"no task worker-7" in refused.stderr) == (1, True)
    assert run("--").returncode == 2
    assert b"needs a keyboard" in run().stderr
    piped = f"{' '.join(command)} -- yes | head -n 1; echo $?"
    head = subprocess.run(["sh", "-c", piped], capture_output=True, env=told, cwd=ROOT, timeout=100, check=True)
    assert head.stdout == b"y\n0\n"

    def kinds() -> list[str]:
        return [one["kind"] for one in attacked.client.jobs.events(job.id)]

    # The portal hears of its end while `head` returns. By its pings alone it would do so after 20 s or more.
    until(lambda: kinds().count("shell_end") == 3, 15, "the end of the last one")
    assert kinds().count("shell_open") == kinds().count("shell_end") == 3


@pytest.mark.long
def test_a_failed_task_is_held_until_it_is_released_or_stopped(attacked: Scene):
    job = attacked.launch("print('so far', flush=True)\nraise SystemExit(3)\n", hold_failed=600, retries=0)
    until(lambda: _state(attacked, job) == "held", 90)
    with terminal(attacked.client, job) as one:
        one.run("ls; echo kept > note")
        attacked.client.jobs.release(job.id, "worker-0")
        with pytest.raises(AssertionError, match="exit code 3"):
            one.until("never")
    ended = attacked.settled(job)
    assert (ended.phase, ended.reason) == ("FAILED", "ScriptFailed")
    stopped = attacked.launch("raise SystemExit(3)\n", hold_failed=600, retries=0)
    until(lambda: _state(attacked, stopped) == "held", 90)
    attacked.client.jobs.stop(stopped.id)
    assert attacked.settled(stopped).phase == "STOPPED"
