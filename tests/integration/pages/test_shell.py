"""What is around every page: the places, the namespace one works in, and pages about what went wrong."""

from __future__ import annotations

import pytest
from django.db import OperationalError, connection

from apps.accounts.models import User
from apps.namespaces.models import Membership, Namespace

pytestmark = pytest.mark.django_db


@pytest.fixture
def team(ada) -> Namespace:
    team = Namespace.objects.create(slug="vision", title="Vision research")
    Membership.objects.create(namespace=team, user=ada)
    return team


@pytest.fixture
def current(client):
    """The slug of the namespace that a page says one works in."""

    def get(path: str) -> str:
        response = client.get(path)
        assert response.status_code == 200
        return response.context["current_namespace"].slug

    return get


class TestNamespace:
    def test_one_begins_in_ones_own(self, ada, client, current, team):
        client.force_login(ada)
        assert current("/") == "ada"

    @pytest.mark.parametrize("by", ["slug", "pk"])
    def test_the_address_chooses_and_the_session_remembers(self, ada, client, current, team, by):
        client.force_login(ada)
        assert current(f"/?namespace={getattr(team, by)}") == "vision"
        assert current("/") == "vision"
        assert current("/?namespace=ada") == "ada"

    @pytest.mark.parametrize("named", ["bob", "nobody", "../x", "<script>", "x" * 3000])
    def test_a_foreign_or_unknown_one_is_the_same_404(self, ada, bob, client, current, named):
        client.force_login(ada)
        response = client.get("/", {"namespace": named})
        assert response.status_code == 404
        assert "<script>alert" not in response.content.decode()
        assert current("/") == "ada"

    def test_who_has_left_a_team_is_back_in_his_own(self, ada, client, current, team):
        client.force_login(ada)
        current("/?namespace=vision")
        Membership.objects.filter(namespace=team).delete()
        assert current("/") == "ada"

    def test_an_administrator_may_look_into_any(self, admin, bob, client, current):
        client.force_login(admin)
        assert current("/?namespace=bob") == "bob"
        assert current("/") == "bob"

    def test_the_selector_lists_ones_own_first_and_keeps_the_list_one_is_on(self, ada, client, team):
        client.force_login(ada)
        page = client.get("/find/?q=x").content.decode()
        assert page.index('href="/find/?namespace=ada"') < page.index('href="/find/?namespace=vision"')
        assert "Vision research" in page


class TestPlaces:
    def test_the_place_one_is_at_is_marked(self, ada, client):
        client.force_login(ada)
        assert '<a href="/" aria-current="page">' in client.get("/").content.decode()
        assert '<a href="/" aria-current="page">' not in client.get("/jobs/").content.decode()
        assert '<a href="/jobs/" aria-current="page">' in client.get("/jobs/").content.decode()

    def test_there_is_a_way_past_them_for_the_keyboard(self, ada, client):
        client.force_login(ada)
        page = client.get("/").content.decode()
        assert page.index('href="#content"') < page.index('aria-label="Main"')


def outage(execute, sql, params, many, context):
    raise OperationalError("no database here")


class TestProblems:
    def test_a_page_that_is_not_there_says_what_to_do(self, ada, client):
        client.force_login(ada)
        response = client.get("/nothing/")
        assert response.status_code == 404
        page = response.content.decode()
        assert "Go home" in page
        assert 'href="/find/"' in page

    def test_while_the_database_is_away_a_page_says_so_and_comes_back(self, ada, client):
        client.force_login(ada)
        client.raise_request_exception = False
        with connection.execute_wrapper(outage):
            response = client.get("/")
        assert response.status_code == 503
        assert response.headers["Retry-After"]
        page = response.content.decode()
        assert "temporarily unavailable" in page
        assert "data-waits-for-portal" in page
        assert "Running jobs are not affected" in page
        assert "no database here" not in page

    def test_a_page_that_fails_needs_nothing_that_may_be_broken(self, ada, client, monkeypatch):
        from portal import home

        client.force_login(ada)
        client.raise_request_exception = False
        monkeypatch.setattr(home, "overview_of", lambda *_: 1 / 0)
        with_nothing = client.get("/")
        assert with_nothing.status_code == 500
        page = with_nothing.content.decode()
        assert "ZeroDivision" not in page
        assert "Server error" in page

    def test_a_part_that_fails_is_words_for_a_note(self, ada, client):
        client.force_login(ada)
        response = client.get("/?namespace=nobody", headers={"HX-Request": "true"})
        assert response.status_code == 404
        assert response.headers["Content-Type"] == "text/plain; charset=utf-8"
        assert "There is no such namespace" in response.content.decode()

    def test_what_is_wrong_with_each_field_is_listed(self, ada, client):
        client.force_login(ada)
        response = client.get("/jobs/?cursor=nonsense")
        assert response.status_code == 400
        assert "The cursor does not belong to this list." in response.content.decode()


def test_names_of_people_are_text(client):
    user = User.objects.create_user("<b>eve</b>", "eve@example.org", "correct horse battery")
    client.force_login(user)
    assert "<b>eve" not in client.get("/").content.decode()
