"""How far the script is: the largest step that its events or its output show, and Keras' epochs. Cheap on purpose.

Output is only looked at in samples (`Intake` gives the end of a chunk now and then), so a number may be missed; the
next sample has a later one.
"""

from __future__ import annotations

import re
import threading
from typing import Dict, Optional

from yardmaster_runner.keras_progress import KerasProgress

LOOK_AT = 2048
STEP = re.compile(rb"\b(?:global[_ ]?)?steps?\s*[ =:]\s*(\d{1,15})(?:\s*/\s*(\d{1,15}))?\b", re.IGNORECASE)


class Progress:
    """Collects; may be asked and told from any thread."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._step: Optional[int] = None
        self._total: Optional[int] = None
        self._keras = KerasProgress()
        self._is_finished = False

    @property
    def step(self) -> int:
        """The largest step seen, 0 before there was one."""
        return self._step or 0

    @property
    def reached(self) -> int:
        """How far the script came: its largest step, or the epochs that it finished where it shows no steps."""
        return self._step if self._step is not None else max(0, (self._keras.epoch or 0) - 1)

    def see_step(self, step: int, total: Optional[int] = None) -> None:
        with self._lock:
            self._step = max(step, self._step or 0)
            if total is not None and total >= step:
                self._total = total

    def see_output(self, tail: bytes, look_at: int = LOOK_AT) -> None:
        """Look for `Epoch 2/5` with a bar of Keras, `step 120`, `global_step=120`, `Step: 120/200` in the last of the
        output."""
        sample = tail[-look_at:]
        fitted = self._keras.see(sample)
        if fitted is not None:
            self.see_step(fitted.step, fitted.total)
        steps = STEP.findall(sample)
        if steps:
            step, total = steps[-1]
            self.see_step(int(step), int(total) if total else None)

    def finish(self) -> None:
        """The script has ended well: it has come to its end at its last step, whatever it said of more."""
        self._is_finished = True

    def facts(self) -> Dict[str, int]:
        """The report's `progress`; empty while nothing is known."""
        with self._lock:
            epoch, epochs = self._keras.epoch, self._keras.epochs
            if self._step is None and epoch is None:
                return {}
            facts = {"step": self._step or 0}
            if self._total is not None:
                facts["total"] = facts["step"] if self._is_finished else max(self._total, facts["step"])
            if epoch is not None:
                facts["epoch"] = epoch
                facts["epochs"] = epoch if self._is_finished else (epochs or epoch)
            return facts
