"""That the Apache Ignite of a task did not answer: a word of the vocabulary (`failures.REASONS`), with its title, its
sentence, its remedy, and whether a restart is of no use. Only words; the runner chooses it
(`yardmaster_runner.ignite_end`).
"""

from __future__ import annotations

from collections.abc import Mapping

UNAVAILABLE = "IgniteUnavailable"
REMEDY = (
    "Check that the Ignite cluster runs, and that the machine of the task can reach this address. (`yardmaster "
    "connections check` checks a data connection.) Then retry the job. To outlast longer outages, allow more restarts."
)
IGNITE: Mapping[str, tuple[str, str, str, bool]] = {
    UNAVAILABLE: (
        "The Ignite cluster did not answer",
        "{task} failed because the Ignite cluster did not answer ({said}).",
        REMEDY,
        False,
    ),
}
