"""The token that a service asks of its callers. Pure.

The portal and the task each make it of the token that both know, so that it is stored nowhere and in no specification.
It speaks to the service alone: the task's own token cannot be made of it. Other programs of the machine may reach the
port; without this they are refused.
"""

from __future__ import annotations

import hashlib
import hmac

VARIABLE = "YARDMASTER_SERVICE_TOKEN"
_PURPOSE = b"yardmaster.service-token"


def service_token(task_token: str) -> str:
    """The token of the service whose task has this one."""
    return "yms." + hmac.new(task_token.encode(), _PURPOSE, hashlib.sha256).hexdigest()
