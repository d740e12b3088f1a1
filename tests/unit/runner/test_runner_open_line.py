"""The line that is not finished is shown while its log is followed, once a second at most, and costs nothing else."""

from __future__ import annotations

from yardmaster_runner.answers import PortalAway
from yardmaster_runner.open_line import AFTER_TROUBLE, AGAIN, OpenLine


class Portal:
    def __init__(self) -> None:
        self.shown: list[tuple[int, str]] = []
        self.is_away = False

    def log_open(self, line: int, text: str) -> None:
        if self.is_away:
            raise PortalAway("gone")
        self.shown.append((line, text))


class Scene:
    """A line that is open, a base, and a clock that stands still."""

    def __init__(self) -> None:
        self.portal, self.line, self.now, self.is_followed = Portal(), (0, b""), 100.0, True
        self.sender = OpenLine(
            lambda: self.line, lambda: 40, lambda: self.is_followed, self.portal, clock=lambda: self.now
        )

    def step(self, number: int, text: bytes, seconds: float = 1.0) -> list[tuple[int, str]]:
        """What the portal is shown by this step."""
        before = len(self.portal.shown)
        self.line, self.now = (number, text), self.now + seconds
        self.sender.step()
        return self.portal.shown[before:]


def test_a_line_is_shown_in_its_latest_state_with_its_number_at_the_portal() -> None:
    scene = Scene()
    assert scene.step(2, b"\r1/3\r2/3") == [(42, "2/3")]
    assert scene.step(2, b"\r3/3") == [(42, "3/3")]


def test_what_stays_the_same_is_sent_now_and_then_and_what_is_gone_once() -> None:
    scene = Scene()
    assert scene.step(2, b"at") == [(42, "at")]
    assert scene.step(2, b"at") == []
    assert scene.step(2, b"at", AGAIN) == [(42, "at")]
    assert scene.step(3, b"") == [(43, "")]
    assert scene.step(3, b"", AGAIN) == []


def test_without_followers_nothing_is_sent_and_a_new_one_sees_the_line() -> None:
    scene = Scene()
    scene.is_followed = False
    assert scene.step(2, b"1/3") == []
    scene.is_followed = True
    assert scene.step(2, b"1/3") == [(42, "1/3")]
    scene.is_followed = False
    scene.step(2, b"1/3")
    scene.is_followed = True
    assert scene.step(2, b"1/3") == [(42, "1/3")]


def test_a_portal_that_is_away_is_left_alone_for_a_while() -> None:
    scene = Scene()
    scene.portal.is_away = True
    assert scene.step(2, b"1/3") == []
    scene.portal.is_away = False
    assert scene.step(2, b"2/3") == []
    assert scene.step(2, b"3/3", AFTER_TROUBLE) == [(42, "3/3")]
