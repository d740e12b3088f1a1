"""Packages of a job in pods, whose only way out is the portal: one installs them there, the others unpack them."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.cluster.account import Account
from tests.cluster.conftest import portal_on
from tests.cluster.jobs import ended, launch, text_of
from tests.cluster.reach import Cluster
from tests.real.package_index import package_index, wheel
from tests.real.portal import RealPortal
from yardmaster_client import Yardmaster

pytestmark = [pytest.mark.cluster, pytest.mark.slow, pytest.mark.timeout(400)]

MODULE = {"greet.py": "def main():\n    print('the program', 'greets')\n"}
SCRIPT = """
import subprocess, sys
import greet
print("from its own", greet.__file__.startswith(sys.prefix), flush=True)
subprocess.run(["greet"], check=True)
"""


@pytest.fixture(scope="module")
def portal(cluster: Cluster, account: Account, own_address: str) -> Iterator[RealPortal]:
    """Its package index listens on this machine's loopback, where no pod reaches it."""
    with (
        package_index(wheel("greet", "1.0", MODULE, program="greet = greet:main")) as index,
        portal_on(cluster, account, own_address, {"YARDMASTER_PACKAGE_INDEX": index.url}) as running,
    ):
        yield running


def test_pods_install_through_the_portal_once_and_share(ada: Yardmaster):
    roles = {"worker": {"replicas": 2, "cpu": 0.2, "memory": "256Mi"}}
    job = launch(ada, SCRIPT, requirements=["greet"], strategy="batch", roles=roles)
    ended(ada, job)
    logs = [text_of(ada, job, index=number) for number in range(2)]
    for text in logs:
        assert "from its own True" in text
        assert "the program greets" in text
    assert sum("1 package installed" in text for text in logs) == 1, logs
    assert sum("1 package from an earlier job" in text for text in logs) == 1, logs
