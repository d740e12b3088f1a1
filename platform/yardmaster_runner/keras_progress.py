"""How far `model.fit` is, by what Keras prints: `Epoch 3/10` once for each epoch, and its bar, `12/100 ━━━ …`.

The steps of all epochs are counted through. Output is seen in samples: where the beginning of an epoch was missed, a
bar that begins again tells it.
"""

from __future__ import annotations

import re
from typing import NamedTuple, Optional

EPOCH = re.compile(rb"\bEpoch:? (\d{1,9})/(\d{1,9})\b")
_LOOK = rb"(?:\x1b\[[\d;]*m)*"
BAR = re.compile(
    rb"(?:^|[\r\n\x08])[ ]*"
    + _LOOK
    + rb"[ ]*(\d{1,9})/(\d{1,9})"
    + _LOOK
    + rb"[ ]+"
    + _LOOK
    + rb"(?:\xe2\x94\x81|\[[=>.]|- )"
)
"""A bar of Keras 3 or of Keras 2, or the line that stands for it with `verbose=2`."""


class Fitted(NamedTuple):
    """Steps of all epochs so far, and of how many; None where no bar was seen."""

    step: int
    total: int


class KerasProgress:
    """Collects from samples of the output, in their order."""

    def __init__(self) -> None:
        self.epoch: Optional[int] = None
        self.epochs: Optional[int] = None
        self._batch = 0
        self._batches: Optional[int] = None
        self._before = 0
        """Steps of earlier calls of `fit`."""

    def see(self, sample: bytes) -> Optional[Fitted]:
        """What is known after this sample; None where it has no bar of a call of `fit`."""
        begun = list(EPOCH.finditer(sample))
        at = 0
        if begun:
            at = begun[-1].end()
            self._begin(int(begun[-1].group(1)), int(begun[-1].group(2)), sample, at)
        if self.epoch is None or self.epochs is None:
            return None
        bars = [(int(one.group(1)), int(one.group(2))) for one in BAR.finditer(sample, max(0, at - 1))]
        if self._batches is None and bars:
            self._batches = bars[0][1]
        mine = [batch for batch, batches in bars if batches == self._batches and batch <= batches]
        if not mine or self._batches is None:
            return None
        self._reach(mine[-1], has_begun=bool(begun))
        step = self._before + (self.epoch - 1) * self._batches + self._batch
        return Fitted(step, self._before + self.epochs * self._batches)

    def _begin(self, epoch: int, epochs: int, sample: bytes, at: int) -> None:
        """An epoch begins. One that is earlier than the last belongs to another call of `fit`."""
        if self.epoch is not None and epoch < self.epoch:
            if self._batches is not None:
                self._before += (self.epoch - 1) * self._batches + self._batch
            self._batches = None
        elif self.epoch != epoch and BAR.search(sample, max(0, at - 1)) is None:
            self._batch = 0
        self.epoch, self.epochs = epoch, max(epoch, epochs)

    def _reach(self, batch: int, *, has_begun: bool) -> None:
        """A bar that is shorter than before, without a word of a new epoch: its beginning was not in a sample."""
        if batch < self._batch and not has_begun and self.epoch is not None and self.epochs is not None:
            self.epoch = min(self.epoch + 1, self.epochs)
        self._batch = batch
