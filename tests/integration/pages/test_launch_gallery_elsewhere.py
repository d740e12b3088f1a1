"""How much a newcomer fills in for the folders of the gallery that come to the launch page by another way than as a
chosen folder: from Git, as a TFJob, and in an image of their own."""

from __future__ import annotations

import pytest
from django.test import Client

from apps.code import worker
from apps.code.models import CodeImport, CodeVersion
from apps.datasets.models import Dataset
from apps.jobs.models import Job
from tests.integration.gallery.folders import GALLERY
from tests.integration.jobs.conftest import engine_settings, stores, world
from tests.integration.jobs.test_job_images import add, image_world
from tests.integration.pages.form_of_page import form_of
from tests.integration.pages.test_launch_from_git import host
from tests.integration.pages.test_launch_gallery import ELSEWHERE, is_right
from tests.integration.pages.test_launch_page import signed

__all__ = ["engine_settings", "host", "image_world", "signed", "stores", "world"]

pytestmark = pytest.mark.django_db
NEEDED = {"own_image": {"image"}, "git": {"git_address", "git_folder"}, "tfjob": {"tfjob"}}
"""The fields that are filled in. Beside them there are the counts, Launch, and for a TFJob its folder."""


def texts_of(folder: str, suffix: str = ".py") -> dict[str, str]:
    place = GALLERY / folder
    return {str(one.relative_to(place)): one.read_text() for one in sorted(place.rglob(f"*{suffix}"))}


def test_each_of_them_is_counted():
    assert set(NEEDED) == ELSEWHERE


def test_an_image_of_its_own_is_chosen(image_world, ada, admin, signed: Client):
    add(admin, "plants", packages=["plants"])
    code = image_world.code_version(ada, {"train.py": texts_of("own_image")["train.py"]})
    form = form_of(signed.get(f"/jobs/launch/?code_version={code.pk}").content.decode())
    assert NEEDED["own_image"] <= set(form)
    assert not is_right(signed, "own_image", form), "the engine's image has no such module"
    assert is_right(signed, "own_image", form | {"image": "plants"})


def test_the_address_and_the_folder_of_a_repository_are_written(world, ada, signed: Client, host):
    host.repository("you/repository", texts_of("git"))
    form = form_of(signed.get("/jobs/launch/").content.decode())
    written = {"git_address": f"{host.origin}/you/repository", "git_folder": "linear"}
    assert set(written) == NEEDED["git"]
    assert set(written) <= set(form)
    signed.post("/jobs/launch/git/", form | written)
    found = CodeImport.objects.get()
    worker.code_import(found.pk)
    # What the page does by itself when the code has come.
    taken = {"take": "code", "code": str(CodeVersion.objects.get().pk), "git_import": str(found.pk)}
    form = form_of(signed.post("/jobs/launch/", form | written | taken).content.decode())
    assert is_right(signed, "git", form)


def test_a_tfjob_is_pasted_beside_its_folder(world, ada, signed: Client):
    world.dataset_version(ada, {"points.csv": "x,y\n"})
    Dataset.objects.update(name="points")
    code = world.code_version(ada, texts_of("tfjob"))
    form = form_of(signed.get(f"/jobs/launch/?code_version={code.pk}").content.decode())
    assert NEEDED["tfjob"] <= set(form)
    pasted = {"take": "import", "tfjob": (GALLERY / "tfjob" / "tfjob.yaml").read_text()}
    form = form_of(signed.post("/jobs/launch/", form | pasted).content.decode())
    said = signed.post("/jobs/launch/preview/", form).content.decode()
    assert "launch-verdict-fits" in said
    assert signed.post("/jobs/launch/", form).status_code == 302
    made = Job.objects.get().spec
    assert (made["strategy"], made["entry_point"]) == ("between_graph", "train.py")
    assert made["roles"]["ps"]["replicas"] == made["roles"]["worker"]["replicas"] == 1
    assert "--steps=$(STEPS)" in made["arguments"]
