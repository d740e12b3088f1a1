"""No other machine reaches what a task listens on: real jobs whose servers bind every address that they can."""

from __future__ import annotations

import socket
from collections.abc import Iterator

import psutil
import pytest

from tests.real.scene import SMALL, Scene, scene, until
from yardmaster_client import Job, PortalError

pytestmark = [pytest.mark.slow, pytest.mark.linux, pytest.mark.timeout(300)]

WAYS = r"""
import ctypes, json, os, socket, struct, subprocess, sys, threading, time
config = json.loads(os.environ["TF_CONFIG"])
own = int(config["cluster"][config["task"]["type"]][config["task"]["index"]].rpartition(":")[2])
kept = []

def listens(family=socket.AF_INET, host="", port=0, reuse=False, only_v6=False):
    one = socket.socket(family)
    if reuse:
        one.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
    if family == socket.AF_INET6:
        one.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, only_v6)
    if host is not None:
        one.bind((host, port))
    one.listen()
    kept.append(one)

def natively():
    libc = ctypes.CDLL(None)
    one = socket.socket()
    kept.append(one)
    assert libc.bind(one.fileno(), struct.pack("=HH12s", 2, 0, b""), 16) == 0
    assert libc.listen(one.fileno(), 5) == 0

def datagrams():
    one = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    one.bind(("", own))
    kept.append(one)

def swapped():
    # The descriptor is a local socket when the kernel asks, and an open one when it goes on.
    libc = ctypes.CDLL(None)
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as one:
        one.bind(("127.0.0.1", 0))
        port = one.getsockname()[1]
    address = struct.pack("=H", 2) + struct.pack(">H", port) + bytes(12)
    for turn in range(200):
        real = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        with socket.socket(socket.AF_UNIX) as local:
            slot = os.dup(local.fileno())
            thread = threading.Thread(target=libc.bind, args=(slot, address, 16))
            thread.start()
            time.sleep(turn % 50 * 0.00002)
            os.dup2(real.fileno(), slot)
            thread.join()
            os.close(slot)
        if real.getsockname()[1]:
            kept.append(real)
            return
        real.close()

def locally():
    # By a relative path, with a umask and a folder of its own: as if nothing had been asked.
    os.makedirs("folder", exist_ok=True)
    os.chdir("folder")
    os.umask(0o027)
    name = "socket-%d" % os.getpid()
    with socket.socket(socket.AF_UNIX) as one, socket.socket(socket.AF_UNIX) as client:
        one.bind(name)
        one.listen()
        client.connect(name)
        assert one.getsockname() == name
        print("local %o" % (os.stat(name).st_mode & 0o777))
    with socket.socket(socket.AF_UNIX) as one:
        one.bind("\0" + name)
        one.listen()
        assert one.getsockname() == b"\0" + name.encode()
    with socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, 0) as one:
        one.bind((0, 0))
        assert one.getsockname()[0]
    os.chdir("..")
    print("local sockets work")

def in_a_child():
    if os.fork() == 0:
        os.setsid()
        listens()
        time.sleep(3600)

def in_another_program():
    code = "import socket, time\none = socket.socket()\none.listen()\ntime.sleep(3600)"
    subprocess.Popen([sys.executable, "-c", code])

def by_their_names():
    for info in socket.getaddrinfo(socket.gethostname(), None):
        try:
            listens(info[0], info[4][0])
        except OSError:
            print("refused", info[4][0])

ways = [
    lambda: listens(port=own, reuse=True), lambda: listens(port=own, reuse=True), lambda: listens(host=None),
    lambda: listens(socket.AF_INET6, "::"), lambda: listens(socket.AF_INET6, "::", only_v6=True),
    lambda: listens(socket.AF_INET6, host=None), natively, datagrams, in_a_child, in_another_program, by_their_names,
    swapped, locally,
]
for way in ways:
    thread = threading.Thread(target=way)
    thread.start()
    thread.join()
try:
    listens(host=sys.argv[-1])
except PermissionError:
    print("refused")
print("all of it listens", flush=True)
time.sleep(3600)
"""


@pytest.fixture(scope="module")
def reachable() -> str:
    """An address by which other machines reach this one."""
    found = [
        one.address
        for some in psutil.net_if_addrs().values()
        for one in some
        if one.family == socket.AF_INET and not one.address.startswith("127.")
    ]
    if not found:
        pytest.skip("this machine has no address but loopback's: there is nothing to reach it by")
    with socket.create_server(("", 0)) as anywhere:
        if not answers(found[0], anywhere.getsockname()[1]):
            pytest.skip(f"this machine does not even reach itself by {found[0]}")
    return found[0]


def sockets_of(portal: Scene, job: Job) -> list[tuple[str, int, bool]]:
    """Address, port and whether it is a listener: every socket of the job's processes that others could write to."""
    found = []
    for row in portal.processes_of(job):
        try:
            held = psutil.Process(row.pid).net_connections("inet")
        except psutil.NoSuchProcess:
            continue
        for one in held:
            if one.status == psutil.CONN_LISTEN or (one.type == socket.SOCK_DGRAM and one.laddr):
                found.append((one.laddr.ip, one.laddr.port, one.type == socket.SOCK_STREAM))
    return found


def answers(host: str, port: int) -> bool:
    try:
        socket.create_connection((host, port), 10).close()
    except OSError:
        return False
    return True


def assert_only_this_machine_reaches(found: list[tuple[str, int, bool]], reachable: str) -> None:
    assert {ip for ip, _, _ in found} <= {"127.0.0.1", "::1", "::ffff:127.0.0.1"}
    for ip, port, is_listener in found:
        if is_listener:
            assert answers("::1" if ip == "::1" else "127.0.0.1", port)
            assert not answers(reachable, port)


def test_servers_of_a_script_listen_on_loopback_alone_however_they_are_bound(attacked: Scene, reachable: str):
    roles = {"worker": dict(SMALL), "ps": dict(SMALL)}
    job = attacked.launch(WAYS, strategy="between_graph", roles=roles, arguments=[reachable])
    for role in roles:
        until(lambda role=role: "all of it listens" in attacked.lines(job, role), what=f"{role} to listen")
        said = attacked.lines(job, role)
        assert {"refused", "local 750", "local sockets work"} <= set(said)
        assert any(line.startswith(f"yardmaster: listening on {reachable}:0 was refused") for line in said)
    until(lambda: sum(one[2] for one in sockets_of(attacked, job)) >= 2 * 9, what="all listeners")
    found = sockets_of(attacked, job)
    assert_only_this_machine_reaches(found, reachable)
    attacked.client.jobs.stop(job.id)
    attacked.settled(job)


@pytest.mark.tensorflow
def test_tensorflow_s_own_servers_listen_on_loopback_alone(attacked: Scene, reachable: str):
    roles = {role: {"cpu": 0.5, "memory": "1536Mi"} for role in ("worker", "ps")}
    job = attacked.client.jobs.launch(
        {"name": "servers", "strategy": "in_graph", "roles": roles, "grace_period": 5, "max_runtime": 600}
    )
    for role in roles:
        until(
            lambda role=role: any("serves at grpc://" in line for line in attacked.lines(job, role)),
            200, f"{role} to serve",
        )  # fmt: skip
    found = sockets_of(attacked, job)
    serving = attacked.client.jobs.get(job.id).serving
    assert serving is not None
    assert serving["target"].removeprefix("grpc://127.0.0.1:") in {str(port) for _, port, _ in found}
    assert_only_this_machine_reaches(found, reachable)
    attacked.client.jobs.stop(job.id)
    attacked.settled(job)


@pytest.fixture(scope="module")
def unable() -> Iterator[Scene]:
    """A portal on a machine that cannot keep its tasks to loopback."""
    with scene(settings={"YARDMASTER_LOCAL_LOOPBACK_ONLY": "off"}) as one:
        yield one


def test_where_the_machine_cannot_jobs_that_start_servers_are_refused_and_others_run(unable: Scene):
    servers = {"name": "servers", "strategy": "in_graph", "roles": {"worker": dict(SMALL), "ps": dict(SMALL)}}
    with pytest.raises(PortalError) as caught:
        unable.client.jobs.launch(servers)
    (problem,) = caught.value.errors
    assert (caught.value.status, problem.field, problem.code) == (422, "strategy", "open_servers")
    assert "YARDMASTER_LOCAL_OPEN_SERVERS=1" in problem.remedy
    assert unable.ask("SELECT COUNT(*) FROM jobs_job") == [(0,)]
    check = unable.client.jobs.check(servers)
    assert [one["code"] for one in check["problems"]] == ["open_servers"]
    assert unable.ended(unable.launch("print('alone')")).phase == "SUCCEEDED"
