"""Words that the project gave up, with what to write instead.

Everything that people read is checked: templates, TypeScript, the documentation, and the string literals, docstrings
and comments of Python; and the names that Python code defines.
"""

from __future__ import annotations

import ast
import io
import re
import tokenize
from collections.abc import Callable, Iterator
from functools import lru_cache
from pathlib import Path

ROOT = Path(__file__).parents[2]

GIVEN_UP = {
    "deed": "action",
    "deeds": "actions",
    "anew": "again, restart",
    "tidy": "clean up",
    "tidied": "cleaned up",
    "tidies": "cleans up",
    "tidying": "cleaning up",
    "somebody": "a user, another process",
    "nobody": "no user, none",
    "whoever": "anyone who",
    "whomever": "anyone",
    "likewise": "say it in full",
    "stumbled": "failed",
    "broken off": "interrupted",
    "broke off": "was interrupted",
    "goes on": "continues, resumes",
    "go on": "continue, resume",
    "went on": "continued",
    "let go": "release, clear",
    "lets go": "releases",
    "taken back": "reverted",
    "heard from": "heartbeat",
    "let somebody in": "add member",
    "jobs at once": "concurrent jobs",
    "made lately": "recent",
    "here since": "joined",
    "what they were": "intact",
    "launch anew": "edit and relaunch",
    "how shall it train": "training strategy",
    "release after": "parameter server shutdown delay",
    "mirrored workers": "MultiWorkerMirroredStrategy",
    "servers to drive": "TensorFlow servers only (in-graph)",
    "yours to see": "visible to you",
    "restarts are spent": "no restarts left",
    "make the token": "create token",
    "its files are meant": "extract ZIP contents",
}
"""Words and phrases, in lower case, and the field's words for them."""

NAMES_GIVEN_UP = {
    "anew": "restart",
    "apart": "sandbox, own_process",
    "bursts": "coalescer",
    "deed": "action",
    "heard": "received",
    "lanes": "parallel, pool",
    "nobody": "no user, none",
    "room": "capacity, space",
    "shelf": "version_store",
    "silence": "heartbeat, stale",
    "silent": "stale, idle",
    "somebody": "user",
    "stumbled": "failed",
    "tidied": "cleaned_up",
    "tidy": "clean_up",
    "together": "gang",
    "told": "reported, answer, notified",
    "whoever": "user",
}
"""Words in names of functions, classes, parameters and variables, and the field's words for them."""

_PATTERN = re.compile(rf"\b(?:{'|'.join(sorted(map(re.escape, GIVEN_UP), key=len, reverse=True))})\b", re.IGNORECASE)
_ADDRESS = re.compile(r"\]\([^)]*\)|https?://\S+|`[^`\n]*`")
"""What names things in a text of the documentation: addresses and code, which keep their names."""

_NAME = re.compile(r"[a-z0-9_.:/-]*")
"""Keys, codes and values of the database: names, and no words."""


def given_up(text: str) -> list[str]:
    """What to change in `text`: each word that was given up, with the word for it."""
    plain = " ".join(text.split())
    return [f"{found[0]!r}: write {GIVEN_UP[found[0].lower()]!r}" for found in _PATTERN.finditer(plain)]


def _documents() -> list[Path]:
    return sorted([*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md"), *(ROOT / "deploy").rglob("*.md")])


def _pages() -> list[Path]:
    found = [*(ROOT / "frontend/templates").rglob("*.html"), *(ROOT / "frontend/src").rglob("*.ts")]
    return sorted(found)


def _sources() -> list[Path]:
    found = [one for folder in ("apps", "platform", "celery_worker") for one in (ROOT / folder).rglob("*.py")]
    return sorted(one for one in found if "migrations" not in one.parts)


def texts(source: str) -> Iterator[tuple[int, str]]:
    """The string literals, docstrings and comments of a module with their lines."""
    for node in ast.walk(_parsed(source)):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and not _NAME.fullmatch(node.value):
            yield node.lineno, node.value
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type == tokenize.COMMENT:
            yield token.start[0], token.string


def names_given_up(source: str) -> list[str]:
    """What to rename in a module: each name that it defines with a word that was given up, and the word for it."""
    return [
        f"line {line}: {name}: use {NAMES_GIVEN_UP[word]}"
        for line, name in _defined(_parsed(source))
        for word in re.findall(r"[a-z]+", re.sub(r"(?<=[a-z])(?=[A-Z])", "_", name).lower())
        if word in NAMES_GIVEN_UP
    ]


@lru_cache(maxsize=1)
def _parsed(source: str) -> ast.Module:
    """Each source is asked for its texts and for its names."""
    return ast.parse(source)


def _defined(module: ast.Module) -> Iterator[tuple[int, str]]:
    for node in ast.walk(module):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            yield node.lineno, node.name
        elif isinstance(node, ast.arg):
            yield node.lineno, node.arg
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            yield node.lineno, node.id
        elif isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store):
            yield node.lineno, node.attr


def _found(paths: list[Path], look: Callable[[str], list[str]]) -> dict[str, list[str]]:
    """What to change in each of these files. All in one test: a test for each of two thousand files takes longer to
    begin and to end than to look."""
    assert len(paths) > 20
    return {str(path.relative_to(ROOT)): found for path in paths if (found := look(path.read_text()))}


def test_pages_use_the_words_of_the_field() -> None:
    assert _found(_pages(), given_up) == {}


def test_documentation_uses_the_words_of_the_field() -> None:
    assert _found(_documents(), lambda text: given_up(_ADDRESS.sub(" ", text))) == {}


def test_sources_use_the_words_of_the_field() -> None:
    assert _found(_sources(), _of_a_source) == {}


def _of_a_source(source: str) -> list[str]:
    in_texts = [f"line {line}: {one}" for line, text in texts(source) for one in given_up(_ADDRESS.sub(" ", text))]
    return in_texts + names_given_up(source)


def test_a_word_that_was_given_up_is_found_with_its_replacement() -> None:
    assert given_up("The job\n goes  on, and is Tidied.") == [
        "'goes on': write 'continues, resumes'",
        "'Tidied': write 'cleaned up'",
    ]


def test_names_and_parts_of_words_are_no_words() -> None:
    assert not given_up("tidied_at, untidy, indeed")


def test_literals_docstrings_and_comments_are_read_and_names_are_not() -> None:
    source = '"""Nobody."""\nwords, key = f"literal {deed} part", "tidied"  # somebody\n'
    assert sorted(text for _, text in texts(source)) == [" part", "# somebody", "Nobody.", "literal "]


def test_a_name_that_was_given_up_is_found_in_every_definition() -> None:
    source = (
        "class GoneAnew:\n"
        "    def silent_since(self, told): self._room = [apart for apart in told]\n"
        "untold = rooms = 1\n"
    )
    assert sorted(names_given_up(source)) == [
        "line 1: GoneAnew: use restart",
        "line 2: _room: use capacity, space",
        "line 2: apart: use sandbox, own_process",
        "line 2: silent_since: use stale, idle",
        "line 2: told: use reported, answer, notified",
    ]
