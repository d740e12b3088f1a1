"""A form that makes a job of one of the portal's own programs: what is wrong with the job, at the fields that asked for
it."""

from __future__ import annotations

from collections.abc import Iterable

from django import forms

from apps.errors import DomainError, words_of
from apps.jobs.checking import NeverFits
from yardmaster.errors import Problem, SpecRejected, YardmasterError

_FIELD_OF = {
    "publishes.dataset": "to", "roles.worker.replicas": "workers", "roles.worker.cpu": "cpu",
    "roles.worker.memory": "memory", "options.shard_bytes": "shard_megabytes", "publishes.note": "note",
}  # fmt: skip


class ProgramForm(forms.Form):
    """Fields that are called like the options of the program, or as here above."""

    def add_refusal(self, error: DomainError | YardmasterError) -> None:
        """Say why the job was not launched."""
        if isinstance(error, SpecRejected):
            self._add_problems(error.problems)
        elif isinstance(error, NeverFits):
            self.add_error(None, f"It could never start: {error.decision.message} {error.decision.remedy}")
        else:
            self.add_error(None, words_of(error))

    def _add_problems(self, problems: Iterable[Problem]) -> None:
        """Each at its field, or above all."""
        for one in problems:
            name = _FIELD_OF.get(one.field, one.field.rpartition(".")[2])
            self.add_error(name if name in self.fields else None, f"{one.message} {one.remedy}".strip())
