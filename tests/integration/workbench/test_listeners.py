"""The web process of a real portal has two listeners, which begin and end together."""

from __future__ import annotations

import json
import signal
import socket
import subprocess
import sys
import urllib.error
import urllib.request
import uuid
from urllib.parse import urlsplit

import pytest

from tests.real.portal import ROOT, RealPortal, free_port

pytestmark = pytest.mark.slow


def asked(url: str, **headers: str) -> tuple[int, bytes]:
    try:
        with urllib.request.urlopen(urllib.request.Request(url, headers=headers), timeout=20) as answer:
            return answer.status, answer.read()
    except urllib.error.HTTPError as error:
        return error.code, error.read()


def test_each_port_answers_for_its_own_origin(light_portal: RealPortal):
    places = urlsplit(light_portal.environment["YARDMASTER_WORKBENCH_URL"])
    assert places.hostname == "*.localhost"
    own = f"http://127.0.0.1:{places.port}"
    session_id = uuid.uuid4()
    host = {"Host": f"{session_id.hex}.localhost:{places.port}"}
    assert asked(f"{own}/.yardmaster/healthz") == (200, b"ok\n")
    assert asked(f"{own}/accounts/login/")[0] == 421
    assert asked(f"{own}/accounts/login/", **host)[0] == 401  # a path of the session, as all on its host are
    status, body = asked(f"{own}/w/{session_id}/data", **host)
    assert (status, json.loads(body)["code"]) == (401, "not_signed_in")
    assert asked(f"{light_portal.url}/healthz")[0] == 200
    assert asked(f"{light_portal.url}/.yardmaster/healthz")[0] == 404


def test_a_port_that_is_taken_ends_the_process_and_is_named(light_portal: RealPortal):
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        command = [sys.executable, "-m", "portal.web", "--host", "127.0.0.1", "--port", str(free_port())]
        command += ["--workbench-port", str(port)]
        done = subprocess.run(
            command, cwd=ROOT, env=light_portal.environment, capture_output=True, text=True, timeout=60, check=False
        )
    assert done.returncode != 0
    assert str(port) in done.stderr + done.stdout


@pytest.mark.parametrize("how", [signal.SIGTERM, signal.SIGINT])
def test_both_end_with_the_process_also_while_clients_are_connected(light_portal: RealPortal, how: signal.Signals):
    ports = [int(light_portal.url.rpartition(":")[2])]
    ports.append(int(light_portal.environment["YARDMASTER_WORKBENCH_URL"].rpartition(":")[2]))
    idle = [socket.create_connection(("127.0.0.1", port)) for port in ports]
    process = light_portal.running["web"]
    try:
        process.send_signal(how)
        process.wait(20)
        for port in ports:
            with pytest.raises(ConnectionRefusedError):
                socket.create_connection(("127.0.0.1", port), timeout=5).close()
    finally:
        for one in idle:
            one.close()
        light_portal.running.pop("web")
        light_portal.start("web")
    assert "Traceback" not in light_portal.log_of("web")
