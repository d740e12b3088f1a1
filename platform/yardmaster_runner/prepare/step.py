"""A user's own step: `map_record(record)` of a Python file gives a record, a list of records, or None for none."""

from __future__ import annotations

import importlib.util
import os
import sys
from typing import Any, Callable, Dict, List

from yardmaster_runner.prepare.trouble import BadRecord, PrepareError

Step = Callable[[Dict[str, Any], str], List[Dict[str, Any]]]


def loaded(path: str) -> Step:
    """The step of a file; its errors come as `BadRecord` with the place of the record."""
    spec = importlib.util.spec_from_file_location("preparation_step", path)
    if spec is None or spec.loader is None or not os.path.isfile(path):
        raise PrepareError("step is %r: expected a Python file" % path)
    module = importlib.util.module_from_spec(spec)
    sys.path.insert(0, os.path.dirname(os.path.abspath(path)))
    try:
        spec.loader.exec_module(module)
    except Exception as error:
        raise PrepareError("step %s: %s: %s" % (path, type(error).__name__, error)) from error
    function = getattr(module, "map_record", None)
    if not callable(function):
        raise PrepareError("step %s has no function map_record(record)" % path)

    def apply(record: Dict[str, Any], place: str) -> List[Dict[str, Any]]:
        try:
            result = function(record)
        except Exception as error:
            raise BadRecord(place, "map_record: %s: %s" % (type(error).__name__, error)) from error
        results = [] if result is None else result if isinstance(result, list) else [result]
        if not all(isinstance(one, dict) for one in results):
            raise BadRecord(place, "map_record gave %s, expected a dict" % type(result).__name__)
        return results

    return apply
