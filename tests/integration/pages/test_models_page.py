"""The pages of models: what jobs produced."""

from __future__ import annotations

import pytest
from django.urls import reverse

from apps.registry.models import ModelVersion
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
    assert f"yardmaster models download {model.pk}" in text


def test_a_file_is_a_redirect_to_a_short_lived_address(web, ada):
    address = reverse("model_file_page", args=[make(ada).pk])
    answer = web.get(address, {"path": "saved_model.pb"})
    assert answer.status_code == 302
    assert "/storage/objects/" in answer.headers["Location"]
    assert web.get(address, {"path": "nothing"}).status_code == 404


def test_all_files_come_as_one_zip(web, ada):
    answer = web.get(reverse("model_archive_page", args=[make(ada).pk]))
    assert b"saved_model.pb" in b"".join(answer.streaming_content)


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
