"""`yardmaster models predict` and `restore`: what is refused before the portal is asked, and what it is asked for."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from yardmaster_client.cli import serving
from yardmaster_client.cli.main import run
from yardmaster_client.portal import Yardmaster


class Models:
    """Two deleted models of one name."""

    def __init__(self) -> None:
        self.restored: list[str] = []

    def list(self, *, namespace: str | None = None, **_: Any) -> list[Any]:
        all_of_them = [
            SimpleNamespace(id=f"m{n}", name="digits", namespace=f"n{n}", namespace_slug=slug)
            for n, slug in enumerate(("ada", "team"))
        ]
        return [one for one in all_of_them if namespace in (None, one.namespace_slug)]

    def restore(self, model: str) -> Any:
        self.restored.append(model)
        return SimpleNamespace(id=model)


@pytest.fixture
def models(monkeypatch: pytest.MonkeyPatch) -> Models:
    class Portal:
        models = Models()

        def __enter__(self) -> Portal:
            return self

        def __exit__(self, *_: object) -> None:
            return None

    monkeypatch.setattr(Yardmaster, "from_environment", Portal)
    return Portal.models


def test_a_name_that_several_deleted_models_have_is_refused_with_their_ids(
    models: Models, capsys: pytest.CaptureFixture[str]
):
    assert run(["models", "restore", "digits"]) == 1
    said = capsys.readouterr().err
    assert "m0 (ada)" in said
    assert "m1 (team)" in said
    assert models.restored == []


def test_a_deleted_model_is_restored_by_its_namespace_or_its_id(models: Models):
    assert run(["models", "restore", "digits", "--namespace", "team"]) == 0
    assert run(["models", "restore", "m0"]) == 0
    assert models.restored == ["m1", "m0"]


def test_an_input_that_is_no_file_says_what_may_be_written():
    with pytest.raises(serving.typer.BadParameter, match=r"no file 'hello'.*JSON itself"):
        serving._body("hello", None)


def test_a_list_is_examples_for_a_method_that_takes_these(monkeypatch: pytest.MonkeyPatch, models: Models):
    asked: list[Any] = []
    services = SimpleNamespace(predict=lambda version, body, method: asked.append((version, body, method)) or {})
    monkeypatch.setattr(Yardmaster.from_environment, "services", services, raising=False)
    monkeypatch.setattr(serving, "find_model_version", lambda *_: SimpleNamespace(id="v1"))
    words = ["models", "predict", "digits", "--input", '[{"x": 1.0}]']
    assert run(words) == 0
    assert run([*words, "--method", "classify", "--signature", "labels"]) == 0
    assert run([*words, "--method", "other"]) != 0
    examples = {"examples": [{"x": 1.0}], "signature_name": "labels"}
    assert asked == [("v1", {"instances": [{"x": 1.0}]}, "predict"), ("v1", examples, "classify")]
