"""What the audit says of a change: each value as it is and as it was. Pure.

Not here: writing it down (`services`), and the words for actions (`apps.administration.audit_actions`).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

UPDATES = frozenset({
    "user.change", "address.ask", "address.confirm", "address.cancel", "second_factor.rename", "service_account.change",
    "namespace.change", "namespace.answer_for", "member.change", "quota.set", "quota.defaults", "quota.schedule_begin",
    "quota.schedule_end", "share.change", "priority_class.change", "preset.change", "preset.move", "hold.set",
    "budget.set", "preemption.change", "job.change", "job.move", "job_template.change", "schedule.change",
    "schedule.pause", "schedule.resume", "sweep.pause", "sweep.resume", "sweep.stop", "sweep.end", "dataset.change",
    "code.change", "model.change", "image.change", "bucket.secret", "connection.change", "volume.resize",
    "model_version.stage",
    "notice.set", "notification.change", "notification.chat", "retention.change", "retention.reset", "webhook.change",
    "webhook.off", "workbench.take_over", "machine.change", "machine.drain", "machine.undrain", "machine.accept_key",
    "spark_cluster.change",
})  # fmt: skip
"""Actions that change values, each of which the event has before and after."""
OF_SECRETS = frozenset({
    "password.change", "password.set", "password.reset", "secret.change", "webhook.rotate", "service_account.rotate",
    "spark_cluster.secret",
})  # fmt: skip
"""Actions that change what must not be written down."""
_AFTER, _BEFORE = "after", "before"


def changes(before: Mapping[str, Any], after: Mapping[str, Any]) -> dict[str, Any]:
    """What differs, as facts: `x` and `x_before`."""
    found: dict[str, Any] = {}
    for name, value in after.items():
        if before.get(name) != value:
            found |= {name: value, f"{name}_{_BEFORE}": before.get(name)}
    return found


def lacks_before(action: str, facts: Mapping[str, Any]) -> bool:
    """Whether an event of a change has no value from before it, or none for one that it has so."""
    if action not in UPDATES:
        return False
    if _BEFORE in facts and _AFTER in facts:
        return False
    earlier = [name.removesuffix(f"_{_BEFORE}") for name in facts if name.endswith(f"_{_BEFORE}")]
    return not earlier or any(name not in facts for name in earlier)
