"""Everything that is wrong with a config, gathered and reported at once."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Literal, NoReturn

from headway.errors import ConfigError
from headway.messages import Language, hint, say
from headway.secret import mask_secrets

Form = Literal["yaml", "json", "toml", "py", "words", "variable"]
"""How a value is written where it is; `words` is `key=value` on a command line, `variable` the environment."""

_CAN_TYPE = re.compile(r"[\w.]+=(?!VALUE$).+")

MAX_TOLD = 50
"""Problems reported one by one; the rest are counted. A hostile file has thousands."""


@dataclass(frozen=True, slots=True, order=True)
class Place:
    """Where something was written: a file's line and column (from 1, in characters), or one of the other layers."""

    layer: int
    """Order in which places are reported: file, environment, command line, recipe."""
    source: str
    """File as the user named it, `command line`, `environment NAME`, `preset NAME`, `recipe NAME`."""
    line: int = 0
    column: int = 0
    form: Form = "words"
    word: str = field(default="", compare=False)
    """The word of a command line as it was typed."""

    def __str__(self) -> str:
        return f"{self.source}:{self.line}:{self.column}" if self.line else self.source


COMMAND_LINE = Place(2, "command line")
RECIPE_LAYER = 3
"""Of recipes and their presets."""
DEFAULT = Place(9, "default")


@dataclass(frozen=True, slots=True)
class Phrase:
    """A part of a message that has its own code, put into words only when the message is printed."""

    code: str
    facts: Mapping[str, object] = field(default_factory=dict)

    def text(self, lang: Language | None = None) -> str:
        """Return the phrase in one language."""
        return say(self.code, lang, **_worded(self.facts, lang))


@dataclass(frozen=True, slots=True)
class Problem:
    """One thing to put right."""

    place: Place
    code: str
    facts: Mapping[str, object]

    def text(self, lang: Language | None = None) -> str:
        """Return what is wrong, in one line."""
        return say(self.code, lang, **_worded(self.facts, lang))

    def hint(self, lang: Language | None = None) -> str:
        """Return what to type instead."""
        return hint(self.code, lang, **_worded(self.facts, lang))


class ConfigErrors(ConfigError):  # noqa: N818 - many of them
    """All problems of one config, in the order of their places."""

    def __init__(self, problems: tuple[Problem, ...], num_untold: int = 0) -> None:
        super().__init__("config/problems", num=len(problems) + num_untold)
        self.problems = tuple(sorted(problems, key=lambda problem: problem.place))
        self.num_untold = num_untold

    def text(self, lang: Language | None = None) -> str:
        """Return every problem with its place, its code and what to type instead."""
        total = len(self.problems) + self.num_untold
        lines: list[str] = []
        for problem in self.problems:
            lines.append(f"{_at(problem.place, problem.text(lang), lang)} [{problem.code}]")
            lines.extend(f"  {line}" for line in problem.hint(lang).splitlines())
        if self.num_untold:
            lines.append(say("config/more", lang, num=self.num_untold))
        # The count is last: there it is on the screen when the list is long.
        lines.append(say("config/problems" if total > 1 else "config/one-problem", lang, num=total))
        return "\n".join(lines)

    def hint(self, lang: Language | None = None) -> str:
        """Return nothing: each problem has its own hint beside it."""
        return ""

    def corrections(self) -> dict[str, str]:
        """Return what to type for each wrong word of the command line, where that puts everything right."""
        found: dict[str, str] = {}
        for one in self.problems:
            typed, swap = str(one.facts.get("typed", "")), one.facts.get("swap")
            if isinstance(swap, dict):
                found |= swap
            elif one.place.word and _CAN_TYPE.fullmatch(typed):
                found[one.place.word] = typed
        return found if len(found) == len(self.problems) + self.num_untold else {}


class Problems:
    """Gathers problems while a config is read."""

    def __init__(self) -> None:
        self._found: list[Problem] = []
        self._num_untold = 0
        self.notes: list[tuple[Place, str]] = []
        """What is read and may still surprise: place and message code."""

    def add(self, place: Place, code: str, /, **facts: object) -> None:
        """Note a problem and continue. What looks like a secret is masked here, so that no message can hold one."""
        if self.has_room():
            self._tell(place, code, facts)
        else:
            self._num_untold += 1

    def stop(self, place: Place, code: str, /, **facts: object) -> NoReturn:
        """Note a problem after which reading makes no sense, and raise all of them."""
        self._tell(place, code, facts)
        raise ConfigErrors(tuple(self._found), self._num_untold)

    def note(self, place: Place, code: str, /) -> None:
        """Note what is not a problem here and may be one elsewhere."""
        self.notes.append((place, code))

    def raise_if_any(self) -> None:
        """Raise everything gathered so far."""
        if self._found:
            raise ConfigErrors(tuple(self._found), self._num_untold)

    def has_room(self) -> bool:
        """Say whether the next problem will be reported, and so whether its suggestion is worth working out."""
        return len(self._found) < MAX_TOLD

    def _tell(self, place: Place, code: str, facts: Mapping[str, object]) -> None:
        clean = {name: mask_secrets(fact) if isinstance(fact, str) else fact for name, fact in facts.items()}
        if "typed" not in facts or mask_secrets(place.word) != place.word:
            place = replace(place, word="")
        self._found.append(Problem(place, code, clean))


def _worded(facts: Mapping[str, object], lang: Language | None) -> dict[str, object]:
    return {name: fact.text(lang) if isinstance(fact, Phrase) else fact for name, fact in facts.items()}


def _at(place: Place, text: str, lang: Language | None) -> str:
    """Return a problem after its place, with the colon of the language."""
    if place.source == COMMAND_LINE.source:
        return say("config/at", lang, place=say("config/place-command-line", lang), text=text)
    kind, _, name = place.source.partition(" ")
    if not place.line and name and kind in ("environment", "preset", "recipe"):
        return say("config/at", lang, place=say(f"config/place-{kind}", lang, name=name), text=text)
    return f"{place}: {text}"  # as compilers write it, so that editors make a link of it
