"""Both languages side by side in one page; the style sheet shows one of them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from markupsafe import Markup

from headway.messages import LANGUAGES, Language, find_text, say, speak


@dataclass(frozen=True, slots=True)
class Said:
    """A fact that is itself a message."""

    code: str


def both(code: str, **facts: object) -> Markup:
    """Return a message in both languages; facts are escaped, they may come from a run."""
    return both_said({lang: _say(code, lang, facts) for lang in LANGUAGES})


def both_list(items: Iterable[str]) -> Markup:
    """Return a list joined as each language does it; without an item, nothing."""
    listed = list(items)
    return both_said({lang: speak(listed, lang, "list") for lang in LANGUAGES}) if listed else Markup("")


def both_said(texts: Mapping[Language, str]) -> Markup:
    """Return a text that is there in both languages already."""
    if len(set(texts.values())) == 1:
        return Markup("{}").format(texts["en"])
    return Markup("").join(Markup('<span lang="{}">{}</span>').format(lang, text) for lang, text in texts.items())


def _say(code: str, lang: Language, facts: dict[str, object]) -> str:
    said = {key: say(fact.code, lang) if isinstance(fact, Said) else fact for key, fact in facts.items()}
    return say(code, lang, **said)


def both_or_plain(code: str, plain: str, **facts: object) -> Markup:
    """Return a message of another stage, or the plain text when this version has no such message or fact."""
    try:
        find_text(code)
        return both(code, **facts)
    except (KeyError, ModuleNotFoundError, ValueError, IndexError):
        return Markup("{}").format(plain)


def both_texts(x: float, y: float, code: str, style: str) -> Markup:
    """Return a message in both languages as SVG text."""
    shape = Markup('<text lang="{}" class="{}" x="{:.1f}" y="{:.1f}">{}</text>')
    return Markup("").join(shape.format(lang, style, x, y, say(code, lang)) for lang in LANGUAGES)
