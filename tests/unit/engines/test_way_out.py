"""Which addresses that pods may reach are outside."""

from __future__ import annotations

import pytest

from yardmaster.engines.kubernetes.render.outside import leads_outside


@pytest.mark.parametrize(
    ("cidr", "is_outside"),
    [
        ("0.0.0.0/0", True), ("::/0", True), ("140.82.112.0/20", True), ("10.0.0.0/7", True), ("10.1.0.0/16", False),
        ("192.168.1.7/32", False), ("172.16.0.0/12", False), ("172.0.0.0/8", True), ("fd00::/8", False),
    ],
)  # fmt: skip
def test_private_networks_lead_nowhere(cidr: str, is_outside: bool) -> None:
    assert leads_outside(cidr) is is_outside
