"""Which paths an upload's files may have."""

import pytest

from yardmaster.storage.base import key_segments
from yardmaster.storage.paths import MAX_PROBLEMS, path_fault, path_problems


@pytest.mark.parametrize(
    "path",
    [
        "a", "a/b.tfrecord", "train-00000-of-00010", "a b/c d.txt", ".hidden", "x/.git/config", "ä/ü.txt", "名/前",
        "🙂.png", "it's \"quoted\"", "a%2e%2e/b", "-rf", "CON", "a" * 255, "/".join(["d" * 50] * 10), "A/x", "ab:c",
    ],
)  # fmt: skip
def test_a_plain_path_is_taken(path):
    assert path_fault(path) is None


@pytest.mark.parametrize(
    ("path", "code"),
    [
        ("..", "path_escape"),
        ("../a", "path_escape"),
        ("a/../../b", "path_escape"),
        ("a/..", "path_escape"),
        ("/etc/passwd", "path_escape"),
        ("\\\\server\\share", "path_escape"),
        ("C:\\x", "path_escape"),
        ("c:/x", "path_escape"),
        ("c:x", "path_escape"),
        ("...", "path_invalid"),
        ("a\\..\\b", "path_invalid"),
        ("", "path_invalid"),
        ("a//b", "path_invalid"),
        ("a/", "path_invalid"),
        ("./a", "path_invalid"),
        ("a\0b", "path_invalid"),
        ("a\nb", "path_invalid"),
        ("a\r\nSet-Cookie: x", "path_invalid"),
        ("a\x7f", "path_invalid"),
        ("a\x85b", "path_invalid"),
        ("\u202egnp.exe", "path_invalid"),
        ("a\u2028b", "path_invalid"),
        ("\ud800", "path_invalid"),
        ("a ", "path_invalid"),
        (" a/b", "path_invalid"),
        ("a./b", "path_invalid"),
        ("x" * 256, "path_too_long"),
        ("é" * 128, "path_too_long"),
        ("a/" * 300 + "b", "path_too_long"),
        ("x" * 10_000, "path_too_long"),
    ],
)
def test_a_path_that_could_harm_is_refused_with_a_code(path, code):
    fault = path_fault(path)
    assert fault is not None
    assert fault[0] == code


def test_what_is_taken_as_a_path_is_always_a_key():
    for sign in map(chr, range(0x3000)):
        for path in (sign, f"a{sign}b", f"{sign}/x"):
            if path_fault(path) is None:
                assert key_segments(f"datasets/x/{path}")


def test_doubled_paths_are_refused_also_when_only_their_accents_are_composed_differently():
    problems = path_problems(["a", "b", "a", "caf\u00e9", "cafe\u0301"])
    assert [(problem.field, problem.code) for problem in problems] == [
        ("files.2.path", "path_doubled"),
        ("files.4.path", "path_doubled"),
    ]


def test_names_that_differ_in_case_are_two_files():
    assert path_problems(["letters/a/1.png", "letters/A/1.png"]) == []


def test_a_file_cannot_be_a_folder_too():
    problems = path_problems(["a/b/c", "x", "a/b", "ab"])
    assert [(problem.field, problem.code) for problem in problems] == [("files.0.path", "path_conflict")]


def test_only_the_first_problems_are_told():
    assert len(path_problems([".."] * 1000)) == MAX_PROBLEMS
