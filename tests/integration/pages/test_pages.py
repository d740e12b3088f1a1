"""The pages: there for those who may see them, whole without built assets, and plain about problems."""

from __future__ import annotations

import uuid

import pytest
from django.test import Client

pytestmark = pytest.mark.django_db
PAGES = [
    "/accounts/login/",
    "/accounts/password/reset/",
    "/accounts/signup/",
]
PAGES_OF_USERS = ["/", "/accounts/password/change/", "/accounts/logout/"]


@pytest.mark.parametrize("path", PAGES)
def test_a_stranger_sees_the_pages_for_strangers(client, path):
    assert client.get(path).status_code == 200


@pytest.mark.parametrize("path", PAGES_OF_USERS)
def test_a_user_sees_the_pages_for_users_and_a_stranger_none(ada, client, path):
    assert client.get(path).status_code == 302
    client.force_login(ada)
    response = client.get(path)
    assert response.status_code == 200
    assert "<title>" in response.content.decode()


def test_a_job_that_is_unknown_or_foreign_is_a_404_page(ada, client):
    client.force_login(ada)
    response = client.get(f"/jobs/{uuid.uuid4()}/")
    assert response.status_code == 404
    assert response.headers["Content-Type"].startswith("text/html")


def test_a_form_that_has_grown_old_says_what_to_do(ada):
    client = Client(enforce_csrf_checks=True)
    response = client.post("/accounts/login/", {"login": "ada", "password": "x"})
    assert response.status_code == 403
    assert "reload the page" in response.content.decode()


@pytest.mark.parametrize("path", ["/", "/find/?q=x", "/accounts/login/", "/nothing/"])
def test_no_page_holds_a_script_or_anything_from_elsewhere(ada, client, path):
    client.force_login(ada)
    page = client.get(path).content.decode()
    assert "<script>" not in page
    assert " onclick=" not in page
    assert " style=" not in page
    assert 'src="http' not in page
    assert 'href="http' not in page
