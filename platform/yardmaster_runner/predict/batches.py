"""Batches through the model. A batch that the model refuses is halved until the records at fault are found.

What does not depend on a record ends everything: outputs without a row per example, or a record that does not fit into
memory alone.
"""

from __future__ import annotations

from typing import Any, Callable, Dict, List, Mapping, Sequence, Tuple

from yardmaster_runner.predict.records import Record
from yardmaster_runner.prepare.trouble import BadRecord, PrepareError
from yardmaster_runner.serving.loading import Loaded
from yardmaster_runner.serving.signatures import BadRequest

Inputs = Mapping[str, Any]
Filled = Tuple[Record, Inputs]
Answered = Tuple[Record, Dict[str, Any]]
NO_MEMORY = 503


class Batches:
    """Runs one signature. `exact`: every batch has so many examples (0: any number); the last one is filled up with its
    own last example, whose outputs are dropped. `refuse` is told of each bad record, and may raise."""

    def __init__(self, loaded: Loaded, signature: str, exact: int, refuse: Callable[[BadRecord], None]) -> None:
        self._loaded, self._signature, self._exact, self._refuse = loaded, signature, exact, refuse

    def run(self, filled: Sequence[Filled]) -> List[Answered]:
        """The outputs of each record by name, in the records' order, without those that were refused."""
        groups: Dict[Tuple[Any, ...], List[int]] = {}
        for at, (_, inputs) in enumerate(filled):
            groups.setdefault(tuple(one.shape for one in inputs.values()), []).append(at)
        found: Dict[int, Dict[str, Any]] = {}
        for places in groups.values():
            self._group(filled, places, found)
        return [(filled[at][0], found[at]) for at in sorted(found)]

    def _group(self, filled: Sequence[Filled], places: List[int], found: Dict[int, Dict[str, Any]]) -> None:
        """Records whose inputs have the same shapes."""
        try:
            outputs = self._outputs([filled[at][1] for at in places])
        except BadRequest as error:
            if len(places) == 1:
                if error.status == NO_MEMORY:
                    message = "%s does not fit into memory alone: use more memory. %s"
                    raise PrepareError(message % (filled[places[0]][0].place, error.message)) from None
                self._refuse(BadRecord(filled[places[0]][0].place, error.message))
                return
            half = len(places) // 2
            self._group(filled, places[:half], found)
            self._group(filled, places[half:], found)
            return
        for number, at in enumerate(places):
            found[at] = {name: array[number] for name, array in outputs.items()}

    def _outputs(self, inputs: Sequence[Inputs]) -> Dict[str, Any]:
        import numpy

        count = max(len(inputs), self._exact)
        rows = [*inputs, *([inputs[-1]] * (count - len(inputs)))]
        stacked = {name: numpy.stack([one[name] for one in rows]) for name in rows[0]}
        outputs = {name: numpy.asarray(one) for name, one in self._loaded.run(self._signature, stacked).items()}
        for name, one in outputs.items():
            if one.shape[:1] != (count,):
                message = "the output %s has no row per example: its shape is %s for %d examples"
                raise PrepareError(message % (name, list(one.shape), count))
        return outputs
