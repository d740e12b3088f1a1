"""What the Kubernetes engine takes for granted, on the cluster that it is tested on."""

from __future__ import annotations

import json
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from tests.cluster.pods import ended, pod, service
from tests.cluster.reach import Cluster, Refused

pytestmark = pytest.mark.cluster

LOOK_AROUND = """
import os, sys, yardmaster_runner
assert os.getuid() == 1000, os.getuid()
open("/tmp/mine", "w").close()
try:
    open("/opt/yardmaster/mine", "w")
except OSError as error:
    print("ends well on Python", sys.version_info[:2], error.strerror)
else:
    sys.exit("the root file system can be written")
"""

# Answers one caller, and asks the peer until it answers: exits only when both have been heard.
MEET = """
import os, socket, threading, time
server = socket.create_server(("0.0.0.0", 8000))
def answer():
    caller, _ = server.accept()
    caller.sendall(os.environ["ME"].encode())
    caller.close()
answering = threading.Thread(target=answer)
answering.start()
while True:
    try:
        with socket.create_connection((os.environ["PEER"], 8000), timeout=2) as peer:
            word = peer.recv(100).decode()
        break
    except OSError:
        time.sleep(0.1)
print("heard", word)
answering.join()
"""

SERVE = """
import http.server
http.server.test(http.server.SimpleHTTPRequestHandler, port=8000)
"""

FETCH = """
import os, time, urllib.request
opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
for attempt in range(100):
    try:
        print(opener.open(os.environ["URL"], timeout=2).read().decode())
        break
    except OSError as error:
        print(error, flush=True)
        time.sleep(0.2)
else:
    raise SystemExit(1)
"""


def quota(namespace: str, **hard: str) -> dict[str, object]:
    return {
        "apiVersion": "v1",
        "kind": "ResourceQuota",
        "metadata": {"name": "quota", "namespace": namespace},
        "spec": {"hard": hard},
    }


def config_map(namespace: str, **data: str) -> dict[str, object]:
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": "notes", "namespace": namespace},
        "data": data,
    }


def test_a_node_is_ready(cluster: Cluster) -> None:
    nodes = json.loads(cluster.kubectl("get", "nodes", "-o", "json"))["items"]
    conditions = [{one["type"]: one["status"] for one in node["status"]["conditions"]} for node in nodes]
    assert "True" in [one["Ready"] for one in conditions]


def test_a_restricted_pod_of_the_probe_image_ends_well(cluster: Cluster, namespace: str) -> None:
    cluster.apply(pod(cluster, namespace, "probe", LOOK_AROUND))
    assert ended(cluster, namespace, "probe") == 0
    assert "ends well on Python" in cluster.log("probe", namespace)


def test_the_probe_image_begins_the_runner_by_itself(cluster: Cluster, namespace: str) -> None:
    manifest = pod(cluster, namespace, "runner", "")
    del manifest["spec"]["containers"][0]["command"]
    cluster.apply(manifest)
    assert ended(cluster, namespace, "runner") != 0
    assert "YARDMASTER_WORK_DIR is not set" in cluster.log("runner", namespace)


def test_a_pod_that_may_become_root_is_refused(cluster: Cluster, namespace: str) -> None:
    manifest = pod(cluster, namespace, "root", "print('in')")
    manifest["spec"]["securityContext"]["runAsNonRoot"] = False
    with pytest.raises(Refused, match=r"violates PodSecurity .*runAsNonRoot"):
        cluster.apply(manifest)


def test_two_pods_meet_by_the_names_of_a_headless_service(cluster: Cluster, namespace: str) -> None:
    cluster.apply(service(namespace, "peers", headless=True))
    for me, peer in (("ada", "bob"), ("bob", "ada")):
        environment = {"ME": me, "PEER": f"{peer}.peers.{namespace}.svc.cluster.local"}
        cluster.apply(pod(cluster, namespace, me, MEET, environment=environment, subdomain="peers"))
    assert [ended(cluster, namespace, name) for name in ("ada", "bob")] == [0, 0]
    assert cluster.log("ada", namespace) == "heard bob\n"


def test_a_service_has_an_address_of_its_own(cluster: Cluster, namespace: str) -> None:
    cluster.apply(service(namespace, "files", headless=False))
    cluster.apply(pod(cluster, namespace, "files", SERVE))
    cluster.apply(pod(cluster, namespace, "reader", FETCH, environment={"URL": "http://files:8000/"}))
    assert ended(cluster, namespace, "reader") == 0
    assert "Directory listing" in cluster.log("reader", namespace)


def test_pods_reach_this_machine(cluster: Cluster, namespace: str, own_address: str) -> None:
    with ThreadingHTTPServer((own_address, 0), _Greeting) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        url = f"http://{own_address}:{server.server_port}/"
        cluster.apply(pod(cluster, namespace, "caller", FETCH, environment={"URL": url}))
        assert ended(cluster, namespace, "caller") == 0
        server.shutdown()
    assert "hello from the portal's machine" in cluster.log("caller", namespace)


def test_a_quota_refuses_what_goes_beyond_it(cluster: Cluster, namespace: str) -> None:
    cluster.apply(quota(namespace, **{"limits.memory": "100Mi", "limits.cpu": "4"}))
    # The server counts what a quota covers before it admits anything.
    cluster.kubectl(
        "wait", "--for=jsonpath={.status.hard.limits\\.memory}", "resourcequota/quota", "--namespace", namespace
    )
    cluster.apply(pod(cluster, namespace, "fits", "import time; time.sleep(60)", memory="64Mi"))
    with pytest.raises(
        Refused, match=r"exceeded quota: quota, requested: limits\.memory=64Mi, used: limits\.memory=64Mi"
    ):
        cluster.apply(pod(cluster, namespace, "too-much", "pass", memory="64Mi"))


def test_server_side_apply_repeats_without_a_change_and_tells_of_conflicts(cluster: Cluster, namespace: str) -> None:
    first = cluster.apply(config_map(namespace, word="one"), "--field-manager=portal")
    again = cluster.apply(config_map(namespace, word="one"), "--field-manager=portal")
    assert again["metadata"]["resourceVersion"] == first["metadata"]["resourceVersion"]
    with pytest.raises(Refused, match='conflict with "portal"'):
        cluster.apply(config_map(namespace, word="two"), "--field-manager=another")
    assert cluster.get("configmap", "notes", namespace)["data"] == {"word": "one"}


def test_a_dry_run_judges_and_leaves_nothing(cluster: Cluster, namespace: str) -> None:
    judged = cluster.apply(pod(cluster, namespace, "imagined", "pass"), "--dry-run=server")
    assert judged["metadata"]["uid"]
    with pytest.raises(Refused, match="not found"):
        cluster.get("pod", "imagined", namespace)
    forbidden = pod(cluster, namespace, "forbidden", "pass")
    forbidden["spec"]["hostNetwork"] = True
    with pytest.raises(Refused, match="host namespaces"):
        cluster.apply(forbidden, "--dry-run=server")


class _Greeting(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        self.send_response(200)
        self.end_headers()
        self.wfile.write(b"hello from the portal's machine")

    def log_message(self, *words: object) -> None:
        """Quiet."""
