"""A preparation as people run it: raw files are uploaded, two workers prepare them with TensorFlow on the local engine,
and a version with `dataset.json` is published; a step of the user's; bad data; a stop."""

from __future__ import annotations

import io
import json
import os
import re
import tarfile

import pytest

from portal.env import task_python
from tests.real.portal import RealPortal, whole_portal
from yardmaster_client import Yardmaster
from yardmaster_client.cli.main import run

__all__ = ["whole_portal"]

pytestmark = [pytest.mark.tensorflow, pytest.mark.slow]

STEP = "def map_record(record):\n    record['length'] = len(record['text'])\n    return record\n"


@pytest.fixture(scope="module")
def ada(whole_portal: RealPortal):
    with Yardmaster(whole_portal.url, whole_portal.token_of("ada", is_staff=True)) as portal:
        yield portal


@pytest.fixture
def command(whole_portal: RealPortal, ada: Yardmaster, monkeypatch, capsys):
    def call(*words: str):
        monkeypatch.setenv("YARDMASTER_URL", whole_portal.url)
        monkeypatch.setenv("YARDMASTER_TOKEN", whole_portal.token_of("ada", is_staff=True))
        capsys.readouterr()
        code = run(list(words))
        return code, capsys.readouterr().out

    return call


PAGE = """
import sys
from django.test import Client
from apps.accounts.models import User
client = Client(SERVER_NAME="127.0.0.1")
client.force_login(User.objects.get(username="ada"))
print(client.get(sys.argv[1], follow=True).content.decode())
"""


def test_text_in_folders_becomes_a_published_dataset_with_a_step_by_two_workers(whole_portal, ada, command, tmp_path):
    raw = tmp_path / "reviews"
    for label in ("bad", "good"):
        (raw / label).mkdir(parents=True)
        for number in range(20):
            (raw / label / f"{number}.txt").write_text(f"{label} film {number}\n" * (number + 1))
    ada.datasets.put("reviews", [raw])
    step = tmp_path / "lengths.py"
    step.write_text(STEP)
    code, out = command(
        "datasets", "prepare", "reviews", "--to", "reviews-prepared", "--workers", "2", "--gzip", "--split", "80/20",
        "--step", str(step), "--memory", "1Gi", "--cpu", "0.5", "--wait", "--json",
    )  # fmt: skip
    told = json.loads(out)
    assert code == 0, (
        told["published"],
        told["job"],
        "\n".join(line.text for line in ada.jobs.lines(told["job"]["id"])),
    )
    published = told["published"]
    assert (published["state"], published["number"], published["records"]) == ("published", 1, 40)
    version = ada.datasets.version(published["version"])
    files = {one.path for one in ada.datasets.files(version.id)}
    assert "dataset.json" in files
    assert not any(path.startswith("part-") for path in files)
    ada.datasets.download(version.id, tmp_path / "prepared")
    described = json.loads((tmp_path / "prepared" / "dataset.json").read_text())
    shards = [shard for split in described["splits"].values() for shard in split]
    assert {shard["path"] for shard in shards} | {"dataset.json"} == files
    assert len({shard["path"].rpartition("-")[2][:5] for shard in shards}) == 2  # of both workers
    assert sum(shard["records"] for shard in shards) == 40
    counted: dict[str, int] = {}
    for counts in described["counts"].values():
        for name, count in counts.items():
            counted[name] = counted.get(name, 0) + count
    assert counted == {"bad": 20, "good": 20}
    assert described["statistics"]["length"]["count"] == 40
    assert set(described["splits"]) == {"train", "validation"}
    shown = whole_portal.script(PAGE, f"/datasets/{ada.datasets.find('reviews-prepared').id}/")
    about = shown.partition('id="described-title"')[2].partition("</section>")[0]
    classes, numbers = about.partition('class="class-bars"')[2].split(">Numbers</h3>")
    assert re.findall(r'<bdi>(\w+)</bdi>.*?class="class-count">(\d+)', classes) == [("bad", "20"), ("good", "20")]
    assert re.findall(r"<tr><th scope=\"row\"><bdi>(\w+)</bdi>.*?<rect x=", numbers) == ["label", "length"]


def test_a_broken_row_at_the_end_of_a_table_is_named_in_the_jobs_message(ada, command, tmp_path):
    table = tmp_path / "table.csv"
    table.write_text("a,b\n" + "1,2\n" * 20 + "3\n")
    ada.datasets.put("table", [table])
    code, out = command("datasets", "prepare", "table", "--to", "nothing", "--memory", "1Gi", "--wait", "--json")
    told = json.loads(out)
    assert code == 1
    assert (told["job"]["phase"], told["job"]["reason"]) == ("FAILED", "BadData")
    assert "table.csv, row 22" in told["job"]["message"], told["job"]["message"]
    assert told["published"]["state"] in ("pending", "dropped")
    assert ada.datasets.find("nothing") is None
    code, out = command(
        "datasets", "prepare", "table", "--to", "skipped", "--memory", "1Gi", "--on-bad-record", "skip", "--wait",
        "--json",
    )  # fmt: skip
    told = json.loads(out)
    assert code == 0, told
    assert (told["published"]["records"], told["published"]["skipped"]) == (20, 1)
    assert "row 22" in told["published"]["bad"][0]


REVIEWS = {
    "aclImdb/README": "About", "aclImdb/imdb.vocab": "a\nb\n", "aclImdb/train/urls_pos.txt": "http://x\n",
    "aclImdb/train/labeledBow.feat": "9 0:1\n", "aclImdb/test/urls_neg.txt": "http://y\n",
    **{f"aclImdb/{split}/{name}/{number}_{number}.txt": f"{split} {name} {number}" for number in range(6)
       for split, names in (("train", ("pos", "neg", "unsup")), ("test", ("pos", "neg"))) for name in names},
}  # fmt: skip


def test_an_archive_of_reviews_keeps_its_classes_and_splits(ada, command, tmp_path):
    with tarfile.open(tmp_path / "reviews.tar.gz", "w:gz") as archive:
        for path, text in REVIEWS.items():
            member = tarfile.TarInfo(path)
            member.size = len(text)
            archive.addfile(member, io.BytesIO(text.encode()))
    ada.datasets.put("imdb", [tmp_path / "reviews.tar.gz"], unpack=True)
    code, out = command(
        "datasets", "prepare", "imdb", "--to", "imdb-prepared", "--workers", "2", "--memory", "1Gi", "--cpu", "0.5",
        "--wait", "--json",
    )  # fmt: skip
    told = json.loads(out)
    log = "\n".join(line.text for line in ada.jobs.lines(told["job"]["id"]))
    assert code == 0, log
    ada.datasets.download(told["published"]["version"], tmp_path / "prepared")
    described = json.loads((tmp_path / "prepared" / "dataset.json").read_text())
    assert described["classes"] == ["neg", "pos", "unsup"]
    assert described["counts"] == {"train": {"neg": 6, "pos": 6, "unsup": 6}, "test": {"neg": 6, "pos": 6}}
    assert "left out, in no class folder or split: 2 files (aclImdb/test/urls_neg.txt" in log
    assert "left out, of other formats: 3 files (aclImdb/README" in log


def test_the_task_python_is_the_one_with_tensorflow():
    assert os.path.exists(task_python())
