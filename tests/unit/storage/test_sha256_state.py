"""SHA-256 whose state is given on."""

from __future__ import annotations

import hashlib

import pytest

from yardmaster.storage.sha256_state import Sha256State


@pytest.mark.parametrize("size", [0, 1, 55, 56, 63, 64, 65, 119, 120, 128, 1000])
def test_it_is_what_hashlib_says(size: int):
    data = bytes(number % 251 for number in range(size))
    assert Sha256State().updated(data).hexdigest() == hashlib.sha256(data).hexdigest()


def test_a_state_goes_on_where_another_ended():
    data = b"what is hashed in pieces" * 50
    state = Sha256State()
    for at in range(0, len(data), 32):
        state = Sha256State(state.size, state.words, state.rest).updated(data[at : at + 32])
    assert state.hexdigest() == hashlib.sha256(data).hexdigest()
