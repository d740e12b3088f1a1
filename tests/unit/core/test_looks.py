"""Readings of models go before scans of buckets, which take turns."""

from __future__ import annotations

import uuid

import pytest

from celery_worker.looks import Looks

A, B, C = (uuid.UUID(int=number) for number in (1, 2, 3))
READ, SCAN = "read", "scan"


class Scene:
    """One process. Messages are delivered in the order in which they were sent, and the clock stands."""

    def __init__(self) -> None:
        self.now = 0.0
        self.queue: list[tuple[str, uuid.UUID]] = []
        self.looked: list[tuple[str, uuid.UUID]] = []
        self.looks = Looks(READ, SCAN, lambda message, subject: self.queue.append((message, subject)), lambda: self.now)

    def deliver(
        self, message: str, subject: uuid.UUID, meanwhile=lambda: None, instead: uuid.UUID | None = None
    ) -> None:
        def look(one: uuid.UUID) -> uuid.UUID:
            self.looked.append((message, instead or one))
            meanwhile()
            return instead or one

        self.looks.one(message, subject, look)


def test_a_reading_goes_before_the_scan_that_continues_and_those_that_wait():
    scene = Scene()

    def meanwhile() -> None:
        scene.deliver(SCAN, B)
        scene.queue.append((SCAN, A))  # it continues
        scene.deliver(READ, C)

    scene.deliver(SCAN, A, meanwhile)
    assert scene.queue == [(SCAN, A), (READ, C)]
    while scene.queue:
        scene.deliver(*scene.queue.pop(0))
    assert scene.looked == [(SCAN, A), (READ, C), (SCAN, B), (SCAN, A)]


def test_a_reading_that_another_process_took_does_not_keep_scans_for_long():
    scene = Scene()
    scene.deliver(SCAN, A, lambda: scene.deliver(READ, C))
    assert scene.queue == [(READ, C)]
    scene.deliver(SCAN, B)
    scene.now = 6.0
    scene.deliver(SCAN, A)
    assert scene.looked == [(SCAN, A), (SCAN, A)]
    assert scene.queue == [(READ, C), (SCAN, B)]


def test_who_leaves_the_slot_to_another_whose_turn_it_is_comes_next():
    scene = Scene()
    scene.deliver(SCAN, A, instead=B)
    assert (scene.looked, scene.queue) == ([(SCAN, B)], [(SCAN, A)])


def test_a_look_that_breaks_gives_the_slot_back():
    scene = Scene()

    def broken() -> None:
        raise RuntimeError("broken")

    with pytest.raises(RuntimeError):
        scene.deliver(SCAN, A, broken)
    scene.deliver(SCAN, A)
    assert len(scene.looked) == 2
