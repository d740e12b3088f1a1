"""The list of machines: what it may say, and how each mistake is told."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from yardmaster.engines.hosts.inventory import Host, Inventory, hosts_in
from yardmaster.errors import Misconfigured

GOOD = '[[machine]]\nname = "gpu-1"\naddress = "10.0.0.11"\nuser = "train"\n'


def read(text: str) -> dict[str, Host]:
    return hosts_in(text.encode(), Path("machines.toml"))


def test_every_field_is_read():
    more = (
        'port = 2022\nhost_key = "ssh-ed25519 AAAA"\nfolder = "/srv/ym"\npython = "/usr/bin/python3.12"\n'
        'task_python = "/opt/tf/bin/python"\ncores = "1500m"\nmemory = "64Gi"\ngpus = 2\nports = [20000, 29999]\n'
        "cordoned = true\n"
    )
    assert read(GOOD + more) == {
        "gpu-1": Host(
            "gpu-1", "10.0.0.11", "train", 2022, "ssh-ed25519 AAAA", "/srv/ym", "/usr/bin/python3.12",
            "/opt/tf/bin/python", 1.5, 64 << 30, ("0", "1"), (20000, 29999), True,
        )
    }  # fmt: skip
    assert read(GOOD)["gpu-1"] == Host("gpu-1", "10.0.0.11", "train")
    assert read("") == {}


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("[[machine]", "Expected"),
        ("machine = 3", "machine is not a list"),
        ("[[machines]]", "machines is not a list"),
        ('[[machine]]\naddress = "10.0.0.1"\nuser = "a"', "machine 1: name is missing"),
        (GOOD + "cpu = 2", "machine gpu-1: there is no field cpu"),
        (GOOD.replace("10.0.0.11", "gpu-1.example"), "must be an IP address"),
        (GOOD.replace("10.0.0.11", "fe80::1"), "the IPv4 address of one machine"),
        (GOOD.replace("10.0.0.11", "0.0.0.0"), "the IPv4 address of one machine"),
        (GOOD.replace("gpu-1", "GPU 1"), "name is 'GPU 1'"),
        (GOOD.replace("gpu-1", "../x"), "name is '../x'"),
        (GOOD.replace("train", "-oProxyCommand=x"), "user is '-oProxyCommand=x'"),
        (GOOD + "port = 70000", "port is 70000"),
        (GOOD + "port = true", "port is True"),
        (GOOD + "ports = [2, 1]", "its first is larger"),
        (GOOD + "ports = [1]", "must be [first, last]"),
        (GOOD + 'memory = "many"', "Expected bytes"),
        (GOOD + "gpus = -1", "gpus is -1"),
        (GOOD + 'cordoned = "yes"', "must be true or false"),
        (GOOD + 'folder = "a\\nb"', "folder is not a line of text"),
        (GOOD + GOOD, "two machines are called gpu-1"),
        (GOOD + GOOD.replace("gpu-1", "gpu-2"), "gpu-1 and gpu-2 have the same address"),
    ],
)
def test_a_mistake_is_told_with_its_place(text: str, said: str):
    with pytest.raises(Misconfigured) as error:
        read(text)
    assert said in error.value.message
    assert "machines.toml" in error.value.message


def test_the_file_is_read_again_when_it_has_changed(tmp_path: Path):
    file = tmp_path / "machines.toml"
    inventory = Inventory(file)
    with pytest.raises(Misconfigured, match="cannot be read"):
        inventory.hosts()
    file.write_text(GOOD)
    first = inventory.hosts()
    assert list(first) == ["gpu-1"]
    assert inventory.hosts() is first
    file.write_text(GOOD.replace("gpu-1", "gpu-22"))
    assert list(inventory.hosts()) == ["gpu-22"]
    os.truncate(file, 2 << 20)
    with pytest.raises(Misconfigured, match="larger than"):
        inventory.hosts()
