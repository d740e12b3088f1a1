"""Why a task of a Spark cluster cannot start: words of the vocabulary (`failures.REASONS`), each with its title, its
sentence, its remedy, and whether a restart is of no use. Only words.
"""

from __future__ import annotations

from collections.abc import Mapping

SPARK: Mapping[str, tuple[str, str, str, bool]] = {
    "SparkMissing": (
        "Spark is not installed",
        "{task} could not start Spark.",
        "Install what is named, or use an engine or an image that has it: see docs/spark.md.",
        True,
    ),
}
REGISTERED: Mapping[str, tuple[str, str, str, bool]] = {
    "SparkClusterFailed": (
        "The Spark cluster could not be used",
        "{task} could not use the Spark cluster that it names.",
        "Ask an administrator to check it (Administration, Spark clusters): that its master runs, that its secret is "
        "the one registered, and that its executors reach the driver's address. Then launch again.",
        True,
    ),
}
"""Of clusters that administrators have registered."""
