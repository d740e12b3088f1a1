"""Whether the cluster has the StorageClass that an option names. Asks, and changes nothing."""

from __future__ import annotations

from yardmaster.engines.base import Finding
from yardmaster.engines.kubernetes.client.api import Api
from yardmaster.engines.kubernetes.client.errors import Forbidden


def class_check(api: Api, option: str, name: str, what: str) -> Finding:
    """Of the class `name`, which `option` names, for `what` (`volumes`). The right to read storage classes is one that
    an operator may leave out."""
    try:
        found = api.get("StorageClass", "", name)
    except Forbidden as error:
        message = f"The StorageClass {name} ({option}) cannot be checked: the portal may not read storage classes."
        return Finding(None, message, error.remedy)
    if found is None:
        message = f"The cluster has no StorageClass {name} ({option}): {what} stay pending."
        return Finding(False, message, f"Create it, or set {option} to one of `kubectl get storageclasses`.")
    return Finding(True, f"The StorageClass {name} of {what} exists.")
