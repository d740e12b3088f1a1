"""Are the secrets there that a specification names? Asked before a launch and before a retry."""

from __future__ import annotations

from apps.namespaces.models import Namespace
from apps.secrets.delivery import LARGEST_OF_JOB
from apps.secrets.selectors import secret_sizes
from yardmaster.errors import Problem
from yardmaster.job.spec import TrainingSpec
from yardmaster.job.spec_limits import shorten


def secret_problems(namespace: Namespace, spec: TrainingSpec) -> list[Problem]:
    """What of the spec's secrets this namespace does not have. Those of other namespaces are unknown here."""
    if not spec.secrets:
        return []
    sizes = secret_sizes(namespace, [one.name for one in spec.secrets])
    found = []
    for index, one in enumerate(spec.secrets):
        if one.name not in sizes:
            message = f"{namespace.slug} has no secret of this name that tasks may use."
            remedy = f"Create it on the page of the namespace's secrets, or with `yardmaster secrets set {one.name}`."
            found.append(Problem(f"secrets.{index}.name", "unknown_secret", message, remedy, shorten(one.name)))
    if sum(sizes.values()) > LARGEST_OF_JOB:
        message = f"The secrets of a job have at most {LARGEST_OF_JOB >> 10} KiB together."
        found.append(Problem("secrets", "too_large", message, "Use fewer or shorter secrets."))
    return found
