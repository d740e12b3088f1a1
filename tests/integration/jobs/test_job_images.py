"""A job that names images: checked and pinned at the launch, and at a retry; what runs keeps what it has."""

from __future__ import annotations

import uuid
from typing import Any

import pytest

from apps.environments.models import Environment
from apps.images.models import Image
from apps.images.services import image_change, image_create, image_delete
from apps.jobs.checking import job_check
from apps.jobs.engines.configured import engine_named
from apps.jobs.models import Job, JobAttempt
from apps.jobs.services import job_retry
from apps.namespaces.models import Namespace
from tests.integration.jobs.world import StagedEngine, World, refuses_transactions, task_of
from yardmaster.engines.base import TaskAccess
from yardmaster.engines.fake import EngineWithImages
from yardmaster.errors import Problem, SpecRejected
from yardmaster.ids import JobKey
from yardmaster.job.spec import Role, TrainingSpec
from yardmaster.job.spec_images import PinnedImage
from yardmaster.job.spec_stored import stored_spec

FIRST, SECOND = (f"ghcr.io/team/tf@sha256:{digit * 64}" for digit in "12")


class ImageEngine(EngineWithImages, StagedEngine):
    """Notes what it is to run."""

    def __init__(self, *, name: str = "staged") -> None:
        super().__init__(name=name)
        self.submitted: dict[JobKey, TrainingSpec] = {}

    def submit(self, spec: TrainingSpec, key: JobKey, access: TaskAccess) -> None:
        self.submitted[key] = spec
        super().submit(spec, key, access)


@pytest.fixture
def image_world(db, settings, stores) -> World:
    settings.YARDMASTER_ENGINES = {
        "staged": {"class": f"{__name__}.ImageEngine", "options": {}},
        "plain": {"class": "tests.integration.jobs.world.StagedEngine", "options": {}},
    }
    settings.YARDMASTER_DEFAULT_ENGINE = "staged"
    engine = engine_named("staged")
    engine.before_verb = refuses_transactions()
    return World(engine)


@pytest.fixture
def mine(ada) -> Namespace:
    return Namespace.objects.get(owner=ada)


def add(actor, name: str = "tf", *, namespaces: Any = (), **facts: Any) -> Image:
    return image_create(name=name, facts={"reference": FIRST} | facts, namespaces=namespaces, actor=actor)


def problems(world: World, user, **changes: Any) -> tuple[Problem, ...]:
    with pytest.raises(SpecRejected) as found:
        world.launch(user, **changes)
    assert not Job.objects.exists()
    assert all(one.message and one.remedy for one in found.value.problems)
    return tuple(found.value.problems)


def refused(world: World, user, **changes: Any) -> dict[str, tuple[str, str]]:
    return {one.field: (one.code, one.value) for one in problems(world, user, **changes)}


def pinned(job: Job) -> dict[str, str]:
    return {one.name: one.reference for one in stored_spec(job.spec).pinned_images}


def test_it_is_pinned_at_the_launch_and_a_change_of_the_catalogue_changes_nothing(image_world, ada, admin):
    image = add(admin, pull_secret="registry-login")
    add(admin, "small", reference=SECOND)
    roles = {"worker": {"replicas": 2}, "ps": {"image": "small"}}
    job = image_world.launch(ada, image="tf", roles=roles)
    assert pinned(job) == {"tf": FIRST, "small": SECOND}
    image_change(image=image, facts={"reference": SECOND}, actor=admin)
    image_delete(image=image, actor=admin)
    job = image_world.again(job)
    assert pinned(job) == {"tf": FIRST, "small": SECOND}
    image_world.until_running(job)
    got = image_world.engine.submitted[job.key]
    assert got.image_of(Role.WORKER) == PinnedImage("tf", FIRST, "registry-login")
    assert got.image_of(Role.PS) == PinnedImage("small", SECOND)


def test_a_retry_takes_the_image_as_it_is_then_or_says_that_it_is_gone(image_world, ada, admin):
    image = add(admin)
    job = image_world.launch(ada, image="tf")
    image_change(image=image, facts={"reference": SECOND}, actor=admin)
    ended(image_world, job)
    job = job_retry(user=ada, job=image_world.again(job))
    assert pinned(job) == {"tf": SECOND}
    assert [pinned_of(job, number) for number in (1, 2)] == [FIRST, SECOND]
    ended(image_world, job)
    image_delete(image=image, actor=admin)
    with pytest.raises(SpecRejected) as found:
        job_retry(user=ada, job=image_world.again(job))
    assert [(one.field, one.code) for one in found.value.problems] == [("image", "unknown_image")]


def pinned_of(job: Job, number: int) -> str:
    return stored_spec(JobAttempt.objects.get(job=job, number=number).spec).pinned_images[0].reference


def ended(world: World, job: Job) -> None:
    world.until_running(world.again(job))
    for role in (Role.WORKER, Role.PS):
        world.engine.succeed(world.again(job), role)
    world.until_quiet()


def test_an_unknown_image_is_refused_wherever_it_stands(image_world, ada):
    roles = {"worker": {"replicas": 2, "image": "other"}, "ps": {}}
    assert refused(image_world, ada, image="tf", roles=roles) == {
        "image": ("unknown_image", "tf"), "roles.worker.image": ("unknown_image", "other"),
    }  # fmt: skip


def test_an_image_of_other_namespaces_is_refused_as_one_that_is_not_there(image_world, ada, bob, admin, mine):
    before = problems(image_world, bob, image="tf")
    add(admin, everyone=False, namespaces=[mine], enabled=False)
    assert problems(image_world, bob, image="tf") == before
    assert [(one.field, one.code, one.value) for one in before] == [("image", "unknown_image", "tf")]
    assert "no image tf that the namespace bob may use" in before[0].message
    image_change(image=Image.objects.get(), facts={"enabled": True}, actor=admin)
    assert problems(image_world, bob, image="tf") == before
    assert pinned(image_world.launch(ada, image="tf")) == {"tf": FIRST}


def test_one_that_is_turned_off_or_made_for_other_strategies_is_refused(image_world, ada, admin):
    add(admin, enabled=False, strategies=["single"])
    with pytest.raises(SpecRejected) as found:
        image_world.launch(ada, image="tf")
    assert [one.code for one in found.value.problems] == ["image_disabled", "image_strategy"]
    assert "single" in found.value.problems[1].message


@pytest.mark.parametrize("asked", [{"gpus": 1}, {"extended": {"device/a100": 1}}])
def test_gpus_need_an_image_that_can_use_them(image_world, ada, admin, asked):
    add(admin)
    add(admin, "cuda", gpus=True)
    roles = {"worker": {"replicas": 1, **asked}, "ps": {}}
    assert refused(image_world, ada, image="tf", roles=roles) == {"image": ("image_without_gpus", "tf")}
    roles["worker"]["image"] = "cuda"
    assert pinned(image_world.launch(ada, image="tf", roles=roles)) == {"tf": FIRST, "cuda": FIRST}


def test_an_engine_that_runs_no_images_says_so_and_which_do(image_world, ada, admin, signed_in, settings):
    add(admin)
    spec = image_world.spec_json(ada, image="tf")
    answer = signed_in(ada).post("/api/v1/jobs/", {"spec": spec, "engine": "plain"}, format="json")
    assert answer.status_code == 422, answer.content
    problem = answer.json()["errors"][0]
    assert (problem["field"], problem["code"], problem["value"]) == ("image", "images_not_run", "tf")
    assert "plain" in problem["message"]
    assert "staged" in problem["remedy"]


def test_an_operator_can_turn_images_off(image_world, ada, admin, monkeypatch):
    add(admin)
    monkeypatch.setattr(ImageEngine, "has_images", False)
    assert refused(image_world, ada, image="tf") == {"image": ("images_not_run", "tf")}


def test_a_check_says_the_same_and_creates_nothing(image_world, ada, admin, signed_in):
    client = signed_in(ada)
    spec = image_world.spec_json(ada, image="tf")
    said = client.post("/api/v1/jobs/check/", {"spec": spec}, format="json").json()
    assert [one["code"] for one in said["problems"]] == ["unknown_image"]
    add(admin)
    said = client.post("/api/v1/jobs/check/", {"spec": spec}, format="json").json()
    assert (said["problems"], said["verdict"]) == ([], "fits_now")
    assert not Job.objects.exists()


def test_the_api_shows_what_was_pinned_beside_the_specification(image_world, ada, admin, signed_in):
    add(admin, pull_secret="registry-login")
    job = image_world.launch(ada, image="tf")
    shown = signed_in(ada).get(f"/api/v1/jobs/{job.pk}/").json()
    digest = FIRST.partition("@")[2]
    assert shown["images"] == [{"name": "tf", "reference": FIRST, "digest": digest, "roles": ["worker", "ps"]}]
    assert "pinned_images" not in shown["spec"]
    again = signed_in(ada).post("/api/v1/jobs/", {"spec": shown["spec"]}, format="json")
    assert again.status_code == 201, again.content


def test_what_the_portal_pins_is_not_taken_from_users(image_world, ada, admin, signed_in):
    add(admin)
    own = [{"name": "tf", "reference": SECOND, "pull_secret": ""}]
    spec = image_world.spec_json(ada, image="tf", pinned_images=own)
    answer = signed_in(ada).post("/api/v1/jobs/", {"spec": spec}, format="json")
    assert [one["code"] for one in answer.json()["errors"]] == ["unknown_key"]


# --- the code's imports -----------------------------------------------------------------------------------------------


def warnings(world: World, user, source: str, **changes: Any) -> list[str]:
    code = str(world.code_version(user, {"train.py": source}).pk)
    spec = world.spec_json(user, code=code, strategy="single", roles={"worker": {}}, image="tf", **changes)
    found = job_check(user=user, namespace=Namespace.objects.get(owner=user), data=spec, engine=None)
    assert not found.problems, found.problems
    return [one.code for one in found.warnings]


def test_missing_packages_are_said_only_where_it_is_known_what_the_image_has(image_world, ada, admin):
    image = add(admin)
    source = "import numpy, pandas, cv2\nprint(numpy, pandas, cv2)\n"
    assert warnings(image_world, ada, source) == []
    image_change(image=image, facts={"packages": ["pandas"]}, actor=admin)
    assert warnings(image_world, ada, source) == ["missing_package", "missing_package"]
    image_change(image=image, facts={"packages": ["opencv-python", "pandas"], "tensorflow": "2.10.1"}, actor=admin)
    assert warnings(image_world, ada, source) == []


# --- packages ---------------------------------------------------------------------------------------------------------


def test_packages_are_kept_for_each_image(image_world, ada, admin, mine):
    image = add(admin)
    keys = [claimed(image_world, image_world.launch(ada, image=name)) for name in ("", "tf", "tf")]
    image_change(image=image, facts={"reference": SECOND}, actor=admin)
    keys.append(claimed(image_world, image_world.launch(ada, image="tf")))
    assert keys[1] == keys[2]
    assert len(set(keys)) == 3
    assert Environment.objects.filter(namespace=mine).count() == 3


def claimed(world: World, job: Job) -> str:
    world.until_running(job)
    body = {
        "role": "worker", "index": 0, "requirements": ["pandas"], "python": "3.11", "image": "a" * 64,
        "holder": str(uuid.uuid4()),
    }  # fmt: skip
    answer = task_of(world.again(job)).post("/api/v1/task/environment/", body, format="json")
    assert answer.status_code == 200, answer.content
    return str(answer.json()["environment"])
