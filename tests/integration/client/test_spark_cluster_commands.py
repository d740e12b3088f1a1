"""`yardmaster spark-clusters` against a real portal, and the SDK with it."""

from __future__ import annotations

import asyncio
import io
from dataclasses import replace

import pytest

from yardmaster_client.aio import AsyncYardmaster
from yardmaster_client.errors import PortalError

pytestmark = pytest.mark.slow
MASTER = "spark://127.0.0.1:9"


def test_clusters_are_registered_listed_and_removed_from_the_command_line(yardmaster, monkeypatch):
    assert yardmaster("spark-clusters", "set", "farm").code == 2, "a new one needs its master"
    needed = ["--master", MASTER, "--driver-address", "127.0.0.1"]
    refused = yardmaster("spark-clusters", "set", "farm", *needed, "--python", "no python")
    assert (refused.code, "interpreter on their machines" in refused.err) == (1, True)
    monkeypatch.setattr("sys.stdin", io.StringIO("swordfish\n"))
    made = yardmaster("spark-clusters", "set", "farm", *needed, "--secret", "--most-executors", 4)
    assert made.code == 0, made.err
    assert "swordfish" not in made.out + made.err
    limits = ["--most-memory", "4Gi", "--most-executors", 0]
    changed = yardmaster("spark-clusters", "set", "farm", *limits, "--json").json
    assert (changed["most_memory"], changed["most_executors"], changed["has_secret"]) == (4 << 30, None, True)
    listed = yardmaster("spark-clusters", "list")
    assert all(word in listed.out for word in ("farm", MASTER, "4.0 GiB", "no limit")), listed.out
    assert [one["name"] for one in yardmaster("spark-clusters", "list", "--json").json] == ["farm"]
    assert "Address of drivers" in yardmaster("spark-clusters", "show", "farm").out
    assert yardmaster("spark-clusters", "set", "farm", "--most-memory", "much").code == 2
    assert yardmaster("spark-clusters", "set", "farm", "--no-secret", "--off", "--json").json["has_secret"] is False
    assert yardmaster("spark-clusters", "list", "--json", "-n", "ada").json == []
    assert yardmaster("spark-clusters", "delete", "farm", "--yes").code == 0
    assert yardmaster("spark-clusters", "show", "farm").code == 1


def test_a_check_waits_for_what_was_found_and_says_whether_a_master_answers(yardmaster, ada, monkeypatch):
    ada.spark_clusters.create("far", MASTER, "127.0.0.1")
    looked = iter(["checking", "unreachable"])
    get = type(ada.spark_clusters).get

    def found(clusters, name):
        return replace(get(clusters, name), state=next(looked), problem="127.0.0.1:9: Connection refused")

    monkeypatch.setattr(type(ada.spark_clusters), "get", found)
    monkeypatch.setattr("yardmaster_client.cli.spark_clusters.LOOK_EVERY", 0.0)
    checked = yardmaster("spark-clusters", "check", "far")
    assert (checked.code, "Connection refused" in checked.out) == (1, True), checked
    ada.spark_clusters.delete("far")


def test_the_sdk_has_spark_clusters_in_both_forms(ada):
    made = ada.spark_clusters.create("sdk", MASTER, "127.0.0.1", namespaces=["ada"], most_cores=8)
    assert (made.everyone, made.namespaces, made.most_cores) == (False, ("ada",), 8)
    assert ada.spark_clusters.change("sdk", enabled=False).enabled is False
    assert [one.name for one in ada.spark_clusters.list(namespace="ada")] == []
    assert asyncio.run(_names(ada)) == ["sdk"]
    ada.spark_clusters.delete("sdk")
    with pytest.raises(PortalError) as found:
        ada.spark_clusters.get("sdk")
    assert found.value.code == "unknown_spark_cluster"


async def _names(ada) -> list[str]:
    async with AsyncYardmaster(ada.transport.url, ada.transport.token) as portal:
        return [one.name async for one in portal.spark_clusters.list()]
