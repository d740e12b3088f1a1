"""Whether a cluster enforces policies: what the two pods do, and what is concluded."""

from __future__ import annotations

import json
import socket
import subprocess
import sys
import time
from itertools import product

import pytest

from tests.real.portal import free_port
from yardmaster.engines.kubernetes.probes.network import LISTEN, ONLY_IN, ONLY_OUT, OPEN, TRY, finding_of
from yardmaster.engines.kubernetes.probes.pod import ProbeAnswer


def said(way: str, out: str, into: str) -> ProbeAnswer:
    """Why there was no connection: where both ends allow it, only the end in, only the end out."""
    return ProbeAnswer(json.dumps({str(OPEN): way, str(ONLY_IN): out, str(ONLY_OUT): into}), 0)


@pytest.mark.parametrize(("way", "out", "into"), list(product(["", "timed out"], repeat=3)))
def test_only_where_the_one_way_is_open_and_both_others_are_closed_are_policies_enforced(way, out, into):
    found = finding_of(said(way, out, into))
    expected = None if way else bool(out and into)
    assert found.is_well is expected
    assert bool(found.remedy) == (expected is False)


def test_the_end_at_which_nothing_holds_is_named():
    assert "out of pods get through" in finding_of(said("", "", "refused")).message
    assert "into pods get through" in finding_of(said("", "refused", "")).message
    assert "out of pods and into pods" in finding_of(said("", "", "")).message


@pytest.mark.parametrize(
    "told",
    [
        ProbeAnswer("Traceback", 1),
        ProbeAnswer("{}", 0),
        ProbeAnswer("[]", 0),
        ProbeAnswer("7", 0),
        ProbeAnswer(problem="It could not begin."),
    ],
)
def test_what_tells_nothing_is_never_taken_for_a_network_that_enforces_or_does_not(told):
    found = finding_of(told)
    assert found.is_well is None
    assert "not known" in found.message


class TestThePrograms:
    """Run here as in the pods, but for the place where one writes."""

    def tries(self, tmp_path, *ports: int, seconds: float = 0) -> dict[str, str]:
        log = tmp_path / "log"
        program = TRY.replace("/dev/termination-log", str(log))
        command = [sys.executable, "-c", program, "127.0.0.1", str(seconds), *map(str, ports)]
        subprocess.run(command, check=True, timeout=60)
        return json.loads(log.read_text())

    def test_an_open_way_is_told_from_a_closed_one(self, tmp_path):
        with socket.create_server(("127.0.0.1", 0), backlog=100) as open_one, socket.socket() as closed:
            closed.bind(("127.0.0.1", 0))  # and does not listen
            there, not_there = open_one.getsockname()[1], closed.getsockname()[1]
            found = self.tries(tmp_path, there, not_there)
            assert found[str(there)] == ""
            assert "refused" in found[str(not_there)]

    def test_it_waits_until_the_network_has_settled_and_no_longer(self, tmp_path):
        with socket.create_server(("127.0.0.1", 0), backlog=100) as open_one, socket.socket() as closed:
            closed.bind(("127.0.0.1", 0))
            ports = [open_one.getsockname()[1], closed.getsockname()[1]]
            self.tries(tmp_path, *ports, seconds=1000)

    def test_it_listens_at_all_three_ports(self):
        free = [free_port() for _ in range(3)]
        program = LISTEN
        for port, other in zip((OPEN, ONLY_OUT, ONLY_IN), free, strict=True):
            program = program.replace(str(port), str(other))
        listener = subprocess.Popen([sys.executable, "-c", program])
        try:
            for port in free:
                _connects(port)
        finally:
            listener.kill()
            listener.wait(10)


def _connects(port: int, tries: int = 200) -> None:
    for left in reversed(range(tries)):
        try:
            socket.create_connection(("127.0.0.1", port), 1).close()
        except ConnectionRefusedError:
            if not left:
                raise
            time.sleep(0.05)
        else:
            return
