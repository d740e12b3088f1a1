"""Scripts that try to be reached from other machines, started as the runner starts them. No portal is needed."""

from __future__ import annotations

import errno
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from yardmaster.engines.supervision.loopback import can_be_kept

PLATFORM = Path(__file__).resolve().parents[3] / "platform"
STARTER = """
import os, sys
from yardmaster_runner.processes import adopt_orphans
from yardmaster_runner.narrower import Listening
from yardmaster_runner.script import Script
adopt_orphans()
said = []
script = Script.start([sys.executable, "-c", sys.argv[1]], dict(os.environ), "/", 1, Listening(said.append))
code = script.wait()
script.end_survivors()
for one in said:
    print("SAID", one)
sys.exit(code)
"""
BEGIN = """
import ctypes, errno, os, signal, socket, struct, sys, threading, time
libc = ctypes.CDLL(None, use_errno=True)
def bound(family=socket.AF_INET, kind=socket.SOCK_STREAM, host="", port=0, only_v6=0):
    one = socket.socket(family, kind)
    if family == socket.AF_INET6:
        one.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, only_v6)
    one.bind((host, port))
    return one.getsockname()[0]
def failure(what, *arguments, **more):
    try:
        what(*arguments, **more)
    except OSError as error:
        return errno.errorcode[error.errno]
"""

pytestmark = [
    pytest.mark.linux,
    pytest.mark.skipif(not can_be_kept(sys.executable, PLATFORM), reason="this machine cannot narrow what tasks bind"),
]


def run(script: str, starter: str = STARTER) -> str:
    """What the script printed."""
    done = subprocess.run(
        [sys.executable, "-c", starter, BEGIN + script],
        env={**os.environ, "PYTHONPATH": str(PLATFORM)}, capture_output=True, text=True, timeout=60, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.mark.parametrize(
    ("expression", "expected"),
    [
        ("bound()", "127.0.0.1"),
        ("bound(socket.AF_INET6, host='::')", "::ffff:127.0.0.1"),
        ("bound(socket.AF_INET6, host='::', only_v6=1)", "::1"),
        ("bound(host='127.0.0.2')", "127.0.0.2"),
        ("failure(bound, host='192.0.2.77')", "EACCES"),
        ("failure(bound, socket.AF_INET6, host='2001:db8::77')", "EACCES"),
        ("bound(kind=socket.SOCK_DGRAM)", "0.0.0.0"),
        ("failure(bound, kind=socket.SOCK_DGRAM, host='192.0.2.77', port=1)", "EACCES"),
        ("failure(libc_bind, 0, b'')", "ENOTSOCK"),
        ("failure(libc_bind, 999, b'')", "EBADF"),
        ("failure(libc_bind, new(), b'xy')", "EINVAL"),
        ("failure(libc_bind, new(), struct.pack('=HH12s', 10, 0, b''))", "EAFNOSUPPORT"),
        ("failure(at_address, new(), 8)", "EFAULT"),
        ("named(new(), struct.pack('=HH12s', 0, 0, b''))", "127.0.0.1"),
        ("failure(twice)", "EINVAL"),
        ("failure(io_uring)", "EPERM"),
        ("failure(socket.socket(socket.AF_INET, socket.SOCK_DGRAM).listen)", errno.errorcode[errno.EOPNOTSUPP]),
        ("listening(socket.AF_INET)", "127.0.0.1"),
        ("listening(socket.AF_INET6)", "::ffff:127.0.0.1"),
    ],
)
def test_each_way_to_bind(expression: str, expected: str):
    ways = """
def new():
    global kept
    kept = socket.socket()
    return kept.fileno()
def check(result):
    if result < 0:
        raise OSError(ctypes.get_errno(), "")
def libc_bind(fd, address):
    check(libc.bind(fd, address, len(address)))
def at_address(fd, where):
    check(libc.bind(fd, ctypes.c_void_p(where), 16))
def named(fd, address):
    libc_bind(fd, address)
    return kept.getsockname()[0]
def twice():
    one = socket.socket()
    one.bind(("127.0.0.1", 0))
    one.bind(("127.0.0.2", 0))
def io_uring():
    check(libc.syscall(425, 1, ctypes.create_string_buffer(120)))
def listening(family):
    one = socket.socket(family)
    one.listen()
    return one.getsockname()[0]
"""
    assert run(f"{ways}\nprint({expression})").splitlines()[0] == expected


def test_what_does_not_leave_the_machine_and_what_only_asks_works_as_ever():
    said = run("""
a = socket.socket(socket.AF_UNIX)
a.bind("\\0yardmaster-%d" % os.getpid())
a.listen()
b = socket.socket(socket.AF_UNIX)
b.connect(a.getsockname())
server = socket.socket()
server.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
server.bind(("", 0))
server.listen()
other = socket.socket()
other.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
other.bind(("", server.getsockname()[1]))
other.listen()
socket.create_connection(("127.0.0.1", server.getsockname()[1]), 10).sendall(b"hello")
asking = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
asking.bind(("0.0.0.0", 0))
answering = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
answering.bind(("", 0))
asking.sendto(b"name?", ("127.0.0.1", answering.getsockname()[1]))
print(answering.recvfrom(10)[0])
print(socket.getaddrinfo("localhost", 80)[0][4][1])
""")
    assert said.splitlines() == ["b'name?'", "80"]


def test_a_local_socket_lies_where_and_is_as_the_script_wants_it(tmp_path: Path):
    said = run(f"""
os.chdir({str(tmp_path)!r})
for umask in (0o027, 0o002):
    os.umask(umask)
    one, client = socket.socket(socket.AF_UNIX), socket.socket(socket.AF_UNIX)
    one.bind("socket-%o" % umask)
    one.listen()
    client.connect("socket-%o" % umask)
    print(one.getsockname(), "%o" % (os.stat(one.getsockname()).st_mode & 0o777))
print(failure(one.bind, "again"), failure(socket.socket(socket.AF_UNIX).bind, "socket-27"))
routes = socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, 0)
routes.bind((0, 0))
print(routes.getsockname()[0] != 0)
""")
    assert said.splitlines() == ["socket-27 750", "socket-2 775", "EINVAL EADDRINUSE", "True"]


def test_a_descriptor_that_becomes_another_socket_meanwhile_wins_nothing():
    said = run("""
with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as one:
    one.bind(("127.0.0.1", 0))
    port = one.getsockname()[1]
address = struct.pack("=H", 2) + struct.pack(">H", port) + bytes(12)
hosts = set()
for turn in range(300):
    real, local = socket.socket(socket.AF_INET, socket.SOCK_DGRAM), socket.socket(socket.AF_UNIX)
    slot = os.dup(local.fileno())
    thread = threading.Thread(target=libc.bind, args=(slot, address, 16))
    thread.start()
    time.sleep(turn % 50 * 0.00002)
    os.dup2(real.fileno(), slot)
    thread.join()
    os.close(slot)
    if real.getsockname()[1]:
        hosts.add(real.getsockname()[0])
    real.close()
print(hosts <= {"127.0.0.1"}, hosts)
""")
    assert said.startswith("True")


def test_threads_children_and_programs_of_the_script_are_kept_alike():
    said = run("""
import subprocess
def say(who):
    os.write(1, f"{who} {bound()}\\n".encode())
threads = [threading.Thread(target=say, args=("thread",)) for _ in range(8)]
[one.start() for one in threads]
[one.join() for one in threads]
if os.fork() == 0:
    say("child")
    if os.fork() == 0:
        os.setsid()
        say("grandchild")
        os._exit(0)
    os.wait()
    os._exit(0)
os.wait()
code = "import socket; one = socket.socket(); one.listen(); print('program', one.getsockname()[0])"
subprocess.run([sys.executable, "-I", "-S", "-c", code], check=True, env={})
""")
    found = [line.split() for line in said.splitlines()]
    assert {host for _, host in found} == {"127.0.0.1"}
    assert sorted(who for who, _ in found) == ["child", "grandchild", "program", *["thread"] * 8]


def test_the_script_s_log_is_told_of_what_was_refused_and_not_without_end():
    said = run("for number in range(100):\n    failure(bound, host='192.0.2.77', port=7000)")
    told = [line for line in said.splitlines() if line.startswith("SAID")]
    assert (
        told
        == ["SAID listening on 192.0.2.77:7000 was refused: tasks can be reached from their own machine alone"] * 10
    )


def test_a_flood_from_many_threads_is_answered_to_the_end():
    said = run("""
wrong = []
def flood():
    for _ in range(300):
        one = socket.socket()
        one.bind(("", 0))
        one.listen()
        if one.getsockname()[0] != "127.0.0.1":
            wrong.append(one.getsockname())
        one.close()
threads = [threading.Thread(target=flood) for _ in range(20)]
[one.start() for one in threads]
[one.join() for one in threads]
print(wrong)
""")
    assert said.splitlines() == ["[]"]


def test_processes_killed_in_the_middle_of_it_hold_nobody_up():
    said = run("""
for _ in range(60):
    child = os.fork()
    if child == 0:
        while True:
            socket.socket().bind(("", 0))
    time.sleep(0.005)
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
print(bound())
""")
    assert said.splitlines() == ["127.0.0.1"]


def test_signals_in_the_middle_of_it_change_nothing():
    said = run("""
signal.signal(signal.SIGALRM, lambda *_: None)
signal.siginterrupt(signal.SIGALRM, False)
signal.setitimer(signal.ITIMER_REAL, 0.0005, 0.0005)
found = {bound() for _ in range(500)}
signal.setitimer(signal.ITIMER_REAL, 0)
print(found)
""")
    assert said.splitlines() == ["{'127.0.0.1'}"]


def test_an_address_changed_by_another_thread_meanwhile_is_of_no_use():
    """The script writes another address into the same memory as fast as it can while the kernel asks."""
    said = run("""
place = ctypes.create_string_buffer(16)
over = False
def change():
    while not over:
        place.raw = struct.pack("=HH4s8s", 2, 0, bytes([127, 0, 0, 1]), b"")
        place.raw = struct.pack("=HH4s8s", 2, 0, bytes(4), b"")
threading.Thread(target=change, daemon=True).start()
found = set()
for _ in range(1000):
    one = socket.socket()
    if libc.bind(one.fileno(), place, 16) == 0 and libc.listen(one.fileno(), 1) == 0:
        found.add(one.getsockname()[0])
over = True
print(sorted(found))
""")
    assert said.splitlines() == ["['127.0.0.1']"]


def test_a_process_that_may_not_be_looked_at_binds_nothing():
    """It forbids that others look into it; a runner with a superuser's rights would be let in all the same."""
    ordinary = """
import ctypes, struct
libc = ctypes.CDLL(None)
libc.prctl(28, 1, 0, 0, 0)
assert libc.capset(struct.pack("=II", 0x20080522, 0), struct.pack("=6I", 0, 0, 0, 0, 0, 0)) == 0
"""
    said = run("libc.prctl(4, 0, 0, 0, 0)\nprint(failure(bound))", starter=ordinary + STARTER)
    assert said.splitlines() == ["EACCES"]
    assert run("print(bound())", starter=ordinary + STARTER).splitlines() == ["127.0.0.1"]


def test_without_its_runner_the_script_binds_nothing_and_does_not_wait_for_ever(tmp_path: Path):
    """It dies with the runner; a child that the runner's death does not reach gets an answer from the kernel."""
    child = """
if os.fork() == 0:
    with open(sys.argv[1] + "/pid", "w") as file:
        file.write(str(os.getpid()))
    os.setsid()
    while os.path.exists("/proc/%s" % sys.argv[2]):
        time.sleep(0.01)
    with open(sys.argv[1] + "/answer.new", "w") as file:
        file.write(str(failure(bound)))
    os.rename(sys.argv[1] + "/answer.new", sys.argv[1] + "/answer")
    os._exit(0)
while True:
    time.sleep(1)
"""
    words = json.dumps([sys.executable, "-c", BEGIN + child, str(tmp_path)])
    starter = f"""
import json, os
from yardmaster_runner.narrower import Listening
from yardmaster_runner.script import Script
script = Script.start([*json.loads({words!r}), str(os.getpid())], dict(os.environ), "/", 1, Listening(print))
script.wait()
"""
    runner = subprocess.Popen([sys.executable, "-c", starter], env={**os.environ, "PYTHONPATH": str(PLATFORM)})
    wait_for(tmp_path / "pid")
    runner.send_signal(signal.SIGKILL)
    runner.wait()
    wait_for(tmp_path / "answer")
    assert (tmp_path / "answer").read_text() == "ENOSYS"


def wait_for(path: Path) -> None:
    deadline = time.monotonic() + 60
    while not path.exists():
        assert time.monotonic() < deadline
        time.sleep(0.02)
