"""One whole portal for every file of this folder that breaks nothing for good: starting one takes its time."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.real.scene import Scene, scene


@pytest.fixture(scope="session")
def _shared_scene() -> Iterator[Scene]:
    with scene() as one:
        yield one


@pytest.fixture
def portal_scene(_shared_scene: Scene) -> Scene:
    """The portal with all of its processes, whatever an earlier test did to them."""
    _shared_scene.portal.start_stopped()
    return _shared_scene


@pytest.fixture(autouse=True)
def _cheap_passwords_and_no_counts():
    """These tests use no database of their own: what the folder above prepares for Django is not needed here."""
