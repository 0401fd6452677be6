"""What holds for every message. Each rule takes a catalogue and returns what is wrong with it."""

from __future__ import annotations

import importlib
import pkgutil
import re
from collections.abc import Iterator, Mapping
from string import Formatter

from message_uses import Use
from word_rules import CHINESE, ENGLISH, KEY, find_words

import headway.messages as messages
from headway.messages import Text, find_module
from headway.task import RECIPES

Catalogue = Mapping[str, Mapping[str, Text]]

HEADINGS = ("board/", "report/", "cli/head-", "cli/usage-", "cli/metavar-")
"""Titles of a page and words of a usage line; they begin with a capital or are all capitals."""

NAMES = frozenset({"Anthropic", "CPU", "GPU", "Google", "Hugging", "NPU", "PyTorch", "Python", "Slack", "rank"})
"""Words that keep their spelling in both languages, and their capital at the beginning of a message."""

SYNTAX = (
    "config/yaml",
    "config/json",
    "config/toml",
    "config/py",
    "config/duplicate-key",
    "config/key-not-text",
    "config/not-a-table",
    "config/too-many-values",
)
"""Codes about a file's syntax, where the Chinese word for a key is that of YAML and JSON."""

_CJK = r"\u4e00-\u9fff"
_FULL = "，；：。！？（）、“”"
_HALF_PUNCTUATION = re.compile(rf"[{_CJK}{_FULL}] ?[,;:!?()]|[,;:!?()] ?[{_CJK}]|[{_CJK}]\.(?![a-z0-9])")
_TIGHT = re.compile(rf"[{_CJK}][A-Za-z0-9]|[A-Za-z0-9][{_CJK}]")
_DOUBLE = re.compile(rf"[{_FULL}] |[{_CJK}] +[{_CJK}{_FULL}]")


def load_catalogue() -> dict[str, dict[str, Text]]:
    """Return the texts of every stage."""
    names = [module.name for module in pkgutil.iter_modules(messages.__path__) if module.name not in ("keys", "spoken")]
    return {name: importlib.import_module(find_module(name)).TEXTS for name in [*names, *RECIPES]}


def all_texts(catalogue: Catalogue) -> dict[str, Text]:
    """Return all stages in one."""
    return {code: text for texts in catalogue.values() for code, text in texts.items()}


def placeholders(text: str) -> set[str]:
    """Return the names of the facts a text shows."""
    return {name for _, name, _, _ in Formatter().parse(text) if name}


def _bare(text: str) -> str:
    """Return a text without its placeholders."""
    return re.sub(r"\{[^{}]+\}", "", text)


def _is_help(text: Text) -> bool:
    """Say whether this is a command's help: sentences, then an example."""
    return "\n\n" in text.en


def check_shape(catalogue: Catalogue) -> Iterator[str]:
    """Codes belong to their file, both languages are there and show the same facts."""
    for stage, texts in catalogue.items():
        for code, text in texts.items():
            if not re.fullmatch(rf"{stage}/[a-z0-9][a-z0-9.-]*", code):
                yield f"{code}: a code of {find_module(stage)} is {stage}/what"
            if not text.en.strip() or not text.zh.strip():
                yield f"{code}: a text is empty"
            if bool(text.en_hint) != bool(text.zh_hint):
                yield f"{code}: the hint is in one language only"
            for en, zh in ((text.en, text.zh), (text.en_hint, text.zh_hint)):
                if placeholders(en) != placeholders(zh):
                    yield f"{code}: the facts differ: {placeholders(en)} and {placeholders(zh)}"


def check_english(catalogue: Catalogue) -> Iterator[str]:
    """Lower case, no full stop, no `please`, no `invalid`; a command's help is made of sentences."""
    for code, text in all_texts(catalogue).items():
        words = f"{text.en} {text.en_hint}"
        if re.search(r"\b(please|invalid|illegal|failed to|successfully)\b", words, re.IGNORECASE):
            yield f"{code}: a word we do not use"
        yield from (f"{code}: {found}" for part in (text.en, text.en_hint) for found in find_words(part, ENGLISH))
        if _is_help(text):
            yield from _check_help(code, text)
            continue
        for part in (text.en, text.en_hint):
            first = re.split(r"[ ,.:='(]", part)[0]
            # CUDA, GitHub, OMP_NUM_THREADS: two capitals make a name.
            is_name = first in NAMES or sum(letter.isupper() for letter in first) > 1
            if part[:1].isupper() and not is_name and not code.startswith(HEADINGS):
                yield f"{code}: begins with a capital"
            if re.search(r"[a-z)}]\.$", part):
                yield f"{code}: ends with a full stop"


def _check_help(code: str, text: Text) -> Iterator[str]:
    for lang, part, word, stop in (("en", text.en, "Example:", "."), ("zh", text.zh, "示例：", "。")):
        first, *_, example = part.split("\n\n")
        if not example.startswith(f"{word}\n  headway "):
            yield f"{code}: the {lang} help does not end with an example"
        if not first.endswith(stop) or (lang == "en" and not first[:1].isupper()):
            yield f"{code}: the {lang} help does not begin with a sentence"


def check_chinese(catalogue: Catalogue) -> Iterator[str]:
    """Chinese punctuation between Chinese characters, one word for one thing, and really Chinese."""
    for code, text in all_texts(catalogue).items():
        for en, zh in ((text.en, text.zh), (text.en_hint, text.zh_hint)):
            if not zh:
                continue
            letters = [word for word in re.findall(r"[A-Za-z][\w-]*", _bare(zh)) if word not in NAMES]
            if not re.search(rf"[{_CJK}]", zh) and letters:
                yield f"{code}: no Chinese in {zh!r}"
            if en == zh and letters:
                yield f"{code}: both languages say {zh!r}"
            if "/sign-" in code:  # a guide's own line, word for word
                continue
            yield from _check_punctuation(code, zh)
            if re.search("(?<!申)请(?!求)", zh):
                yield f"{code}: no 请"
            rules = CHINESE if code.startswith(SYNTAX) else (*CHINESE, KEY)
            yield from (f"{code}: {found}" for found in find_words(zh, rules))


def _check_punctuation(code: str, zh: str) -> Iterator[str]:
    zh = re.sub("`[^`]*`", "``", zh)  # what is to be typed keeps its own punctuation
    if found := _HALF_PUNCTUATION.search(zh):
        yield f"{code}: half-width punctuation beside Chinese: {found[0]!r}"
    if found := _TIGHT.search(zh):
        yield f"{code}: no space between Chinese and Latin: {found[0]!r}"
    if any(_DOUBLE.search(line) for line in zh.splitlines() if not line.startswith("  ")):
        yield f"{code}: a space where Chinese has none"
    if zh.endswith("。") and "\n\n" not in zh:
        yield f"{code}: ends with a full stop"


def check_uses(
    catalogue: Catalogue, uses: list[Use], computed: Mapping[str, str], words: frozenset[str]
) -> Iterator[str]:
    """Every code that is used exists, every code that exists is used, every family is listed with its reason."""
    texts = all_texts(catalogue)
    families = {use.code for use in uses if use.is_family}
    yield from (f"{use.place}: no text {use.code}" for use in uses if not use.is_family and use.code not in texts)
    yield from (
        f"{use.place}: family {use.code} is not listed" for use in uses if use.is_family and use.code not in computed
    )
    yield from (f"family {family} is listed, but nothing computes it" for family in computed if family not in families)
    named = {use.code for use in uses if not use.is_family}
    for code in texts:
        rests = [code.removeprefix(family) for family in families if code.startswith(family)]
        if code not in named and not any(rest in words for rest in rests):
            yield f"{code}: never used"


def check_facts(catalogue: Catalogue, uses: list[Use]) -> Iterator[str]:
    """Whoever names a code hands over every fact its text and its hint show."""
    texts = all_texts(catalogue)
    for use in uses:
        if use.facts is None or not use.speaker or use.is_family or use.code not in texts:
            continue
        text = texts[use.code]
        lacking = (
            placeholders(text.en) | (placeholders(text.en_hint) - {"run"})
        ) - use.facts  # `hint` has the newest run
        if lacking:
            yield f"{use.place}: {use.code} lacks {', '.join(sorted(lacking))}"
