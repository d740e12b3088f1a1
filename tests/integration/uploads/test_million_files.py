"""A version of a million files: a page of it, one file and what differs cost few statements, and no list is held."""

from __future__ import annotations

import tracemalloc
from itertools import islice

import pytest

from apps.datasets.models import DatasetVersion
from apps.uploads.versioned import paging, selectors
from apps.uploads.versioned.comparing import lists_compare
from tests.integration.many_files import path_of, version_of

COUNT = 1_000_000
MOST_STATEMENTS = 8


@pytest.fixture
def large(ada) -> DatasetVersion:
    return version_of(ada, COUNT)


def test_a_page_costs_what_a_page_of_a_thousand_costs(ada, large, signed_in, django_assert_max_num_queries):
    client, address = signed_in(ada), f"/api/v1/dataset-versions/{large.pk}/files/"
    pages = {"first": address}
    pages["second"] = client.get(address).json()["next"]
    pages["middle"] = f"{address}?cursor={paging._cursor('n', path_of(499_950))}"
    pages["last"] = f"{address}?cursor={paging._cursor('n', path_of(COUNT - 60))}"
    pages["back"] = f"{address}?cursor={paging._cursor('p', path_of(500_050))}"
    for name, page in pages.items():
        with django_assert_max_num_queries(MOST_STATEMENTS, info=name):
            answer = client.get(page)
        found = [one["path"] for one in answer.json()["results"]]
        assert found == sorted(found)
        assert len(found) == (59 if name == "last" else 100)
    assert answer.json()["results"][-1]["path"] == path_of(500_049)
    with django_assert_max_num_queries(MOST_STATEMENTS + 10):  # a page has more around the list
        assert path_of(0) in client.get(f"/datasets/{large.parent_id}/").content.decode()


@pytest.mark.long
def test_nothing_holds_the_list(large, django_assert_max_num_queries):
    with django_assert_max_num_queries(2):
        wanted = [path_of(0), path_of(777_777), path_of(COUNT - 1), "none"]
        assert set(selectors.files_at(large, wanted)) == set(wanted[:3])
    with django_assert_max_num_queries(2):
        assert [one.path for one in islice(selectors.files_in(large, path_of(999_990)), 20)][-1] == path_of(COUNT - 1)
    tracemalloc.start()
    count = sum(1 for _ in islice(selectors.files_in(large), 100_000))
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert (count, peak < 24 << 20) == (100_000, True)


def test_a_search_looks_at_some_files_for_each_page(ada, monkeypatch):
    monkeypatch.setattr(paging, "MOST_SEARCHED", 10_000)
    version = version_of(ada, 30_000)
    page = paging.files_page(version, "", 50, lambda file: file.path.endswith("0015000.txt"))
    assert (page.rows, page.is_short) == ([], True)
    page = paging.files_page(version, page.next or "", 50, lambda file: file.path.endswith("0015000.txt"))
    assert [one.path for one in page.rows] == [path_of(15_000)]
    assert page.next is not None


def test_what_differs_between_two_versions_is_counted_from_both_streams(ada, django_assert_max_num_queries):
    before, after = version_of(ada, 30_000), version_of(ada, 30_500, changed=12_345)
    with django_assert_max_num_queries(20):
        changes = lists_compare(before.upload_id, after.upload_id, most=100).changes
    assert changes.counts == {"added": 500, "changed": 1, "removed": 0}
    assert (changes.changed, len(changes.added)) == ([path_of(12_345)], 100)
