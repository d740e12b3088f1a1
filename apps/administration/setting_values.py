"""Which value of a setting may be shown, and how. Pure.

What is not known to be harmless is not shown: of a variable whose name speaks of a secret, nothing ever; of another, a
number, a switch, or a text of a variable that is on the list here; of an address, the scheme, host and port, since the
rest may hold a password. All else is only "set".
"""

from __future__ import annotations

import re
from urllib.parse import urlsplit

SET, NOT_SET = "set", "not set"
_SECRET = re.compile(r"SECRET_KEY|_SECRET$|PASSWORD$|ACCESS_KEY|CREDENTIAL|_TOKEN$|_KEYS?$")
_PLAIN = re.compile(r"[0-9][0-9.,]{0,40}(?:m|[kKMGTP]i?)?|on|off|true|false|yes|no|auto", re.IGNORECASE)
_ADDRESSES = frozenset(
    f"YARDMASTER_{name}"
    for name in (
        "PUBLIC_URL", "TASK_URL", "WORKBENCH_URL", "DATABASE_URL", "REDIS_URL", "EMAIL_URL", "S3_ENDPOINT",
        "S3_PUBLIC_ENDPOINT", "S3_TASK_ENDPOINT", "PACKAGE_INDEX", "DATASET_DOWNLOADS",
    )
)  # fmt: skip
_TEXTS = frozenset(
    f"YARDMASTER_{name}"
    for name in (
        "HOME", "HOST", "ALLOWED_HOSTS", "LOGS_ROOT", "STATIC_ROOT", "SIGN_UP", "EMAIL_FROM", "REQUIRE_SECOND_FACTOR",
        "OIDC_FILE", "WEBHOOK_ALLOWED_HOSTS", "WEBHOOK_PORTS", "DEFAULT_ENGINE", "TASK_PYTHON", "WORKBENCH_PYTHON",
        "GIT_HOSTS", "STORE", "S3_BUCKET", "S3_PREFIX", "S3_REGION", "MINIO", "KUBECONFIG", "KUBERNETES_CONTEXT",
        "KUBERNETES_IMAGE", "KUBERNETES_WORKBENCH_IMAGE", "KUBERNETES_SPARK_IMAGE", "LOG_LEVEL", "WORKBENCH_SIZES",
        "TENSORBOARD_SIZE", "JUPYTER_SIZE", "BUDGET_WARNINGS", "IGNITE_HOSTS", "IGNITE_PORTS", "IGNITE_STORE",
        "IGNITE_STORE_USER", "IGNITE_STORE_PASSWORD_FILE", "IGNITE_STORE_CERTIFICATE_FILE", "IGNITE_STORE_NAME",
        "IGNITE_STORE_REGION", "SPARK",
    )
)  # fmt: skip
_LONGEST = 300


def is_secret(name: str) -> bool:
    """Whether nothing of the variable's value is ever shown."""
    return bool(_SECRET.search(name))


def shown_value(name: str, value: str) -> str:
    """What of this value may be shown."""
    if not value:
        return NOT_SET
    if is_secret(name):
        return SET
    if _PLAIN.fullmatch(value):
        return value
    if name in _ADDRESSES:
        return _address(value)
    if name in _TEXTS and not _may_hold_password(value):
        return value if len(value) <= _LONGEST else f"{value[:_LONGEST]}…"
    return SET


def _may_hold_password(value: str) -> bool:
    """It has an address or an object in it, where a name, a path, a list or a mail address is expected."""
    return "://" in value or "{" in value or ("//" in value and "@" in value)


def _address(value: str) -> str:
    """`postgres://db.example:5432`. One that cannot be read for certain is only "set"."""
    try:
        url = urlsplit(value)
        host, port = url.hostname, url.port
    except ValueError:
        return SET
    rest = f"{url.path}{url.query}{url.fragment}"
    if "@" in rest or not re.fullmatch(r"[a-z][a-z0-9+.-]{0,20}", url.scheme):
        return SET
    if not host:
        return f"{url.scheme}:"
    shown = f"[{host}]" if ":" in host else host
    return f"{url.scheme}://{shown}{f':{port}' if port else ''}"
