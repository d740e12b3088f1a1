"""Which packages a job's code asks for, as pip would read its files."""

from __future__ import annotations

from pathlib import Path

import pytest

from yardmaster_runner.requirement_files import MOST_BYTES, BadRequirements, Wanted, name_of, wanted


def _code(folder: Path, **files: str) -> str:
    for name, text in files.items():
        (folder / name.replace("__", "/").replace("_", ".")).parent.mkdir(parents=True, exist_ok=True)
        (folder / name.replace("__", "/").replace("_", ".")).write_text(text)
    return str(folder)


def test_code_without_such_files_asks_for_nothing(tmp_path: Path) -> None:
    assert wanted(str(tmp_path), None) == Wanted()


def test_comments_blank_lines_and_continued_lines_are_read_as_pip_does(tmp_path: Path) -> None:
    text = "# a comment\n\npandas >= 2 # newer\npillow \\\n  ==11.0\nurl-with#hash\nrich; python_version < '4'\n--pre\n"
    found = wanted(_code(tmp_path, requirements_txt=text), None)
    assert found.lines == ("pandas >= 2", "pillow ==11.0", "url-with#hash", "rich; python_version < '4'", "--pre")
    assert found.source == "requirements.txt"


def test_files_that_are_included_are_read_from_the_code(tmp_path: Path) -> None:
    base = _code(tmp_path, requirements_txt="-r more/base.txt\n-c limits.txt\nrich\n", limits_txt="numpy<3\n")
    _code(tmp_path, more__base_txt="-r deeper.txt\npandas\n", more__deeper_txt="pillow\n")
    found = wanted(base, None)
    assert (found.lines, found.constraints) == (("pillow", "pandas", "rich"), ("numpy<3",))


@pytest.mark.parametrize("line", ["-r ../secret.txt", "-r /etc/passwd", "-r missing.txt", "--requirement=../../x"])
def test_no_file_outside_of_the_code_is_included(tmp_path: Path, line: str) -> None:
    (tmp_path / "secret.txt").write_text("pandas\n")
    with pytest.raises(BadRequirements, match=r"leads outside|not in the code"):
        wanted(_code(tmp_path / "code", requirements_txt=line + "\n"), None)


def test_a_link_to_a_file_outside_is_not_followed(tmp_path: Path) -> None:
    (tmp_path / "secret.txt").write_text("pandas\n")
    (tmp_path / "code").mkdir()
    (tmp_path / "code" / "linked.txt").symlink_to(tmp_path / "secret.txt")
    with pytest.raises(BadRequirements, match="leads outside"):
        wanted(_code(tmp_path / "code", requirements_txt="-r linked.txt\n"), None)


def test_files_that_include_each_other_end(tmp_path: Path) -> None:
    with pytest.raises(BadRequirements, match="include each other"):
        wanted(_code(tmp_path, requirements_txt="-r requirements.txt\n"), None)


@pytest.mark.parametrize(
    "line", ["git+https://host/it.git", "x @ https://host/x.whl", "numpy @ file:///croot/numpy", "https://host/x.whl"]
)
def test_addresses_are_refused_with_what_to_write_instead(tmp_path: Path, line: str) -> None:
    with pytest.raises(BadRequirements, match="write its name and version"):
        wanted(_code(tmp_path, requirements_txt=line + "\n"), None)


def test_another_index_and_the_code_itself_are_left_out_and_named(tmp_path: Path) -> None:
    text = "--extra-index-url https://host/simple\n-e .\npandas\n-i https://other/simple\n--trusted-host=x\n"
    found = wanted(_code(tmp_path, requirements_txt=text), None)
    assert found.lines == ("pandas",)
    assert len(found.left_out) == 4
    assert "packages come from the portal's index" in found.left_out[0]
    assert "https://" not in " ".join(found.left_out)  # it may have a password


def test_a_local_wheel_is_refused(tmp_path: Path) -> None:
    with pytest.raises(BadRequirements, match="is a path"):
        wanted(_code(tmp_path, requirements_txt="wheels/x-1.0-py3-none-any.whl\n"), None)


def test_a_project_file_is_read_where_there_are_no_requirements(tmp_path: Path) -> None:
    code = _code(tmp_path, pyproject_toml='[project]\nname = "x"\ndependencies = ["pandas>=2", "rich"]\n')
    assert wanted(code, None).lines == ("pandas>=2", "rich")
    (tmp_path / "requirements.txt").write_text("pillow\n")
    assert wanted(code, None).lines == ("pillow",)


def test_a_project_file_without_dependencies_asks_for_nothing(tmp_path: Path) -> None:
    assert wanted(_code(tmp_path, pyproject_toml="[tool.ruff]\nline-length = 100\n"), None).lines == ()


@pytest.mark.parametrize("text", ["[project", "project = 3", '[project]\ndependencies = "pandas"'])
def test_a_project_file_that_says_something_else_is_refused(tmp_path: Path, text: str) -> None:
    with pytest.raises(BadRequirements, match=r"pyproject\.toml"):
        wanted(_code(tmp_path, pyproject_toml=text), None)


def test_what_the_specification_says_counts_alone(tmp_path: Path) -> None:
    code = _code(tmp_path, requirements_txt="pandas\n")
    assert wanted(code, ["rich"]).lines == ("rich",)
    assert wanted(code, []).lines == ()


def test_a_file_in_the_encoding_of_windows_is_read(tmp_path: Path) -> None:
    (tmp_path / "requirements.txt").write_bytes("pandas>=2\r\nrich\r\n".encode("utf-16"))
    assert wanted(str(tmp_path), None).lines == ("pandas>=2", "rich")


def test_what_is_too_large_is_refused(tmp_path: Path) -> None:
    (tmp_path / "requirements.txt").write_bytes(b"#" * (MOST_BYTES + 1))
    with pytest.raises(BadRequirements, match="64 KiB"):
        wanted(str(tmp_path), None)
    (tmp_path / "requirements.txt").write_text("a\n" * 501)
    with pytest.raises(BadRequirements, match="more than 500"):
        wanted(str(tmp_path), None)


@pytest.mark.parametrize(
    ("line", "name"),
    [
        ("Pandas>=2", "pandas"),
        ("zope.interface", "zope-interface"),
        ("a_b[extra]==1", "a-b"),
        ("--pre", ""),
        ("x", "x"),
    ],
)
def test_names_are_compared_as_indexes_do(line: str, name: str) -> None:
    assert name_of(line) == name
