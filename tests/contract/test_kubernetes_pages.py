"""Long lists come in pages: all that was there at one moment, or an error, and never a part of it."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.contract.engine_harness import ACCESS, KubernetesHarness, new_key, spec_of, wait_for
from tests.fakes.kubernetes_api import KubernetesApi
from yardmaster.engines.kubernetes.client import api as api_module
from yardmaster.engines.kubernetes.client.api import Api
from yardmaster.engines.kubernetes.client.connection import connect_to
from yardmaster.engines.kubernetes.client.errors import Expired
from yardmaster.engines.kubernetes.observe.store import KINDS
from yardmaster.engines.kubernetes.render import names

PLACES = 7


@pytest.fixture(autouse=True)
def short_pages(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(api_module, "_PAGE", 2)


@pytest.fixture
def server() -> Iterator[KubernetesApi]:
    made = KubernetesApi()
    yield made
    made.close()


@pytest.fixture
def harness() -> Iterator[KubernetesHarness]:
    made = KubernetesHarness(watch=True)
    yield made
    made.close()


def put(server: KubernetesApi, *names: str) -> None:
    for name in names:
        server.store.write(("nodes", "", name), {"kind": "Node", "metadata": {"name": name}})


def names_of(found: object) -> list[str]:
    return [one["metadata"]["name"] for one in found]  # type: ignore[attr-defined]


def test_all_pages_are_as_of_the_version_of_the_first(server: KubernetesApi):
    put(server, *(f"n{number}" for number in range(PLACES)))
    version = str(server.store.version)
    found, listed_at = Api(connect_to(server.url)).find_paged("Node")
    assert listed_at == version
    first = next(found)
    put(server, "n-later")
    server.store.delete(("nodes", "", "n6"), 0)
    assert names_of([first, *found]) == [f"n{number}" for number in range(PLACES)]
    assert server.count("list") == 4


def test_a_list_that_fits_into_one_page_is_one_request(server: KubernetesApi):
    put(server, "a", "b")
    assert names_of(Api(connect_to(server.url)).find("Node")) == ["a", "b"]
    assert server.count("list") == 1


def test_what_the_server_no_longer_remembers_is_an_error(server: KubernetesApi):
    put(server, "a", "b", "c")
    found, _ = Api(connect_to(server.url)).find_paged("Node")
    server.store.forget_history()
    with pytest.raises(Expired):
        list(found)


class Forgetful(dict[str, object]):
    """Of lists that were begun: the rest of the first few is forgotten before it is asked for."""

    def __init__(self, times: int) -> None:
        self.left = times

    def __setitem__(self, token: str, rest: object) -> None:
        self.left -= 1
        if self.left < 0:
            super().__setitem__(token, rest)


def test_a_watch_whose_list_breaks_off_begins_again_and_misses_nothing(harness: KubernetesHarness):
    keys = [new_key() for _ in range(3)]
    for key in keys:
        harness.engine.submit(spec_of(), key, ACCESS)
    wait_for(lambda: len(harness.api.store.find("pods")) == 3 * len(keys))
    harness.api.store.pages = Forgetful(len(KINDS))
    changes = harness.engine.changes()
    told = set()
    while told != set(keys):
        told.add(next(changes))
    watching = harness.engine._watching
    wait_for(watching.is_live)
    assert harness.api.store.pages.left < 0
    for key in keys:
        seen = watching.store.view(names.namespace_name(key.namespace_id, harness.engine.options), key.name)
        assert {kind: len(one.found) for kind, one in seen.items()} == dict(zip(KINDS, (1, 1, 1, 3), strict=True))
