"""The page of engines: what there is, what is free, and devices by the names that people choose."""

from __future__ import annotations

import pytest

from yardmaster.engines.fake import FakeEngine
from yardmaster.spec import Resources

SIZE = Resources(8, 32 << 30, 0, {"device/a100-40gb": 4, "rdma/hca": 2})


class Named(FakeEngine):
    """With a device that its operator named."""

    def __init__(self, *, name: str) -> None:
        super().__init__(name=name, total=SIZE)

    def devices(self):
        return {"device/a100-40gb": "A100 40GB", "device/t4": "T4"}


@pytest.fixture
def named(settings):
    settings.YARDMASTER_ENGINES = {"named": {"class": f"{__name__}.Named"}}
    settings.YARDMASTER_DEFAULT_ENGINE = "named"


@pytest.mark.django_db
def test_devices_have_the_operators_names_and_all_amounts_are_told(client, ada, named):
    client.force_login(ada)
    page = client.get("/engines/").content.decode()
    for words in ("A100 40GB", "device/a100-40gb", "T4", "rdma/hca", "CPU cores", "32 GiB", "the default"):
        assert words in page
    assert "GPUs" not in page.partition("<table")[2], "there are none"


@pytest.mark.django_db
def test_the_api_says_the_same_by_names_for_programs(client, ada, named):
    client.force_login(ada)
    (engine,) = client.get("/api/v1/engines/").json()["results"]
    first, second = engine["devices"]
    assert first == {"name": "device/a100-40gb", "label": "A100 40GB", "total": 4, "free": 4, "held": 0}
    assert (second["label"], second["total"]) == ("T4", 0)


@pytest.mark.django_db
def test_the_launch_page_says_how_to_ask_for_a_device(client, ada, named):
    client.force_login(ada)
    page = client.get("/jobs/launch/").content.decode()
    assert "device/a100-40gb=1" in page
    assert "4 of 4 free" in page


@pytest.mark.django_db
def test_an_engine_that_does_not_answer_says_why(client, ada, settings):
    settings.YARDMASTER_ENGINES = {"away": {"class": "yardmaster.engines.fake.EngineThatIsAway"}}
    settings.YARDMASTER_DEFAULT_ENGINE = "away"
    client.force_login(ada)
    answer = client.get("/engines/")
    assert answer.status_code == 200
    assert "alert-warning" in answer.content.decode()
