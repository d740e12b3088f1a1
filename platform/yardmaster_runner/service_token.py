"""The key with which the portal and the gate of a service prove themselves to each other (`gate_protocol`). Pure.

The portal and the task each make it of the token that both know, so that it is stored nowhere and in no specification,
and it never leaves either. The task's own token cannot be made of it. The program behind the gate does not know it.
"""

from __future__ import annotations

import hashlib
import hmac

_PURPOSE = b"yardmaster.service-token"


def service_token(task_token: str) -> str:
    """The key of the service whose task has this one."""
    return "yms." + hmac.new(task_token.encode(), _PURPOSE, hashlib.sha256).hexdigest()
