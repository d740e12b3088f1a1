"""What is an answer of a program, where it ends, and whether another one can follow it."""

from __future__ import annotations

import pytest

from apps.workbench.proxy.answer_parser import LONGEST_HEAD, AnswerParser, NotHttp

OK = b"HTTP/1.1 200 OK\r\n"


def parsed(*pieces: bytes, is_head: bool = False, ends: bool = False) -> AnswerParser:
    parser = AnswerParser()
    parser.begin(is_head=is_head)
    for piece in pieces:
        parser.feed(piece)
    if ends:
        parser.end()
    return parser


@pytest.mark.parametrize(
    ("answer", "body", "stays"),
    [
        (OK + b"Content-Length: 3\r\n\r\nabc", b"abc", True),
        (OK + b"Transfer-Encoding: Chunked\r\n\r\n3\r\nabc\r\n0\r\nX: behind\r\n\r\n", b"abc", True),
        (b"HTTP/1.1 100 Continue\r\n\r\n" + OK + b"Content-Length: 0\r\n\r\n", b"", True),
        (b"HTTP/1.1 304 Not Modified\r\nContent-Length: 5\r\n\r\n", b"", True),
        (OK + b"Connection: close\r\nContent-Length: 3\r\n\r\nabc", b"abc", False),
        (b"HTTP/1.0 200 OK\r\nContent-Length: 3\r\n\r\nabc", b"abc", False),
        (OK + b"Content-Length: 3\r\n\r\nabc" + OK, b"abc", False),
        (OK + b"Content-Length: 3\r\n\r\nabcd", b"abc", False),
    ],
)
def test_where_an_answer_ends_and_whether_the_connection_stays(answer: bytes, body: bytes, stays: bool):
    bytewise = [answer[place : place + 1] for place in range(len(answer))]
    for parser in (parsed(answer), parsed(*bytewise)):
        assert parser.is_whole
        assert b"".join(parser.taken()) == body
        assert parser.stays == stays


def test_one_answer_after_another():
    parser = parsed(OK + b"Content-Length: 3\r\n\r\nabc")
    parser.begin(is_head=False)
    assert not parser.is_whole
    parser.feed(b"HTTP/1.1 404 Not Found\r\nX-Own: y\r\nContent-Length: 0\r\n\r\n")
    assert parser.answer is not None
    assert (parser.answer.status, parser.answer.headers[0]) == (404, (b"x-own", b"y"))
    assert (parser.is_whole, parser.taken(), parser.stays) == (True, [], True)


def test_an_answer_to_head_has_no_body_and_ends_the_connection():
    parser = parsed(OK + b"Content-Length: 3\r\n\r\n", b"abc", is_head=True)
    assert (parser.is_whole, parser.stays, parser.taken()) == (True, False, [])


def test_a_body_without_a_length_ends_with_the_connection():
    parser = parsed(OK + b"\r\n", b"abc")
    assert not parser.is_whole
    parser.end()
    assert (parser.is_whole, parser.stays, parser.taken()) == (True, False, [b"abc"])


@pytest.mark.parametrize(
    "begun", [OK + b"Content-Length: 3\r\n\r\nab", OK + b"Transfer-Encoding: chunked\r\n\r\n3\r\n"]
)
def test_what_breaks_off_is_not_whole(begun: bytes):
    with pytest.raises(NotHttp, match="before its end"):
        parsed(begun, ends=True)


def test_a_connection_that_says_nothing_was_lost():
    with pytest.raises(ConnectionResetError):
        parsed(b"HTTP/1.1 100 Continue\r\n\r\n", ends=True)


@pytest.mark.parametrize(
    "answer",
    [
        OK + b"Transfer-Encoding: gzip, chunked\r\n\r\n",
        OK + b"Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n\r\n",
        OK + b"Content-Length: 3\r\nContent-Length: 3\r\n\r\nabc",
        OK + b"Content-Length: +3\r\n\r\nabc",
        OK + b"X: a\x00b\r\n\r\n",
        OK + b"X: a\nY: b\r\n\r\n",
        OK + b"X: a\r\n folded\r\n\r\n",
        OK + b"X: " + b"x" * LONGEST_HEAD + b"\r\n\r\n",
        b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\nConnection: upgrade\r\n\r\n",
        b"HTTP/1.1 600 Odd\r\n\r\n",
    ],
)
def test_what_is_no_answer(answer: bytes):
    with pytest.raises(NotHttp):
        parsed(answer)


@pytest.mark.parametrize("begun", [OK + b"X: ", OK + b"Transfer-Encoding: chunked\r\n\r\n0\r\nX: ",
                                   OK + b"Transfer-Encoding: chunked\r\n\r\n3;"])  # fmt: skip
def test_what_belongs_to_no_body_is_bounded(begun: bytes):
    with pytest.raises(NotHttp, match="bytes"):
        parsed(begun, *[b"x" * 1000] * 70)
