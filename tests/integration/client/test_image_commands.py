"""`yardmaster images` and `jobs launch --image` against a real portal, and the SDK with it."""

from __future__ import annotations

import asyncio

import pytest

from yardmaster_client.aio import AsyncYardmaster
from yardmaster_client.errors import PortalError

pytestmark = pytest.mark.slow
REFERENCE = "registry.example/ml/tf:2.19@sha256:" + "ab" * 32


def test_images_are_kept_listed_and_named_from_the_command_line(yardmaster, ada, job_file, script):
    assert yardmaster("images", "set", "tf").code == 2, "a new one needs its reference"
    refused = yardmaster("images", "set", "tf", "--reference", "ghcr.io/a/b:latest")
    assert refused.code == 1
    assert "digest" in refused.err
    facts = ["--python", "3.11", "--tensorflow", "2.19.0", "--gpus", "--strategy", "single", "--package", "pandas"]
    made = yardmaster("images", "set", "tf", "--reference", REFERENCE, *facts, "--description", "With pandas")
    assert made.code == 0, made.err
    assert yardmaster("images", "set", "tf", "--no-gpus", "--json").json["gpus"] is False
    listed = yardmaster("images", "list")
    assert all(word in listed.out for word in ("tf", "3.11", "2.19.0", "With pandas", "single"))
    assert yardmaster("images", "list", "--json").json[0]["digest"] == REFERENCE.partition("@")[2]
    assert "pandas" in yardmaster("images", "show", "tf").out
    refused = yardmaster("jobs", "launch", job_file, "--code", script, "--image", "tf")
    assert refused.code == 1, "the local engine runs no images"
    assert "local" in refused.err
    assert "runs no images" in refused.err
    assert yardmaster("images", "delete", "tf", "--yes").code == 0
    assert yardmaster("images", "list", "--json").json == []
    assert yardmaster("images", "show", "tf").code == 1


def test_the_sdk_has_the_catalogue_in_both_forms(ada):
    made = ada.images.create("sdk", REFERENCE, namespaces=["ada"], packages=["pandas"])
    assert (made.everyone, made.namespaces, made.packages) == (False, ("ada",), ("pandas",))
    assert ada.images.change("sdk", enabled=False).enabled is False
    assert [one.name for one in ada.images.list(namespace="ada")] == []
    assert asyncio.run(listed(ada)) == ["sdk"]
    ada.images.delete("sdk")
    with pytest.raises(PortalError) as found:
        ada.images.get("sdk")
    assert found.value.code == "unknown_image"


async def listed(ada) -> list[str]:
    async with AsyncYardmaster(ada.transport.url, ada.transport.token) as portal:
        return [one.name async for one in portal.images.list()]
