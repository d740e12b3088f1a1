"""A data connection to the Ignite of checkpoints does not list what the portal keeps there."""

from __future__ import annotations

import io

import pytest

from tests.real.ignite import Ignite
from tests.real.ignite_store import caches, ignite_node
from yardmaster.ignite.looking import Wanted, look
from yardmaster.ignite.nodes import ignite_policy
from yardmaster.storage.ignite import IgniteStorage
from yardmaster.storage.ignite_rows import caches_of

__all__ = ["ignite_node"]
pytestmark = [pytest.mark.ignite, pytest.mark.slow]


def test_the_caches_of_the_store_are_not_listed(ignite_node: Ignite) -> None:
    options = ignite_node.store_options(name="HIDDEN")
    store = IgniteStorage(base_url="http://portal", signing_key="k" * 32, **options)  # type: ignore[arg-type]
    store.put("k", io.BytesIO(b"kept"))
    store.close()
    own = caches_of("HIDDEN")
    assert own == {one for one in caches(ignite_node) if one.startswith("HIDDEN_")}
    found = look(Wanted([("127.0.0.1", ignite_node.ports[0])], {}, own), ignite_policy(["127.0.0.1"], ["1-65535"]))
    assert not own & {one["name"] for one in found["caches"]}
    assert found["notes"] == ["The portal keeps checkpoints in this cluster. Its own tables are not shown."]
