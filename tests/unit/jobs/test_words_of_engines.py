"""What engines and their machines say, as rows keep it: nothing that a database refuses."""

from __future__ import annotations

import json

from apps.jobs.engines.snapshots import _machine
from apps.jobs.worker.setbacks import shown_of
from yardmaster.engines.base import Machine, MachineState
from yardmaster.errors import Unavailable
from yardmaster.job.spec import NOTHING

WORDS = "no\0\ud800"


def test_what_a_machine_says_can_be_kept():
    one = Machine("m", MachineState.NOT_READY, NOTHING, NOTHING, (), message=WORDS, details={"unshown": WORDS})
    kept = _machine(one)
    assert kept["message"] == kept["details"]["unshown"] == "no\ufffd?"
    assert "\\u0000" not in json.dumps(kept)


def test_the_reason_of_a_setback_can_be_kept():
    shown = shown_of(Unavailable(WORDS, remedy=WORDS))
    assert (shown["message"], shown["remedy"]) == ("no\ufffd?", "no\ufffd?")
