"""The newest images, histograms, texts and hyperparameters that scripts write with `tf.summary`, bounded, in a folder
that is sent with the outputs: `index.json`, and the images beside it under names that are used again.

    {"version": 1,
     "images": [{"run", "tag", "steps": [{"step", "time", "file", "width", "height"}]}],
     "histograms": [{"run", "tag", "steps": [{"step", "time", "left", "right", "counts"}]}],
     "texts": [{"run", "tag", "steps": [{"step", "time", "text"}]}],
     "hparams": [{"run", "time", "values": {name: value}}],
     "left_out": {"images": N, …}}
"""

from __future__ import annotations

import hashlib
import json
import os
import threading
from functools import partial
from typing import Any, Callable, Dict, List, Set, Tuple

from yardmaster_runner.output_files import Listing, OutputFile
from yardmaster_runner.protowire import WireError
from yardmaster_runner.summary_values import LONGEST_NAME, Image, Summary, plain, read_summary

FOLDER = "_summaries"
INDEX = "index.json"
MOST_TAGS = {"images": 30, "histograms": 50, "texts": 20, "hparams": 30}
NEWEST_IMAGES = 8
NEWEST_TEXTS = 5
STEPS_OF_HISTOGRAM = 40
Series = Tuple[str, str]


class Summaries:
    """What event files were found to hold. `take` is called by one thread, `listing` by another."""

    def __init__(self, folder: str) -> None:
        self.folder = folder
        self._lock = threading.Lock()
        self._found: Dict[str, Dict[Series, List[Dict[str, Any]]]] = {kind: {} for kind in MOST_TAGS}
        self._left_out: Dict[str, Set[Series]] = {kind: set() for kind in MOST_TAGS}
        self._slots: Dict[Series, int] = {}
        self._is_changed = False

    def take(self, message: bytes, run: str, step: int, time: float) -> None:
        """A Summary.Value that is no scalar. What cannot be read is passed over."""
        try:
            summary = read_summary(message)
        except (WireError, ValueError, OverflowError):
            return
        if summary is not None:
            with self._lock:
                self._keep(summary, plain(run, LONGEST_NAME), step, round(time, 3))

    def listing(self, is_last: bool) -> Listing:
        """The files as they are now, the index written again where anything has changed."""
        with self._lock:
            if self._is_changed:
                self._write(INDEX, json.dumps(self._index(), ensure_ascii=False, separators=(",", ":")).encode())
                self._is_changed = False
            names = [one["file"] for steps in self._found["images"].values() for one in steps]
        found = []
        for path in [*names, INDEX] if os.path.exists(os.path.join(self.folder, INDEX)) else []:
            state = os.lstat(os.path.join(self.folder, path))
            file = OutputFile(path, state.st_size, state.st_mtime_ns, state.st_ino, "%s/%s" % (FOLDER, path))
            found.append(file)
        return Listing(found)

    def _keep(self, summary: Summary, run: str, step: int, time: float) -> None:
        at = {"step": step, "time": time}
        for number, image in enumerate(summary.images):
            tag = summary.tag if number == 0 else "%s (%d)" % (summary.tag, number + 1)
            self._add("images", (run, tag), partial(self._of_image, (run, tag), image, at))
        if summary.histogram is not None:
            one = summary.histogram
            self._add("histograms", (run, summary.tag), lambda: {**at, **vars(one)})
        if summary.text is not None:
            self._add("texts", (run, summary.tag), lambda: {**at, "text": summary.text})
        if summary.parameters is not None:
            self._add("hparams", (run, ""), lambda: {"time": time, "values": summary.parameters})

    def _add(self, kind: str, series: Series, value: Callable[[], Dict[str, Any]]) -> None:
        known = self._found[kind]
        if series not in known and len(known) >= MOST_TAGS[kind]:
            if len(self._left_out[kind]) < 10_000:
                self._left_out[kind].add(series)
            return
        steps = known.setdefault(series, [])
        steps.append(value())
        known[series] = _bounded(kind, steps)
        self._is_changed = True

    def _of_image(self, series: Series, image: Image, at: Dict[str, Any]) -> Dict[str, Any]:
        slot = self._slots.get(series, 0)
        self._slots[series] = (slot + 1) % NEWEST_IMAGES
        digest = hashlib.sha256("\n".join(series).encode("utf-8", "replace")).hexdigest()[:16]
        path = "images/%s-%d%s" % (digest, slot, image.ending)
        self._write(path, image.data)
        return {**at, "file": path, "width": image.width, "height": image.height}

    def _index(self) -> Dict[str, Any]:
        index: Dict[str, Any] = {"version": 1}
        for kind in ("images", "histograms", "texts"):
            index[kind] = [{"run": run, "tag": tag, "steps": all_} for (run, tag), all_ in self._found[kind].items()]
        index["hparams"] = [{"run": run, **steps[-1]} for (run, _), steps in self._found["hparams"].items()]
        index["left_out"] = {kind: len(series) for kind, series in self._left_out.items() if series}
        return index

    def _write(self, path: str, data: bytes) -> None:
        target = os.path.join(self.folder, path)
        os.makedirs(os.path.dirname(target), exist_ok=True)
        with open(target + ".new", "wb") as file:
            file.write(data)
        os.replace(target + ".new", target)


def _bounded(kind: str, steps: List[Dict[str, Any]]) -> List[Dict[str, Any]]:
    """The newest; of histograms every other one where they are too many, so that the whole time is shown."""
    if kind == "images":
        return steps[-NEWEST_IMAGES:]
    if kind == "texts":
        return steps[-NEWEST_TEXTS:]
    if kind == "hparams":
        return steps[-1:]
    return [*steps[:-1:2], steps[-1]] if len(steps) > STEPS_OF_HISTOGRAM else steps
