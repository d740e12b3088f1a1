"""How far the script is: the largest step that its events or its output show, and Keras' epoch. Cheap on purpose.

Output is only looked at in samples (`Intake` gives the end of a chunk now and then), so a number may be missed; the
next sample has a later one.
"""

from __future__ import annotations

import re
import threading
from typing import Dict, Optional

LOOK_AT = 2048
EPOCH = re.compile(rb"\bEpoch:? (\d{1,9})/(\d{1,9})\b")
STEP = re.compile(rb"\b(?:global[_ ]?)?steps?\s*[ =:]\s*(\d{1,15})(?:\s*/\s*(\d{1,15}))?\b", re.IGNORECASE)


class Progress:
    """Collects; may be asked and told from any thread."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._step: Optional[int] = None
        self._total: Optional[int] = None
        self._epoch: Optional[int] = None

    @property
    def step(self) -> int:
        """The largest step seen, 0 before there was one."""
        return self._step or 0

    @property
    def reached(self) -> int:
        """How far the script came: its largest step, or the epochs that it finished where it shows no steps."""
        return self._step if self._step is not None else max(0, (self._epoch or 0) - 1)

    def see_step(self, step: int, total: Optional[int] = None) -> None:
        with self._lock:
            self._step = max(step, self._step or 0)
            if total is not None and total >= step:
                self._total = total

    def see_output(self, tail: bytes, look_at: int = LOOK_AT) -> None:
        """Look for `Epoch 2/5`, `step 120`, `global_step=120`, `Step: 120/200` in the last of the output."""
        sample = tail[-look_at:]
        epochs = EPOCH.findall(sample)
        if epochs:
            self._epoch = int(epochs[-1][0])
        steps = STEP.findall(sample)
        if steps:
            step, total = steps[-1]
            self.see_step(int(step), int(total) if total else None)

    def facts(self) -> Dict[str, int]:
        """The report's `progress`; empty while nothing is known."""
        with self._lock:
            if self._step is None and self._epoch is None:
                return {}
            facts = {"step": self._step or 0}
            if self._total is not None:
                facts["total"] = max(self._total, self._step or 0)
            if self._epoch is not None:
                facts["epoch"] = self._epoch
            return facts
