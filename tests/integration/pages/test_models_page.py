"""The pages of models: what jobs produced."""

from __future__ import annotations

import re

import pytest
from django.urls import reverse

from apps.registry.models import ModelVersion, Stage
from apps.registry.stages import stage_set
from apps.uploads.delivery import LARGE_ARCHIVE
from tests.integration.model_versions import job_of, version_of

pytestmark = pytest.mark.django_db

HOSTILE = "<script>alert(1)</script>\"'\u05d0"


def make(user, name: str = "digits", **facts) -> ModelVersion:
    return version_of(job_of(user, name), **facts)


def test_without_models_the_page_says_how_one_comes_about(web):
    text = web.get(reverse("models_page")).content.decode()
    assert "No models yet" in text
    assert "MODEL_DIR" in text


def test_the_list_leads_to_the_model_its_newest_version_and_its_job(web, ada, django_assert_max_num_queries):
    found = [make(ada, f"digits-{n}", attempt=n) for n in (1, 2)]
    with django_assert_max_num_queries(8):
        text = web.get(reverse("models_page")).content.decode()
    for version in found:
        assert reverse("model_page", args=[version.parent_id]) in text
        assert reverse("model_version_page", args=[version.pk]) in text
        assert reverse("job_page", args=[version.job_id]) in text
    assert "digits-1" not in web.get(reverse("models_page"), {"search": "ts-2"}).content.decode()


def test_a_version_shows_its_files_and_how_to_fetch_them(web, ada, django_assert_max_num_queries):
    model = make(ada)
    with django_assert_max_num_queries(12):
        text = web.get(reverse("model_version_page", args=[model.pk])).content.decode()
    assert "saved_model.pb" in text
    assert "yardmaster models download digits@1" in text


def test_a_file_is_a_redirect_to_a_short_lived_address(web, ada):
    address = reverse("model_file_page", args=[make(ada).pk])
    answer = web.get(address, {"path": "saved_model.pb"})
    assert answer.status_code == 302
    assert "/storage/objects/" in answer.headers["Location"]
    assert web.get(address, {"path": "nothing"}).status_code == 404


def test_all_files_come_as_one_zip(web, ada):
    answer = web.get(reverse("model_archive_page", args=[make(ada).pk]))
    assert b"saved_model.pb" in b"".join(answer.streaming_content)


@pytest.mark.parametrize(("size", "is_named"), [(LARGE_ARCHIVE, False), (LARGE_ARCHIVE + 1, True)])
def test_a_large_version_names_the_command_that_downloads_it_below_the_buttons(web, ada, size, is_named):
    version = make(ada)
    ModelVersion.objects.filter(pk=version.pk).update(size=size)
    text = web.get(reverse("model_version_page", args=[version.pk])).content.decode()
    buttons = text[text.index("Download ZIP") : text.index('class="row row-cards"')]
    assert ("yardmaster models download digits@1" in buttons) is is_named


def test_a_foreign_model_is_a_404(ada, bob, client):
    version = make(ada)
    client.force_login(bob)
    assert client.get(reverse("model_page", args=[version.parent_id])).status_code == 404
    for name in ("model_version_page", "model_file_page", "model_archive_page"):
        assert client.get(reverse(name, args=[version.pk])).status_code == 404
    assert str(version.parent_id) not in client.get(reverse("models_page")).content.decode()


def test_a_hostile_name_harms_no_page(web, ada):
    version = make(ada, HOSTILE)
    pages = [reverse("model_page", args=[version.parent_id]), reverse("model_version_page", args=[version.pk])]
    for address in (reverse("models_page"), *pages):
        assert "<script>alert" not in web.get(address).content.decode()


def test_a_model_shows_its_versions_their_metrics_and_stages(web, ada, django_assert_max_num_queries):
    metrics = [
        {"run": "", "tag": tag, "step": 9, "value": value} for tag, value in (("loss", 0.25), ("accuracy", 0.875))
    ]
    version = [make(ada, metrics=metrics) for _ in range(3)][-1]
    stage_set(version, Stage.PRODUCTION, actor=ada, note="best so far")
    address = reverse("model_page", args=[version.parent_id])
    with django_assert_max_num_queries(12):
        text = web.get(address).content.decode()
    assert text.index("accuracy") < text.index("loss")
    assert "0.875" in text
    assert "best so far" in text
    listed = web.get(reverse("models_page")).content.decode()
    assert re.search(r"production <span[^>]*>version</span> 3", listed)
    assert "accuracy</bdi>" in listed


def test_a_stage_is_chosen_on_the_page_and_a_stranger_cannot(web, ada, bob, client):
    version = make(ada)
    address = reverse("model_version_stage_page", args=[version.pk])
    answer = web.post(address, {"stage": "production", "back": "model"}, follow=True)
    assert answer.redirect_chain[-1][0] == reverse("model_page", args=[version.parent_id])
    assert "is now in production" in answer.content.decode()
    assert web.get(address).status_code == 405
    assert web.post(address, {"stage": "best"}).status_code == 400
    client.force_login(bob)
    assert client.post(address, {"stage": ""}).status_code == 404


def test_deleted_ones_are_listed_restored_and_removed(web, ada, django_capture_on_commit_callbacks):
    version = make(ada)
    model = version.parent
    answer = web.post(reverse("model_delete_page", args=[model.pk]), {"when": "later"}, follow=True).content.decode()
    assert "can be restored" in answer
    assert "Deleted" in answer
    assert web.get(reverse("model_page", args=[model.pk])).status_code == 404
    deleted = web.get(reverse("models_page"), {"deleted": "1"}).content.decode()
    assert reverse("model_restore_page", args=[model.pk]) in deleted
    assert web.get(reverse("model_delete_page", args=[model.pk])).status_code == 200
    assert web.post(reverse("model_restore_page", args=[model.pk])).status_code == 302
    assert web.get(reverse("model_page", args=[model.pk])).status_code == 200
    web.post(reverse("model_version_delete_page", args=[version.pk]), {"when": "later"})
    shown = web.get(reverse("model_page", args=[model.pk])).content.decode()
    assert "Deleted versions" in shown
    assert web.post(reverse("model_version_restore_page", args=[version.pk])).status_code == 302
    with django_capture_on_commit_callbacks(execute=True):
        web.post(reverse("model_delete_page", args=[model.pk]), {"when": "now"})
    assert not ModelVersion.objects.exists()


def test_what_is_in_production_is_not_deleted_and_the_page_says_so(web, ada):
    version = make(ada)
    stage_set(version, Stage.PRODUCTION, actor=ada)
    answer = web.post(reverse("model_version_delete_page", args=[version.pk]), {"when": "now"})
    assert answer.status_code == 409
    assert "is in production" in answer.content.decode()


def test_versions_are_compared_side_by_side(web, ada):
    source = {
        "arguments": ["--lr=0.1", "--steps", "5"],
        "inputs": [{"version": "x", "as": "", "name": "d", "number": 1}],
    }
    first = make(ada, source=source, metrics=[{"run": "", "tag": "loss", "step": 1, "value": 0.5}])
    make(ada, source=source | {"arguments": ["--lr=0.2", "--steps", "5"]})
    address = reverse("model_compare_page", args=[first.parent_id])
    text = web.get(address, {"version": ["1", "2"]}).content.decode()
    assert "<bdi>--lr</bdi>" in text
    assert "<bdi>--steps</bdi>" in text
    only = web.get(address, {"version": ["1", "2"], "show": "differences"}).content.decode()
    assert "<bdi>--lr</bdi>" in only
    assert "<bdi>--steps</bdi>" not in only
    for numbers in (["1"], ["1", "x"], [str(n) for n in range(9)]):
        assert web.get(address, {"version": numbers}).status_code == 400
    assert web.get(address, {"version": ["1", "7"]}).status_code == 404


def test_an_address_of_before_leads_to_the_version(web, ada):
    version = make(ada)
    answer = web.get(reverse("model_page", args=[version.pk]))
    assert answer.headers["Location"] == reverse("model_version_page", args=[version.pk])


def test_a_deleted_job_is_named_and_not_linked(web, ada):
    version = make(ada)
    job = version.source_job
    version.job.delete()
    text = web.get(reverse("model_version_page", args=[version.pk])).content.decode()
    assert reverse("job_page", args=[job]) not in text
    assert "(deleted)" in text


def test_a_version_of_many_files_is_shown_page_by_page(web, ada, django_assert_max_num_queries):
    version = make(ada, content={f"v/{n:05}.bin": b"" for n in range(250)})
    address = reverse("model_version_page", args=[version.pk])
    with django_assert_max_num_queries(12):
        text = web.get(address).content.decode()
    assert "v/00099.bin" in text
    assert "v/00100.bin" not in text
    following = re.search(r'rel="next" href="([^"]+)"', text)[1].replace("&amp;", "&")
    assert "v/00100.bin" in web.get(f"{address}{following}").content.decode()
