"""The records of each format, with their places. A record that cannot be used comes as its `BadRecord`."""

from __future__ import annotations

import os
from typing import Any, Dict, Iterator, List, Sequence, Tuple, Union

from yardmaster_runner.data.description import Feature
from yardmaster_runner.prepare import arrays, folder, tables
from yardmaster_runner.prepare.trouble import BadRecord, PrepareError

LARGEST_FILE = 256 << 20
MOST_PIXELS = 100_000_000
Placed = Tuple[str, Union[Dict[str, Any], BadRecord]]


class Source:
    """One format's files below `top`. Knows features and classes of all files before the first record is read."""

    def __init__(self, top: str, form: str, files: Sequence[folder.File], label: str, skip: bool) -> None:
        self.top, self.form, self.label, self.skip = top, form, label, skip
        self.files: List[folder.File] = list(files)
        self.features: Dict[str, Feature] = {}
        self.classes: List[str] = []
        self.kinds: Dict[str, str] = {}
        getattr(self, "_open_" + ("folders" if form in ("images", "text") else form))()
        self.numbers = {name: number for number, name in enumerate(self.classes)}

    def _open_folders(self) -> None:
        self.classes = sorted({folder.class_of(one.path) for one in self.files} - {""})
        name, encoding = ("image", "image") if self.form == "images" else ("text", "utf8")
        self.features = {name: Feature("bytes", (), encoding)}
        self.label = "label" if self.classes else ""
        if self.classes:
            self.features["label"] = Feature("int64", ())

    def _open_csv(self) -> None:
        self._look_at_rows()

    def _open_jsonl(self) -> None:
        self._look_at_rows()

    def _look_at_rows(self) -> None:
        table = tables.Table(self.label)
        see: Any = table.see_cells if self.form == "csv" else table.see_members
        for one in self.files:
            for row, record in self._rows(one):
                try:
                    if isinstance(record, BadRecord):
                        raise record
                    see(record)
                except (ValueError, BadRecord) as error:
                    if not self.skip:
                        place = "%s, row %d" % (one.path, row)
                        raise error if isinstance(error, BadRecord) else BadRecord(place, str(error)) from None
        self.features, self.classes, self.kinds = table.features(), table.classes(), table.kinds

    def _open_numpy(self) -> None:
        names = {one.path for one in self.files}
        partners = {arrays.partner(one.path) for one in self.files} & names
        self.files = [one for one in self.files if one.path not in partners]
        self.label = "y" if partners else ""
        for one in self.files:
            features = {name: array.feature() for name, array in self._arrays(one)}
            if self.features and features != self.features:
                raise PrepareError("%s: its items or shape differ from those of %s" % (one.path, self.files[0].path))
            self.features = features

    def _arrays(self, one: folder.File) -> List[Tuple[str, arrays.Array]]:
        found = [("x", arrays.opened(os.path.join(self.top, one.path), one.path))]
        other = arrays.partner(one.path)
        if other and os.path.isfile(os.path.join(self.top, other)):
            found.append(("y", arrays.opened(os.path.join(self.top, other), other)))
            if found[0][1].rows != found[1][1].rows:
                message = "%s has %d records, %s has %d"
                raise PrepareError(message % (one.path, found[0][1].rows, other, found[1][1].rows))
        return found

    def _rows(self, one: folder.File) -> Iterator[tables.Row]:
        read = tables.csv_rows if self.form == "csv" else tables.json_rows
        return read(os.path.join(self.top, one.path), one.path)

    def records(self, one: folder.File) -> Iterator[Placed]:
        """All records of one file."""
        if self.form == "numpy":
            found = self._arrays(one)
            for row, values in enumerate(zip(*(array.read() for _, array in found))):
                yield "%s, row %d" % (one.path, row), dict(zip((name for name, _ in found), values))
        elif self.form in ("csv", "jsonl"):
            for row, record in self._rows(one):
                place = "%s, row %d" % (one.path, row)
                yield place, record if isinstance(record, BadRecord) else self._valued(place, record)
        else:
            try:
                yield one.path, self._whole(one)
            except BadRecord as error:
                yield one.path, error

    def _valued(self, place: str, record: Dict[str, Any]) -> Union[Dict[str, Any], BadRecord]:
        try:
            values = tables.converted(record, self.kinds) if self.form == "csv" else record
            if self.classes:
                values[self.label] = self.numbers[str(record[self.label])]
        except (KeyError, ValueError) as error:
            return BadRecord(place, str(error))
        return values

    def _whole(self, one: folder.File) -> Dict[str, Any]:
        if one.size > LARGEST_FILE:
            raise BadRecord(one.path, "%d bytes, more than %d" % (one.size, LARGEST_FILE))
        with open(os.path.join(self.top, one.path), "rb") as file:
            data = file.read(LARGEST_FILE)
        record: Dict[str, Any] = {}
        if self.form == "images":
            check_image(one.path, data)
            record["image"] = data
        else:
            try:
                record["text"] = data.decode("utf-8")
            except UnicodeDecodeError as error:
                raise BadRecord(one.path, "not UTF-8: byte %d" % error.start) from None
        if self.classes:
            name = folder.class_of(one.path)
            if not name:
                raise BadRecord(one.path, "in no class folder, as other files are")
            record["label"] = self.numbers[name]
        return record


def check_image(place: str, data: bytes) -> None:
    """Raise `BadRecord` for a picture that is no picture, cut off, or too large. Nothing is decoded."""
    try:
        from PIL import Image
    except ImportError:
        raise PrepareError("images need Pillow: add pillow to the packages of the task") from None
    import io
    import warnings

    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            picture = Image.open(io.BytesIO(data), formats=("JPEG", "PNG", "GIF", "BMP"))
            pixels, form = picture.size[0] * picture.size[1], picture.format
            picture.verify()
    except Exception as error:  # noqa: BLE001 - Pillow raises many kinds for hostile pictures
        raise BadRecord(place, "not a whole picture: %s" % error) from None
    if pixels > MOST_PIXELS:
        raise BadRecord(place, "%d pixels, more than %d" % (pixels, MOST_PIXELS))
    ends = {"JPEG": b"\xff\xd9", "PNG": b"IEND", "GIF": b";"}.get(str(form), b"")
    if ends not in data[-1024:]:
        raise BadRecord(place, "cut off: the end of the %s is missing" % form)
