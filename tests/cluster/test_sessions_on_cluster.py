"""Sessions of the workbench in pods: the portal alone reaches them, through the gate; a notebook keeps its files."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import closing
from typing import Any

import pytest
from websockets.exceptions import ConnectionClosedError

from tests.cluster.account import Account, shaped
from tests.cluster.conftest import portal_on
from tests.cluster.engine_on_cluster import ClusterHarness
from tests.cluster.jobs import TRAINS, launch, pod_of, text_of
from tests.cluster.jobs import ended as ended_job
from tests.cluster.notebooks import JupyterAtOrigin
from tests.cluster.pods import ended, pod
from tests.cluster.reach import Cluster, wait_for
from tests.contract.engine_harness import ACCESS, SMALL, spec_of, wait_until
from tests.real.opened import Opened, opened, signed_in
from tests.real.portal import RealPortal
from tests.unit.runner.event_writer import event, framed, scalar
from yardmaster.ids import JobKey, new_id
from yardmaster.job.spec import Role, RoleSpec, Strategy
from yardmaster.queueing.ledger import Quota
from yardmaster_client import Yardmaster

pytestmark = [pytest.mark.cluster, pytest.mark.slow, pytest.mark.timeout(500)]

Both = tuple[dict[str, Any], dict[str, Any]]
TOLERATED = [{"key": "people", "operator": "Exists", "effect": "NoSchedule"}]
ASK = """
import sys
import django
django.setup()
from apps.hosting.addresses import address_of
from apps.hosting.dialing import dial
from apps.hosting.state import token_for
from apps.workbench.models import WorkbenchSession
row = WorkbenchSession.objects.select_related("job").get(pk=sys.argv[1])
print(dial(address_of(row.job), "GET", row.prefix + sys.argv[2], key=token_for(row.job)).body.decode())
"""
"""As the portal does it: through the gate of the session."""
RUNS_A_CELL = """
import json, sys
import httpx2
from websockets.sync.client import unix_connect
prefix, code = sys.argv[1:]
socket, host = "/yardmaster/work/service/s", "portal"
browser = httpx2.Client(transport=httpx2.HTTPTransport(uds=socket), base_url=f"http://{host}{prefix}", timeout=90)
browser.get("lab")
browser.headers["X-XSRFToken"] = browser.cookies["_xsrf"]
kernel = browser.post("api/kernels", json={"name": "python3"}).raise_for_status().json()["id"]
head = {"msg_id": "1", "msg_type": "execute_request", "session": "s", "username": "", "version": "5.3"}
content = {"code": code, "silent": False, "store_history": False, "allow_stdin": False, "stop_on_error": True}
cookies = "; ".join("%s=%s" % one for one in browser.cookies.items())
address = f"ws://{host}{prefix}api/kernels/{kernel}/channels"
with unix_connect(socket, address, origin=f"http://{host}", additional_headers={"Cookie": cookies}) as channel:
    message = {"header": head, "parent_header": {}, "metadata": {}, "content": content, "channel": "shell"}
    channel.send(json.dumps(message))
    while (said := json.loads(channel.recv(90)))["header"]["msg_type"] not in ("stream", "error"):
        pass
    print(said["content"].get("text") or said["content"]["traceback"])
"""
"""Within the pod, on the program's own socket."""
CELL = """
import os, yardmaster_client
with open("kept.txt", "w") as file:
    file.write("of yesterday")
print(os.getuid(), os.getcwd())
"""
CONNECTS = """
import socket, sys
for address in sys.argv[1:]:
    try:
        socket.create_connection((address, 2222), timeout=3).close()
        print("through")
    except OSError as error:
        print(type(error).__name__)
"""
STEPS = [framed(event(step=step, time=1.7e9 + step, summary=[scalar("loss", 1 / (step + 1))])) for step in range(3)]
TRACES = f"""
import os, time
with open(os.environ["LOG_DIR"] + "/events.out.tfevents.1700000000.host", "ab", buffering=0) as file:
    for number, step in enumerate({STEPS}):
        while number == 2 and not os.path.exists("/tmp/go"):
            time.sleep(0.05)
        file.write(step)
"""
"""Two steps, as TensorFlow writes them; a third when it is asked for."""


@pytest.fixture(scope="module")
def own_portal(cluster: Cluster, account: Account, own_address: str) -> Iterator[RealPortal]:
    """With nodes set apart for services, which are all that the cluster has; sessions have origins below localhost."""
    (node, *_) = cluster.names("nodes")
    labels = json.loads(cluster.kubectl("get", "node", node, "-o", "json"))["metadata"]["labels"]
    chosen = {"kubernetes.io/hostname": labels["kubernetes.io/hostname"]}
    image = {"YARDMASTER_KUBERNETES_WORKBENCH_IMAGE": cluster.workbench_image}
    options: dict[str, Any] = {"service_node_selector": chosen, "service_tolerations": TOLERATED, "home_size": "64Mi"}
    with portal_on(cluster, account, own_address, image, host="0.0.0.0", **options) as running:
        yield running


@pytest.fixture(scope="module")
def carol(own_portal: RealPortal) -> Iterator[Yardmaster]:
    with Yardmaster(own_portal.url, own_portal.token_of("carol")) as client:
        yield client


@pytest.fixture(scope="module")
def sessions(carol: Yardmaster) -> Iterator[Both]:
    """A TensorBoard and a Jupyter that are ready, for all tests of the module."""
    board, session = (started(carol, kind) for kind in ("tensorboard", "jupyter"))
    yield ready(carol, board), ready(carol, session)
    for one in (board, session):
        carol.transport.post(f"sessions/{one['id']}/stop/", {})


def started(client: Yardmaster, kind: str) -> dict[str, Any]:
    return dict(client.transport.post("sessions/", {"kind": kind, "size": "small"}))


def ready(client: Yardmaster, made: dict[str, Any]) -> dict[str, Any]:
    """The portal has asked its port."""

    def is_ready() -> dict[str, Any] | None:
        found = client.transport.get(f"sessions/{made['id']}/")
        said = text_of(client, client.jobs.get(found["job"])) if found["state"] == "failed" else ""
        assert found["state"] != "failed", (found, said)
        return found if found["state"] == "ready" else None

    return wait_for(f"the {made['kind']}", is_ready, TRAINS)


def restarted(client: Yardmaster, session: dict[str, Any]) -> dict[str, Any]:
    """Stopped, and ready again in another pod."""
    client.transport.post(f"sessions/{session['id']}/restart/")

    def of_another_job() -> dict[str, Any] | None:
        found: dict[str, Any] = client.transport.get(f"sessions/{session['id']}/")
        return found if found["job"] != session["job"] else None

    return ready(client, wait_for("another job", of_another_job))


def at_origin(portal: RealPortal, session: dict[str, Any]) -> Opened:
    """Where its owner's browser has it."""
    return opened(portal.url, signed_in(portal.url, "carol"), session["id"])


def test_a_tensorboard_in_a_pod_shows_the_run_of_another_and_follows_it(
    cluster: Cluster, own_portal: RealPortal, carol: Yardmaster, sessions: Both
):
    job = launch(carol, TRACES, name="curves")
    run = f"curves-{job.id[-6:]}/worker-0"
    with at_origin(own_portal, sessions[0]).client() as browser:

        def points() -> list[list[float]]:
            """(unix time, step, value) of each that is shown."""
            if run not in browser.get("data/runs").raise_for_status().json():
                return []
            answer = browser.get("data/plugin/scalars/scalars", params={"run": run, "tag": "loss"})
            return list(answer.json()) if answer.status_code == 200 else []

        wait_for("the first steps", lambda: len(points()) == 2, TRAINS)
        place, name = pod_of(cluster, job, "worker", 0)
        cluster.kubectl("exec", name, "--namespace", place, "--", "touch", "/tmp/go")
        wait_for("the last step", lambda: len(points()) == 3)
        expected = [[1.7e9 + step, step, 1 / (step + 1)] for step in range(3)]
        assert points() == [pytest.approx(one) for one in expected]
        ended_job(carol, job)
        assert "text/html" in browser.get("").headers["content-type"]


def test_a_kernel_in_a_pod_outlives_the_portals_web_process(own_portal: RealPortal, carol: Yardmaster, sessions: Both):
    with closing(JupyterAtOrigin(at_origin(own_portal, sessions[1]))) as jupyter:
        kernel = jupyter.start_kernel()
        process = jupyter.run("import os\nkept = 41\nprint(os.getpid())", kernel).strip()
        with jupyter.web_socket(f"api/kernels/{kernel}/channels") as channel:
            own_portal.kill("web")
            with pytest.raises(ConnectionClosedError):
                list(channel)
            own_portal.start("web")
        assert jupyter.run("print(os.getpid(), kept + 1)", kernel).split() == [process, "42"]
        jupyter.client.delete(f"api/kernels/{kernel}").raise_for_status()


def test_sessions_in_pods_are_the_portals_alone_and_a_notebook_drives_servers_and_keeps_its_files(
    cluster: Cluster, own_portal: RealPortal, carol: Yardmaster, namespace: str, sessions: Both
):
    roles = {role: {"replicas": 1, "cpu": 0.2, "memory": "1Gi"} for role in ("ps", "worker")}
    servers = carol.jobs.launch({"name": "servers", "strategy": "in_graph", "roles": roles, "max_runtime": 600})
    board, session = sessions
    runs = json.loads(own_portal.script(ASK, board["id"], "data/runs"))
    assert all(run.startswith("curves-") for run in runs), runs  # of a test before this one
    status = json.loads(own_portal.script(ASK, session["id"], "api/status"))
    assert status["kernels"] == 0

    place, name = pod_of(cluster, carol.jobs.get(session["job"]), "worker", 0)
    found = cluster.get("pod", name, place)
    assert found["spec"]["nodeSelector"]["kubernetes.io/hostname"]
    assert found["spec"]["tolerations"][: len(TOLERATED)] == TOLERATED
    assert found["spec"]["containers"][0]["image"] == cluster.workbench_image
    assert (
        cluster.get("namespace", place, "")["metadata"]["labels"]["pod-security.kubernetes.io/enforce"] == "restricted"
    )

    def within(where: str, script: str, *words: str) -> list[str]:
        return cluster.kubectl("exec", where, "--namespace", place, "--", "python3", "-c", script, *words).split()

    _, server = pod_of(cluster, servers, "ps", 0)
    _, other = pod_of(cluster, carol.jobs.get(board["job"]), "worker", 0)
    address, own, boards = (cluster.get("pod", one, place)["status"]["podIP"] for one in (server, name, other))
    answered = (["through"], ["ConnectionRefusedError"])  # TensorFlow's server may still be on its way
    wait_for("the way to a server", lambda: within(name, CONNECTS, address) in answered)
    assert within(server, CONNECTS, own, boards) == ["TimeoutError"] * 2, "another pod of the namespace"
    assert within(other, CONNECTS, own, address) == ["TimeoutError"] * 2, "a TensorBoard drives no servers"
    assert within(name, CONNECTS, boards) == ["TimeoutError"], "nor does a notebook reach other sessions"
    script = f"import sys; sys.argv += {[own, boards]}\n{CONNECTS}"
    cluster.apply(pod(cluster, namespace, "stranger", script))
    assert ended(cluster, namespace, "stranger") == 0
    assert cluster.log("stranger", namespace).split() == ["TimeoutError"] * 2, "a pod of another namespace"

    assert within(name, RUNS_A_CELL, f"/w/{session['id']}/", CELL) == ["10001", "/yardmaster/home"]
    carol.jobs.stop(servers.id)
    again = restarted(carol, session)
    kept = json.loads(own_portal.script(ASK, again["id"], "api/contents/kept.txt"))
    assert kept["content"] == "of yesterday"
    for one in (board, again):
        carol.transport.post(f"sessions/{one['id']}/stop/")


def test_a_home_that_no_class_gives_is_told_in_the_job(on_cluster: ClusterHarness, key: JobKey):
    engine = on_cluster.new_engine(home_class="no-such-class")
    shaped(engine, key.namespace_id, Quota(), ACCESS.portal_url)
    options = {"session": str(new_id()), "owner": str(new_id())}
    spec = spec_of(
        Strategy.SERVICE, roles={Role.WORKER: RoleSpec(1, SMALL)}, program="jupyter", options=options,
        code_version=None, entry_point="",
    )  # fmt: skip
    engine.submit(spec, key, ACCESS)
    seen = wait_until(engine, key, lambda found: any("no-such-class" in one.message for one in found.tasks), 90)
    assert [one.reason for one in seen.tasks] == ["VolumePending"]
