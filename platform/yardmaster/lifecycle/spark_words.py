"""Why a task of a Spark cluster cannot start: words of the vocabulary (`failures.REASONS`), each with its title, its
sentence, its remedy, and whether a restart is of no use. Only words.
"""

from __future__ import annotations

from collections.abc import Mapping

SPARK: Mapping[str, tuple[str, str, str, bool]] = {
    "SparkMissing": (
        "Spark is not installed",
        "{task} could not start Spark.",
        "Install the missing part, or use an engine or an image that has it. See docs/spark.md.",
        True,
    ),
}
REGISTERED: Mapping[str, tuple[str, str, str, bool]] = {
    "SparkClusterFailed": (
        "The Spark cluster could not be used",
        "{task} could not use the Spark cluster of the job.",
        "Ask an administrator to check the cluster (Administration, Spark clusters): its master must be running, the "
        "registered secret must be right, and its executors must reach the driver's address. Then launch again.",
        True,
    ),
}
"""Of clusters that administrators have registered."""
