"""A value in the form in which it is kept: a text as it is, the keys of a bucket as JSON. Pure."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any

from apps.errors import Invalid
from apps.secrets.models import Kind
from yardmaster.errors import Problem

_ACCESS_KEY = re.compile(r"[!-~]{1,128}")
_SECRET_KEY = re.compile(r"[!-~]{1,256}")


def value_of(kind: Kind, data: Mapping[str, Any]) -> str:
    """What is to be sealed of what was sent. Raises `Invalid`, which repeats nothing of it."""
    keys = {name: data.get(name) for name in ("access_key", "secret_key")}
    if kind is Kind.TEXT:
        found = [
            Problem(name, "conflict", "A text has a value, no keys.", "Send value alone, or the kind s3.")
            for name, sent in keys.items()
            if sent is not None
        ]
        if not found and data.get("value") is None:
            found = [Problem("value", "required", "A secret needs a value.", "Send value.")]
    else:
        patterns = {"access_key": _ACCESS_KEY, "secret_key": _SECRET_KEY}
        message = "This is printable ASCII without spaces."
        found = [
            Problem(name, "invalid", message, "Copy the key as the store shows it.")
            for name, pattern in patterns.items()
            if not pattern.fullmatch(keys[name] or "")
        ]
        if data.get("value") is not None:
            found.append(Problem("value", "conflict", "Credentials have two keys, no value.", "Omit value."))
    if found:
        raise Invalid(found)
    return str(data["value"]) if kind is Kind.TEXT else json.dumps(keys)


def keys_of(value: bytes) -> tuple[str, str]:
    """Access key and secret key of a value of the kind `s3`."""
    found = json.loads(value)
    return str(found["access_key"]), str(found["secret_key"])
