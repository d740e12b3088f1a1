"""Run where tasks run: rows are written by an encoder of this file's own and decoded by the reader's. Prints what was
found as JSON."""

from __future__ import annotations

import json
import random
import struct
import sys
import uuid

import numpy as np

from yardmaster_runner.data.ignite_reader import wire
from yardmaster_runner.data.ignite_reader.binary_types import BinaryTypes, DataObject
from yardmaster_runner.data.ignite_reader.columns import Ragged, Text, cut, joined, kept
from yardmaster_runner.data.ignite_reader.decoding import Decoder
from yardmaster_runner.data.ignite_reader.errors import IgniteDataError
from yardmaster_runner.data.ignite_reader.layout import Wishes, layout_of
from yardmaster_runner.data.ignite_reader.rows import places
from yardmaster_runner.data.ignite_reader.scan import HandedOut

FORMS = {wire.BYTE: "b", wire.SHORT: "h", wire.INT: "i", wire.LONG: "q", wire.FLOAT: "f", wire.DOUBLE: "d",
         wire.CHAR: "H", wire.BOOL: "?", wire.DATE: "q"}  # fmt: skip
ARRAYS = {wire.BYTES: "B", wire.INTS: "i", wire.LONGS: "q", wire.FLOATS: "f", wire.DOUBLES: "d", wire.BOOLS: "?"}
OUTER, INNER = 1001, 1002
OUTER_FIELDS = {"whole": wire.INT, "name": wire.STRING, "on": wire.BOOL, "inner": wire.OBJECT, "items": wire.FLOATS,
                "blob": wire.BYTES, "mark": wire.UUID, "exact": wire.DOUBLE, "again": wire.OBJECT}  # fmt: skip
INNER_FIELDS = {"id": wire.LONG, "label": wire.STRING}


def value(code: int, given) -> bytes:
    """A value with its type code."""
    if given is None:
        return bytes([wire.NULL])
    if code in FORMS:
        return struct.pack("<b" + FORMS[code], code, given)
    if code == wire.STRING:
        return wire.text_bytes(given)
    if code == wire.UUID:
        halves = given.bytes
        return bytes([code]) + halves[:8][::-1] + halves[8:][::-1]
    return struct.pack(f"<bi{len(given)}{ARRAYS[code]}", code, len(given), *given)


def binary_object(kind: int, fields: dict, given: dict, *, compact: bool, width: int, left_out=()) -> bytes:
    """An object with offsets of this width. A value that is bytes already is put in as it is."""
    body, offsets, ids = b"", [], []
    for name, code in fields.items():
        if name in left_out:
            continue
        ids.append(wire.java_hash(name))
        offsets.append(24 + len(body))
        one = given[name]
        if callable(one):
            one = one(24 + len(body), dict(zip(fields, offsets, strict=False)))
        body += one if isinstance(one, bytes) and code == wire.OBJECT else value(code, one)
    form = {1: "B", 2: "H", 4: "i"}[width]
    footer = b"".join(
        (b"" if compact else struct.pack("<i", n)) + struct.pack("<" + form, at)
        for n, at in zip(ids, offsets, strict=False)
    )
    flags = 1 | 2 | {1: 8, 2: 16, 4: 0}[width] | (32 if compact else 0)
    schema = 7 + len(left_out)
    head = struct.pack(
        "<bbhiiiii", wire.OBJECT, 1, flags, kind, 0, 24 + len(body) + len(footer), schema, 24 + len(body)
    )
    return head + body + footer


def types_of(*, left_out=()) -> BinaryTypes:
    def ask(operation: int, body: bytes) -> wire.Reader:
        number = struct.unpack("<i", body)[0]
        fields = OUTER_FIELDS if number == OUTER else INNER_FIELDS
        said = (
            struct.pack("<bi", 1, number)
            + wire.text_bytes("Outer" if number == OUTER else "Inner")
            + bytes([wire.NULL])
        )
        said += struct.pack("<i", len(fields))
        for name, code in fields.items():
            said += wire.text_bytes(name) + struct.pack("<ii", code, wire.java_hash(name))
        schemas = {7: list(fields)}
        if number == OUTER and left_out:
            schemas[7 + len(left_out)] = [one for one in fields if one not in left_out]
        said += struct.pack("<bi", 0, len(schemas))
        for schema, order in schemas.items():
            said += struct.pack("<ii", schema, len(order)) + b"".join(
                struct.pack("<i", wire.java_hash(one)) for one in order
            )
        return wire.Reader(said)

    return BinaryTypes(ask)


def some_row(dice: random.Random, number: int, *, nulls: bool, short: bool) -> dict:
    row = {
        "whole": number - 5, "name": "größe" * dice.randrange(4), "on": number % 3 == 0, "exact": number / 7,
        "items": [dice.randrange(9) / 2 for _ in range(dice.randrange(4))],
        "blob": bytes(dice.randrange(256) for _ in range(6 if short else dice.randrange(200))),
        "mark": uuid.UUID(int=dice.getrandbits(128)), "inner": {"id": number * 3, "label": f"l{number}"},
    }  # fmt: skip
    if nulls and number % 4 == 1:
        row.update(name=None, exact=None, items=None, inner=None, blob=None)
    return row


def encoded(row: dict, *, compact: bool, width: int, left_out=()) -> bytes:
    given = dict(row)
    if row["inner"] is None:
        given["inner"] = given["again"] = bytes([wire.NULL])
    else:
        given["inner"] = binary_object(INNER, INNER_FIELDS, row["inner"], compact=compact, width=1)
        given["again"] = lambda at, offsets: struct.pack("<bi", wire.HANDLE, at - offsets["inner"])
    return binary_object(OUTER, OUTER_FIELDS, given, compact=compact, width=width, left_out=left_out)


def wrapped(content: bytes) -> bytes:
    """As values of caches come: the object some bytes into what is wrapped."""
    return struct.pack("<bi", wire.WRAPPED, len(content) + 3) + b"???" + content + struct.pack("<i", 3)


NULLS = {"val.name": "none", "val.exact": -1.0, "val.items": (9.0,), "val.blob": b"", "val.inner.id": -3,
         "val.inner.label": "", "val.again.id": -3, "val.again.label": ""}  # fmt: skip


def plain(column, at: int):
    """A row of a column as Python has it."""
    if isinstance(column, Text):
        return column.objects()[at]
    if isinstance(column, Ragged):
        return column.values[column.splits[at] : column.splits[at + 1]].tolist()
    return column[at].tolist()


def expected(row: dict) -> list:
    inner = row["inner"] or {"id": -3, "label": ""}
    both = [inner["id"], inner["label"].encode()]
    name = "none" if row["name"] is None else row["name"]
    items = [9.0] if row["items"] is None else row["items"]
    exact = -1.0 if row["exact"] is None else row["exact"]
    blob = list(row["blob"] or b"")
    return [row["whole"], name.encode(), row["on"], *both, items, blob, row["mark"].bytes, exact, *both]


def decoded(rows: list, values: list, types: BinaryTypes, wishes: Wishes, key=lambda number: value(wire.LONG, number)):
    page = memoryview(b"".join(key(number) + one for number, one in enumerate(values)) + b"\0")
    (keys, found), end = places(page, 0, len(rows))
    assert end == len(page) - 1
    sample = {"key": [DataObject(page, int(keys[0]))], "val": [DataObject(page, int(one)) for one in found[:9]]}
    layout = layout_of(sample, types, wishes, "The cache")
    decoder = Decoder(layout, types, "the cache")
    return decoder, decoder.columns(page, {"key": keys, "val": found})


def all_forms() -> int:
    """Every form of an object, rows of one length and of many; the number of rows that came out as they went in."""
    dice, right = random.Random(1), 0
    for compact in (True, False):
        for width in (1, 2, 4):
            for short in (True, False):
                if width == 1 and not short:
                    continue
                for nulls in (True, False):
                    rows = [some_row(dice, number, nulls=nulls, short=short) for number in range(57)]
                    values = [wrapped(encoded(one, compact=compact, width=width)) for one in rows]
                    decoder, columns = decoded(rows, values, types_of(), Wishes(nulls=NULLS))
                    assert [one.path for one in decoder.leaves][:3] == ["key", "val.whole", "val.name"]
                    for at, row in enumerate(rows):
                        assert [plain(one, at) for one in columns] == [at, *expected(row)], (at, row)
                        right += 1
    return right


def older_schemas() -> list:
    """A field that was added to the type later is null in older rows."""
    dice = random.Random(2)
    rows = [some_row(dice, number, nulls=False, short=True) for number in range(30)]
    values = [
        wrapped(encoded(one, compact=True, width=2, left_out=("exact",) if number % 3 else ()))
        for number, one in enumerate(rows)
    ]
    _, columns = decoded(
        rows, values, types_of(left_out=("exact",)), Wishes(fields=["val.exact"], nulls={"val.exact": 0.5})
    )
    return [plain(columns[0], at) == (0.5 if at % 3 else row["exact"]) for at, row in enumerate(rows)]


def messages() -> dict:
    """What is said of rows that cannot become tensors."""
    dice = random.Random(3)
    rows = [some_row(dice, number, nulls=True, short=True) for number in range(9)]
    values = [wrapped(encoded(one, compact=True, width=2)) for one in rows]
    said = {}

    def asked(name: str, some: list, wishes: Wishes, types=None) -> None:
        try:
            decoded(rows, some, types or types_of(), wishes)
            said[name] = ""
        except IgniteDataError as error:
            said[name] = f"{error.code}: {error}"

    asked("null", values, Wishes(fields=["key", "val.name"]))
    asked("unknown field", values, Wishes(fields=["val.nmae"]))
    asked("shape", values, Wishes(fields=["val.items"], shapes={"val.items": (7,)}, nulls={"val.items": [0] * 7}))
    odd = [wrapped(binary_object(INNER, INNER_FIELDS, {"id": 1, "label": ""}, compact=True, width=1))]
    asked("other type at first", [*values[:8], *odd], Wishes())
    asked("map", [struct.pack("<bii", 25, 0, 1)] * 9, Wishes())
    asked("two types", [value(wire.INT, 1), *[value(wire.LONG, 1)] * 8], Wishes())
    return said


def primitive_keys() -> bool:
    """Rows whose keys and values are plain, with lengths that change within a page."""
    dice = random.Random(4)
    texts = ["x" * (3 if number < 40 or number > 90 else dice.randrange(5)) for number in range(150)]
    _, columns = decoded(texts, [value(wire.STRING, one) for one in texts], types_of(), Wishes(),
                         key=lambda number: value(wire.STRING, f"k{number}"))  # fmt: skip
    right = [
        (plain(columns[0], at), plain(columns[1], at)) == (b"k%d" % at, one.encode()) for at, one in enumerate(texts)
    ]
    parts = [cut(columns[1], 0, 40), cut(columns[1], 40, 41), cut(columns[1], 41, 150)]
    again = joined(parts)
    odd = kept(columns[1], np.arange(150) % 2 == 1)
    right += [plain(again, at) == one.encode() for at, one in enumerate(texts)]
    right += [plain(odd, at) == texts[2 * at + 1].encode() for at in range(75)]
    return all(right)


def handed_out() -> list:
    """Rows whose keys were handed out are passed over: keys of one length, and of several."""
    found = []
    for key in (
        lambda number: value(wire.LONG, number),
        lambda number: value(wire.STRING, "k" * (number % 7) + str(number)),
    ):
        page = memoryview(b"".join(key(number) + value(wire.INT, number) for number in range(60)) + b"\0")
        (keys, values), _ = places(page, 0, 60)
        given = HandedOut()
        given.add(page, keys[:30:2], values[:30:2])
        given.add(page, keys[40:], values[40:])
        mask = given.others(page, keys, values)
        found.append(np.nonzero(mask)[0].tolist() == [*range(1, 30, 2), *range(30, 40)])
    return found


if __name__ == "__main__":
    print(json.dumps({
        "right": all_forms(), "older": older_schemas(), "messages": messages(), "primitive": primitive_keys(),
        "handed_out": handed_out(),
    }))  # fmt: skip
    sys.exit(0)
