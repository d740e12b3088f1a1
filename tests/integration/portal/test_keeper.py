"""The processes of a portal are kept alive, stopped together, and leave nothing behind."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import psutil
import pytest

from portal.up import home as portal_home
from portal.up.keeper import Keeper
from portal.up.processes import Address, Process, environment
from portal.up.start import CouldNotStart, _require_free

ROOT = Path(__file__).resolve().parents[3]
SLEEPER = (sys.executable, "-c", "import time; time.sleep(60)")
STUBBORN = (
    sys.executable,
    "-c",
    "import signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN); print('deaf', flush=True); time.sleep(60)",
)


@pytest.fixture
def keeper(tmp_path):
    portal_home.prepare(tmp_path)
    one = Keeper(tmp_path, ROOT, dict(os.environ), print)
    yield one
    one.stop()


def pid_of(keeper: Keeper, name: str) -> int:
    rows = json.loads((keeper.home / "run" / "processes.json").read_text())
    return next(row["pid"] for row in rows if row["name"] == name)


def wait_until(condition, seconds=60.0):
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, "it did not happen in time"
        time.sleep(0.02)


def is_gone(pid: int) -> bool:
    try:
        return psutil.Process(pid).status() == psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return True


def test_a_killed_process_is_started_again(keeper):
    keeper.start([Process("one", SLEEPER)])
    first = pid_of(keeper, "one")
    os.kill(first, signal.SIGKILL)
    wait_until(lambda: keeper.mend() or pid_of(keeper, "one") != first)
    assert keeper.is_alive("one")


def test_a_process_that_keeps_dying_is_started_ever_more_slowly(keeper):
    keeper.start([Process("broken", (sys.executable, "-c", "import sys; sys.exit(3)"))])
    said: list[str] = []
    keeper.say = said.append
    wait_until(lambda: keeper.mend() or len(said) >= 2)
    assert "broken ended with 3; again in 0.2 s" in said[0]
    assert "again in 1 s" in said[1]


def test_stop_ends_also_what_ignores_sigterm(keeper):
    keeper.start([Process("deaf", STUBBORN, grace=0.3)])
    pid = pid_of(keeper, "deaf")
    wait_until(lambda: "deaf" in keeper.log_of("deaf").read_text())
    keeper.stop()
    assert is_gone(pid)


def test_stop_ends_the_children_of_a_process_too(keeper):
    code = "import subprocess, sys, time; print(subprocess.Popen(['sleep', '60']).pid, flush=True); time.sleep(60)"
    keeper.start([Process("parent", (sys.executable, "-c", code))])
    wait_until(lambda: keeper.log_of("parent").read_text().strip())
    grandchild = int(keeper.log_of("parent").read_text())
    keeper.stop()
    wait_until(lambda: is_gone(grandchild))


def test_what_a_killed_keeper_left_is_ended_by_the_next(tmp_path):
    portal_home.prepare(tmp_path)
    leftover = subprocess.Popen(STUBBORN, stdout=subprocess.PIPE, start_new_session=True)
    leftover.stdout.readline()
    row = {"pid": leftover.pid, "started": psutil.Process(leftover.pid).create_time(), "name": "web"}
    (tmp_path / "run" / "processes.json").write_text(json.dumps([row]))
    Keeper(tmp_path, ROOT, dict(os.environ), print).end_leftovers()
    assert leftover.wait(5) in (-signal.SIGTERM, -signal.SIGKILL)
    leftover.stdout.close()


def test_a_stranger_with_a_remembered_process_id_is_left_alone(tmp_path):
    portal_home.prepare(tmp_path)
    stranger = subprocess.Popen(SLEEPER)
    row = {"pid": stranger.pid, "started": 12345.0, "name": "web"}
    (tmp_path / "run" / "processes.json").write_text(json.dumps([row]))
    Keeper(tmp_path, ROOT, dict(os.environ), print).end_leftovers()
    assert stranger.poll() is None
    stranger.kill()
    stranger.wait()


@pytest.mark.linux
def test_children_die_with_a_keeper_that_is_killed_outright(tmp_path):
    code = (
        "import os, sys, time; from pathlib import Path; from portal.up.keeper import Keeper;"
        "from portal.up.processes import Process; from portal.up import home;"
        f"h = Path({str(tmp_path)!r}); home.prepare(h);"
        f"k = Keeper(h, h, dict(os.environ), print); k.start([Process('one', {SLEEPER!r})]);"
        "print('up', flush=True); time.sleep(60)"
    )
    env = {**os.environ, "PYTHONPATH": f"{ROOT / 'platform'}:{ROOT}"}
    keeper = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, env=env)
    keeper.stdout.readline()
    child = json.loads((tmp_path / "run" / "processes.json").read_text())[0]["pid"]
    keeper.kill()
    keeper.wait()
    keeper.stdout.close()
    wait_until(lambda: is_gone(child))


def test_a_home_belongs_to_one_portal_at_a_time(tmp_path):
    portal_home.prepare(tmp_path)
    with portal_home.lock(tmp_path), pytest.raises(portal_home.HomeInUse, match=f"process {os.getpid()}"):
        portal_home.lock(tmp_path)
    portal_home.lock(tmp_path).close()


def test_the_secret_is_made_once_and_is_its_owners_alone(tmp_path):
    portal_home.prepare(tmp_path)
    secret = (tmp_path / "secret.key").read_text()
    portal_home.prepare(tmp_path)
    assert (tmp_path / "secret.key").read_text() == secret
    assert len(secret) >= 48
    assert (tmp_path / "secret.key").stat().st_mode & 0o777 == 0o600


def test_a_taken_port_is_named_with_what_to_do():
    import socket

    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        with pytest.raises(CouldNotStart, match="make up PORT="):
            _require_free(Address("127.0.0.1", port), "make up PORT=9000")


def test_what_the_operator_set_reaches_the_processes_unchanged(tmp_path):
    base = {"YARDMASTER_PUBLIC_URL": "https://yard.example.org", "PATH": "/bin"}
    made = environment(base, ROOT, tmp_path, Address("0.0.0.0", 8080))
    assert made["YARDMASTER_PUBLIC_URL"] == "https://yard.example.org"
    assert environment({}, ROOT, tmp_path, Address("0.0.0.0", 8080))["YARDMASTER_PUBLIC_URL"] == "http://127.0.0.1:8080"
