"""Objects that a setting names by class and options:

    {"class": "yardmaster.storage.local.LocalStorage", "options": {"root": …}}

Every mistake in the setting is `Misconfigured` with the place where it stands. Not here: which settings there are, and
which classes (`engines.registry`, `storage.registry`).
"""

from __future__ import annotations

import importlib
import inspect
from collections.abc import Mapping
from typing import Any

from yardmaster.errors import Misconfigured, YardmasterError

_KEYS = frozenset({"class", "options"})


def component_from(
    place: str, config: object, *, what: str, example: str, given: Mapping[str, Any] | None = None
) -> Any:
    """Make the object that `config` describes; `place` is where it stands in the settings, `what` the kind of thing it
    is ("engine"), `example` the path of a class that would do. `given` are arguments that no option sets. Raises
    `Misconfigured`."""
    if not isinstance(config, Mapping) or not isinstance(config.get("class"), str):
        raise Misconfigured(f"{place} is no {what}.", remedy=f'Write {{"class": "{example}", "options": {{…}}}}.')
    unknown = sorted(str(key) for key in config if key not in _KEYS)
    if unknown:
        raise Misconfigured(f"{place} has a key that means nothing: {unknown[0]}.", remedy="It has class and options.")
    options = config.get("options", {})
    if not isinstance(options, Mapping):
        raise Misconfigured(f"{place}['options'] is not a table of options.", remedy="Write name: value pairs.")
    given = given or {}
    make = _class_at(config["class"], f"{place}['class']", what)
    _check_options(make, options, f"{place}['options']", given)
    try:
        return make(**{**given, **options})
    except Misconfigured:
        raise
    except (TypeError, ValueError, YardmasterError) as error:
        raise Misconfigured(f"{place}['options']: {error}", remedy=f"See the {what}'s own description.") from error


def _class_at(path: str, place: str, what: str) -> type[Any]:
    remedy = f"Write the dotted path of the class of a {what}."
    module, _, attribute = path.rpartition(".")
    try:
        found = getattr(importlib.import_module(module), attribute)
    except (ImportError, AttributeError, ValueError) as error:
        raise Misconfigured(f"{place}: {path!r} cannot be imported: {error}", remedy=remedy) from error
    if not isinstance(found, type):
        raise Misconfigured(f"{place}: {path!r} is not a class.", remedy=remedy)
    return found


def _check_options(make: type[Any], options: Mapping[str, Any], place: str, given: Mapping[str, Any]) -> None:
    """Refuse options that the class does not have, and the lack of those that it must have, by name."""
    parameters = inspect.signature(make).parameters
    known = [name for name in parameters if name not in given]
    for option in options:
        if option not in known:
            raise Misconfigured(f"{place}[{option!r}] is no option of {make.__name__}.", remedy=f"It has: {known}.")
    for name in known:
        if name not in options and parameters[name].default is inspect.Parameter.empty:
            raise Misconfigured(f"{place} lacks {name!r}, which {make.__name__} needs.", remedy=f"Set {name!r}.")
