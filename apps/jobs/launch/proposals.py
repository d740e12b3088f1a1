"""What the form proposes from the code: strategy, what to run and how, name and arguments, as soon as a code version
is chosen.

A proposal never takes the place of what a person typed. The form carries what it proposed last (the hidden field
`proposed`), so that another code version may bring other proposals for the fields that are still as they were proposed.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence

from apps.jobs.checking import MOST_SOURCE, sources_among
from apps.jobs.launch.argument_lines import as_argument_line
from apps.jobs.launch.entry_fields import ON, kind_of
from apps.jobs.launch.forms import new_values, with_strategy
from apps.jobs.launch.parts import Values
from apps.uploads.selectors import StoredFile
from yardmaster.code.bounded import likely_bounded
from yardmaster.code.strategy_signs import Likely

FIELDS = ("strategy", "runs", "entry_point", "name", "arguments", "tf1")
_EMPTIED = ("runs", "name", "arguments", "tf1")
_LONGEST = 8 << 10

Proposed = Mapping[str, str]


def proposed_in(text: str) -> Proposed:
    """What the hidden field says; nothing where it is none of ours."""
    try:
        found = json.loads(text) if len(text) <= _LONGEST else {}
    except (ValueError, RecursionError):
        return {}
    return {key: found[key] for key in FIELDS if isinstance(found.get(key), str)} if isinstance(found, dict) else {}


def as_text(proposed: Proposed) -> str:
    text = json.dumps(dict(proposed))
    return text if len(text) <= _LONGEST else ""


def without_proposals(values: Values, proposed: Proposed, scripts: Sequence[str]) -> Values:
    """The form of another code version: what was proposed for the old one is gone, and so is a script that the new one
    does not have."""
    kept = values | {name: "" for name in _EMPTIED if _same(values[name], proposed.get(name))}
    is_typed = values["entry_point"] in scripts and not _same(values["entry_point"], proposed.get("entry_point"))
    return kept if is_typed else kept | {"entry_point": ""}


def with_proposals(
    files: Sequence[StoredFile], values: Values, before: Values, proposed: Proposed
) -> tuple[Values, Proposed]:
    """The form with what the `files` of its code propose, and what that is. `before` is the form without any proposal;
    its strategy may be replaced where it is the one of `proposed`."""
    likely = _likely(files, values)
    replaces = likely is not None and values["strategy"] == proposed.get("strategy")
    if likely is not None and replaces:
        values = _with_strategy(values, likely.strategy.value)
    if likely is not None:
        values = values | _of_script(likely, values, before)
    values = values | {"runs": values["runs"] or kind_of(values["entry_point"])}
    made = {name: values[name] for name in FIELDS[1:] if values[name] and not before[name].strip()}
    return values, made | ({"strategy": values["strategy"]} if "strategy" in proposed else {})


def _of_script(likely: Likely, values: Values, before: Values) -> Values:
    """The arguments and the mode that the script needs; that it is a module, where no one has chosen what to run."""
    found: dict[str, str] = {}
    if not values["arguments"].strip():
        found["arguments"] = "\n".join(map(as_argument_line, likely.arguments))
    if likely.tf1:
        found["tf1"] = ON
    if not before["entry_point"] and not before["runs"]:
        found["entry_point"] = likely.entry_point
    return found


def _same(text: str, proposed: str | None) -> bool:
    return proposed is not None and text.replace("\r\n", "\n") == proposed


def _with_strategy(values: Values, strategy: str) -> Values:
    """Counts that no one has changed are those of the new strategy."""
    if _asked(values) == _asked(new_values(values["strategy"])):
        return values | {key: new_values(strategy)[key] for key in ("strategy", "roles")}
    return with_strategy(values, strategy)


def _asked(values: Values) -> dict[str, dict[str, str]]:
    """What the roles ask for: a browser sends nothing of a role that is not there, where a new form has a 0."""
    filled = {
        role: {name: text for name, text in texts.items() if text not in ("", "0")}
        for role, texts in values["roles"].items()
    }
    return {role: texts for role, texts in filled.items() if "replicas" in texts}


def _likely(files: Sequence[StoredFile], values: Values) -> Likely | None:
    if not files or not values["entry_point"]:
        return None
    wanted = [one.path for one in files if one.path.endswith(".py") or one.path == values["entry_point"]]
    return likely_bounded(sources_among(files, MOST_SOURCE, wanted), values["entry_point"])
