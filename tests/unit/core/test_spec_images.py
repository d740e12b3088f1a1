"""The image that a job names: how it is read, what is refused, and what is kept of it at the launch."""

from __future__ import annotations

import uuid
from dataclasses import replace
from typing import Any

import pytest

from yardmaster.errors import SpecRejected
from yardmaster.job.spec import Role
from yardmaster.job.spec_images import PinnedImage, is_image_name, is_pinned_reference
from yardmaster.job.spec_json import spec_from_json, spec_to_json
from yardmaster.job.spec_stored import sent_form, stored_form, stored_spec

DIGEST = "sha256:" + "0a" * 32
PINNED = (
    PinnedImage("tf-2.19", f"registry.example:5000/ml/tf:2.19@{DIGEST}", "registry-password"),
    PinnedImage("small", f"ghcr.io/team/small@{DIGEST}"),
)


def spec_json(**changes: Any) -> dict[str, Any]:
    roles = {"ps": {"replicas": 1, "image": "small"}, "worker": {"replicas": 2}}
    base = {"name": "job", "strategy": "between_graph", "roles": roles, "code": str(uuid.UUID(int=1))}
    return {**base, "entry_point": "a.py", "image": "tf-2.19", **changes}


def problems(**changes: Any) -> dict[str, tuple[str, str]]:
    with pytest.raises(SpecRejected) as found:
        spec_from_json(spec_json(**changes))
    assert all(one.message and one.remedy for one in found.value.problems)
    return {one.field: (one.code, one.value) for one in found.value.problems}


def test_a_role_has_an_image_of_its_own_or_that_of_the_job():
    spec = spec_from_json(spec_json())
    assert (spec.image, spec.roles[Role.PS].image, spec.roles[Role.WORKER].image) == ("tf-2.19", "small", "")
    assert spec_from_json(spec_to_json(spec)) == spec
    pinned = replace(spec, pinned_images=PINNED)
    assert pinned.image_of(Role.PS) == PINNED[1]
    assert pinned.image_of(Role.WORKER) == PINNED[0]
    assert pinned.image_of(Role.PS).digest == DIGEST


def test_without_a_name_the_engine_decides_and_before_the_launch_nothing_is_pinned():
    spec = spec_from_json(spec_json(image="", roles={"ps": {}, "worker": {}}))
    assert spec == spec_from_json({key: value for key, value in spec_json(roles=spec_to_json(spec)["roles"]).items()
                                   if key != "image"})  # fmt: skip
    assert replace(spec, pinned_images=PINNED).image_of(Role.WORKER) is None
    assert spec_from_json(spec_json()).image_of(Role.WORKER) is None


def test_what_was_pinned_is_stored_and_no_part_of_what_people_send():
    spec = replace(spec_from_json(spec_json()), pinned_images=PINNED)
    assert stored_spec(stored_form(spec)) == spec
    assert "pinned_images" not in spec_to_json(spec)
    assert sent_form(stored_form(spec)) == spec_to_json(spec)
    assert stored_form(spec_from_json(spec_json())) == spec_to_json(spec)
    assert problems(pinned_images=stored_form(spec)["pinned_images"]) == {
        "pinned_images": ("unknown_key", "a list of 2")
    }


def test_what_was_stored_before_there_were_images_has_none():
    old = spec_to_json(spec_from_json(spec_json()))
    del old["image"]
    for role in old["roles"].values():
        del role["image"]
    spec = stored_spec(old)
    assert (spec.image, spec.pinned_images, spec.roles[Role.PS].image) == ("", (), "")


@pytest.mark.parametrize("name", ["ghcr.io/team/tf@sha256:00", "TF", "-a", "a" * 64, "a b", "a\n", "ä"])
def test_an_image_is_named_as_in_the_catalogue(name: str):
    assert [*problems(image=name)] == ["image"]
    assert problems(roles={"ps": {"image": name}, "worker": {}})["roles.ps.image"][0] == "bad_value"
    assert not is_image_name(name)


def test_a_name_is_a_text():
    assert problems(image=3) == {"image": ("wrong_type", "3")}
    assert problems(roles={"ps": {"image": None}, "worker": {}}) == {"roles.ps.image": ("wrong_type", "null")}


def test_programs_of_the_portal_run_in_the_image_of_the_engine():
    changes = {"strategy": "single", "program": "jupyter", "options": {}, "code": None, "entry_point": ""}
    found = problems(**changes, roles={"worker": {"image": "small"}})
    assert found["image"] == ("conflict", "tf-2.19")
    assert found["roles.worker.image"] == ("conflict", "small")


def test_plain_tensorflow_servers_have_images():
    changes = {"strategy": "in_graph", "code": None, "entry_point": ""}
    assert spec_from_json(spec_json(**changes)).image == "tf-2.19"


@pytest.mark.parametrize(
    "reference",
    [
        f"registry.example:5000/ml/tf:2.19@{DIGEST}", f"ghcr.io/a/b_c/d-e@{DIGEST}", f"localhost/x@{DIGEST}",
        f"127.0.0.1:5000/x@{DIGEST}",
    ],
)  # fmt: skip
def test_a_reference_has_a_registry_a_repository_and_a_digest(reference: str):
    assert is_pinned_reference(reference)


@pytest.mark.parametrize(
    "reference",
    [
        "", "ghcr.io/a/b:latest", "ghcr.io/a@sha512:0", f"a/b@{DIGEST}", f"ghcr.io/A@{DIGEST}",
        f"ghcr.io/a@{DIGEST[:-1]}", f"https://ghcr.io/a@{DIGEST}", f"ghcr.io/a@{DIGEST}\n", f"ghcr.io/a b@{DIGEST}",
        f"user:x@ghcr.io/a@{DIGEST}", f"ghcr.io/{'a' * 500}@{DIGEST}", f"ghcr.io/{'a-' * 200}@{DIGEST}",
    ],
)  # fmt: skip
def test_what_may_mean_other_bytes_tomorrow_is_no_reference(reference: str):
    assert not is_pinned_reference(reference)
