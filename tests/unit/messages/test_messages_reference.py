"""The reference is the one that the code makes."""

from __future__ import annotations

import re

import pytest
from make_reference import PAGES, list_errors, page_path, read_texts, render
from message_uses import find_uses

from headway.messages import LANGUAGES


@pytest.fixture(scope="module")
def books():
    return {lang: render(lang) for lang in LANGUAGES}


@pytest.mark.parametrize("page", PAGES)
@pytest.mark.parametrize("lang", LANGUAGES)
def test_the_reference_is_up_to_date(lang, page, books):
    fresh = books[lang] if page == "errors" else PAGES[page](lang)
    assert page_path(page, lang).read_text(encoding="utf-8") == fresh, "run: python scripts/make_reference.py"


def test_the_error_book_has_a_section_for_every_code_in_both_languages(books):
    texts = read_texts()
    wanted = list_errors(texts, find_uses(frozenset(code.partition("/")[0] for code in texts)))
    assert len(wanted) > 240
    for lang in LANGUAGES:
        assert re.findall(r"^### (\S+)$", books[lang], re.MULTILINE) == wanted


def test_a_section_shows_text_hint_and_exit_code(books):
    english, chinese = books["en"], books["zh"]
    place = english.index("### plan/batch-does-not-divide")
    assert "error: batch.total={total}" in english[place : place + 200]
    section = chinese.partition("### cli/no-command-near")[2].partition("###")[0]
    assert "提示：改为：\n  {again}" in section and "退出码 2；出自 `cli/refusals.py`" in section
