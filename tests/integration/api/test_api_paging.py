"""Lists: newest first, by position, never counted."""

from __future__ import annotations

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from apps.accounts.services import token_create

pytestmark = pytest.mark.django_db


@pytest.fixture
def tokens(ada):
    return [token_create(user=ada, name=f"t{n}", scopes=[], expires_in=None)[0].name for n in range(7)]


def walk(client, url, key):
    pages = []
    while url:
        body = client.get(url).json()
        pages.append([row["name"] for row in body["results"]])
        url = body[key]
    return pages, body


def test_every_row_comes_once_newest_first(ada, signed_in, tokens):
    pages, last = walk(signed_in(ada), "/api/v1/tokens/?page_size=3", "next")
    assert pages == [["t6", "t5", "t4"], ["t3", "t2", "t1"], ["t0"]]
    assert last["previous"]


def test_one_can_go_back_to_the_beginning(ada, signed_in, tokens):
    client = signed_in(ada)
    _, last = walk(client, "/api/v1/tokens/?page_size=3", "next")
    pages, first = walk(client, last["previous"], "previous")
    assert pages == [["t3", "t2", "t1"], ["t6", "t5", "t4"]]
    assert first["next"]


def test_a_new_row_does_not_move_the_next_page(ada, signed_in, tokens):
    client = signed_in(ada)
    following = client.get("/api/v1/tokens/?page_size=3").json()["next"]
    token_create(user=ada, name="new", scopes=[], expires_in=None)
    assert [row["name"] for row in client.get(following).json()["results"]] == ["t3", "t2", "t1"]


def test_no_page_counts_or_skips(ada, signed_in, tokens):
    client = signed_in(ada)
    following = client.get("/api/v1/tokens/?page_size=2").json()["next"]
    with CaptureQueriesContext(
        connection,
    ) as queries:
        client.get(following)
    sql = " ".join(query["sql"] for query in queries).upper()
    assert "COUNT(" not in sql
    assert "OFFSET" not in sql
    assert '"ID" <' in sql


def test_the_first_page_has_no_previous_and_an_empty_list_no_next(ada, bob, signed_in, tokens):
    assert signed_in(ada).get("/api/v1/tokens/").json()["previous"] is None
    assert signed_in(bob).get("/api/v1/tokens/").json() == {"next": None, "previous": None, "results": []}


@pytest.mark.parametrize("size", ["0", "-1", "201", "x", "1e3", "²", "9" * 400])
def test_a_page_size_out_of_range_is_named(ada, signed_in, size):
    response = signed_in(ada).get("/api/v1/tokens/", {"page_size": size})
    assert response.status_code == 400
    assert response.json()["errors"][0]["field"] == "page_size"


@pytest.mark.parametrize("cursor", ["x", "A" * 23, "é", "' OR 1=1 --"])
def test_a_made_up_cursor_is_named(ada, signed_in, cursor):
    response = signed_in(ada).get("/api/v1/tokens/", {"cursor": cursor})
    assert response.status_code == 400
    assert response.json()["errors"][0]["field"] == "cursor"
