"""The pages of code: the tree, the text, and what differs between versions."""

from __future__ import annotations

from collections.abc import Mapping

import pytest
from django.urls import reverse

from apps.code.models import Code
from apps.code.pages import DIFFS_SHOWN, LINES_SHOWN
from apps.code.selectors import LARGEST
from apps.stores import storage
from tests.integration.pages.shown import page
from tests.integration.sending import uploaded

pytestmark = pytest.mark.django_db

SCRIPTS = {
    "train.py": b"import os\r\n\r\n\r\ndef main():\r\n    print('<b>hello</b>')\r\n",
    "lib/util.py": b"ONE = 1\n",
    "weights.bin": b"\0\1\2",
}


def make(api, content: Mapping[str, bytes] = SCRIPTS, name: str = "training") -> Code:
    answer = api.post("/api/v1/code/", {"name": name, "upload": uploaded(api, content, "code")})
    assert answer.status_code == 201, answer.json()
    return Code.objects.get(pk=answer.json()["id"])


def add_version(api, code: Code, content: Mapping[str, bytes]) -> None:
    assert api.post(f"/api/v1/code/{code.pk}/versions/", {"upload": uploaded(api, content, "code")}).status_code == 201


def test_an_empty_list_says_what_to_do(web):
    assert "yardmaster code upload" in page(web, "code_list_page")


def test_the_list_takes_few_queries_and_leads_to_the_launch_form(web, api, django_assert_max_num_queries):
    code = make(api)
    with django_assert_max_num_queries(8):
        text = page(web, "code_list_page")
    assert f"code_version={code.versions.get().pk}" in text


def test_the_likeliest_script_is_shown_first_with_colours_and_line_numbers(web, api):
    text = page(web, "code_page", make(api).pk)
    assert '<span class="k">def</span>' in text
    assert 'id="L5"' in text
    assert 'id="L6"' not in text
    assert "&lt;b&gt;hello" in text
    assert "<b>hello" not in text


def test_a_file_deep_in_the_tree_is_shown_with_its_folder_open(web, api):
    text = page(web, "code_page", make(api).pk, path="lib/util.py")
    assert "<details open>" in text
    assert "ONE" in text


def test_what_cannot_be_shown_says_why(web, api):
    code = make(api, SCRIPTS | {"latin.txt": "é".encode("latin-1"), "huge.txt": b"x" * (LARGEST + 1), "empty.py": b""})
    for path, words in [
        ("weights.bin", "This file is binary"),
        ("latin.txt", "not UTF-8 text"),
        ("huge.txt", "too large"),
        ("empty.py", "This file is empty"),
    ]:
        assert words in page(web, "code_page", code.pk, path=path)


def test_a_file_that_the_store_lost_is_named_and_is_no_error(web, api):
    code = make(api)
    storage().delete_prefix(code.versions.get().key_prefix)
    assert "missing in the object store" in page(web, "code_page", code.pk)


def test_a_file_of_very_many_lines_is_shown_in_pieces(web, api):
    count = 2 * LINES_SHOWN + 500
    code = make(api, {"big.py": b"".join(b"x%d = 1\n" % n for n in range(count))})
    first = page(web, "code_page", code.pk, path="big.py")
    assert f'id="L{LINES_SHOWN}"' in first
    assert f'id="L{LINES_SHOWN + 1}"' not in first
    assert len(first) < 300_000
    last = page(web, "code_page", code.pk, path="big.py", **{"from": count})
    assert f'id="L{count}"' in last
    assert f'id="L{count}"' in page(web, "code_page", code.pk, path="big.py", **{"from": 10**8})


def test_the_page_takes_few_queries(web, api, django_assert_max_num_queries):
    code = make(api)
    add_version(api, code, SCRIPTS | {"a.py": b"1"})
    with django_assert_max_num_queries(12):
        page(web, "code_page", code.pk)
    with django_assert_max_num_queries(12):
        page(web, "code_compare_page", code.pk)


def test_versions_are_compared_line_by_line(web, api):
    code = make(api)
    add_version(api, code, {"train.py": SCRIPTS["train.py"].replace(b"hello", b"bye"), "new.py": b"a\n"})
    text = page(web, "code_compare_page", code.pk)
    assert "1 added" in text
    assert "1 changed" in text
    assert "2 removed" in text
    assert "&lt;b&gt;bye" in text
    assert '<tr class="removed-line">' in text
    assert "This file is binary" in text
    for sign in ("<td>+</td>", "<td>−</td>"):  # never by colour alone
        assert sign in text


def test_any_two_versions_can_be_compared(web, api):
    code = make(api, {"a.py": b"1\n"})
    add_version(api, code, {"a.py": b"2\n"})
    add_version(api, code, {"a.py": b"3\n"})
    text = page(web, "code_compare_page", code.pk, **{"from": 1, "to": 3})
    assert "<code>1</code>" in text
    assert "<code>3</code>" in text
    assert "No differences" in page(web, "code_compare_page", code.pk, **{"from": 2, "to": 2})


def test_the_first_version_has_nothing_to_be_compared_with(web, api):
    assert "No earlier version" in page(web, "code_compare_page", make(api).pk)


def test_a_file_where_only_line_ends_changed_says_so(web, api):
    code = make(api, {"a.py": b"1\n2\n"})
    add_version(api, code, {"a.py": b"1\r\n2\r\n"})
    assert "Only line endings" in page(web, "code_compare_page", code.pk)


def test_a_comparison_of_very_much_stays_small_and_leads_on(web, api, django_assert_max_num_queries):
    many = {f"f{n:03}.py": b"1\n" for n in range(DIFFS_SHOWN + 10)}
    code = make(api, dict.fromkeys(many, b"0\n"))
    add_version(api, code, many)
    text = page(web, "code_compare_page", code.pk)
    assert "10 more changed files" in text
    assert "f029.py" in page(web, "code_compare_page", code.pk, path="f029.py")


def test_a_long_change_is_cut_and_says_so(web, api):
    code = make(api, {"a.py": b"1\n"})
    add_version(api, code, {"a.py": b"".join(b"%d\n" % n for n in range(3_500))})
    text = page(web, "code_compare_page", code.pk)
    assert "Only the first changes of this file are shown" in text
    assert len(text) < 300_000


def test_a_foreign_piece_of_code_is_a_404_on_every_page(api, bob, client):
    code = make(api)
    client.force_login(bob)
    for name in ("code_page", "code_compare_page", "code_edit_page", "code_delete_page", "code_upload_page"):
        assert client.get(reverse(name, args=[code.pk])).status_code == 404
    assert client.get(reverse("code_version_page", args=[code.versions.get().pk])).status_code == 404


def test_hostile_code_harms_no_page(web, api):
    content = {
        "</script><script>alert(1)</script>.py": b"x = '</pre></script><script>alert(1)</script>'\n",
        "\u05d0/\"onload='a'.html": b"<script>alert(2)</script>\n",
    }
    code = make(api, content, name="<script>alert(3)</script>")
    add_version(api, code, {path: data + b"<script>alert(4)</script>\n" for path, data in content.items()})
    texts = [page(web, "code_page", code.pk, path=path) for path in content]
    texts += [page(web, "code_compare_page", code.pk), page(web, "code_list_page")]
    for text in texts:
        assert "<script>alert" not in text
        assert " style=" not in text
        assert " onload=" not in text


def test_deleting_code_asks_for_its_name(web, api):
    code = make(api)
    assert web.post(reverse("code_delete_page", args=[code.pk]), {"name": ""}).status_code == 422
    assert web.post(reverse("code_delete_page", args=[code.pk]), {"name": "training"}).status_code == 302
    assert not Code.objects.exists()
