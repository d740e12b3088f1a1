"""A portal whose package index is a real one on this machine."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.real.package_index import PackageIndex, package_index, wheel
from tests.real.scene import Scene, scene

GREET = """
def greeting():
    return "hello from the package"


def main():
    print("the program says", greeting())
"""
AGAIN = {"greet.py": GREET.replace("hello", "hello again")}
WHEELS = (
    wheel("greet", "1.0", {"greet.py": GREET}, program="greet = greet:main"),
    wheel("greet", "2.0", AGAIN, ["polite>=1"], program="greet = greet:main"),
    wheel("lonely", "1.0", {"lonely.py": ""}, ["absent>=1"]),
    wheel("polite", "0.9", {"polite.py": "word = 'please'\n"}),
    wheel("polite", "1.5", {"polite.py": "word = 'please'\n"}),
    wheel("quarrel", "1.0", {"quarrel.py": ""}, ["polite<1"]),
    wheel("newer", "1.0", {"newer.py": ""}, ["numpy<1"]),
)


@pytest.fixture(scope="module")
def index() -> Iterator[PackageIndex]:
    with package_index(*WHEELS) as one:
        yield one


@pytest.fixture(scope="module")
def portal_with_index(index: PackageIndex) -> Iterator[Scene]:
    with scene(settings={"YARDMASTER_PACKAGE_INDEX": index.url}) as one:
        yield one
