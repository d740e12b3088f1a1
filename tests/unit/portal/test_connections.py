"""Which connection has waited longest, and how many there are from where."""

from __future__ import annotations

import os
import resource
import subprocess
import sys

from portal.connections import Connections, most_at_once


def test_the_longest_waiting_is_known_of_all_and_of_each_address():
    found: Connections[str] = Connections()
    for one, address in (("a1", "a"), ("b1", "b"), ("a2", "a")):
        found.add(one, address)
    assert (found.longest_waiting(), found.longest_waiting("b"), found.count("a")) == ("a1", "b1", 2)
    found.wait_no_more("a1")
    assert (found.longest_waiting(), found.longest_waiting("a"), found.count("a")) == ("b1", "a2", 2)
    found.wait("a1")
    assert found.longest_waiting("a") == "a2"
    found.remove("b1")
    found.remove("b1")
    assert (found.longest_waiting("b"), found.count("b")) == (None, 0)
    found.wait("b1")
    found.wait_no_more("b1")
    assert found.longest_waiting() == "a2", "what has ended waits no more"


def test_connections_take_at_most_half_of_the_descriptors():
    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    assert most_at_once(10) == 10
    assert most_at_once(1 << 40) == soft // 2


def test_the_portal_takes_as_many_descriptors_as_it_may_have():
    script = """
import resource
from portal.up.processes import raise_descriptors
_, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
resource.setrlimit(resource.RLIMIT_NOFILE, (128, min(hard, 2000)))
raise_descriptors(1000)
print(resource.getrlimit(resource.RLIMIT_NOFILE)[0])
raise_descriptors(4000)
print(resource.getrlimit(resource.RLIMIT_NOFILE)[0])
"""
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    found = subprocess.run([sys.executable, "-c", script], env=environment, capture_output=True, text=True, check=True)
    assert found.stdout.split() == ["1000", "2000"]
