"""What one line of an old script is worth."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from headway.messages import hint, say

Verdict = Literal["kept", "no_effect", "harmful", "contradictory"]


@dataclass(frozen=True, slots=True)
class Finding:
    """A verdict on one line, with its reason as a message code."""

    verdict: Verdict
    code: str
    line: int
    subject: str
    """What is judged, as written; a secret is masked."""
    facts: Mapping[str, object] = field(default_factory=dict)

    def text(self) -> str:
        """Return the reason in the language in use."""
        return say(self.code, **self.facts)

    def hint(self) -> str:
        """Return what to do about it, or an empty text: a pasted line has no file that a command could name."""
        try:
            return hint(self.code, **self.facts)
        except KeyError:
            return ""

    def to_json(self) -> dict[str, Any]:
        """Return the plain form."""
        facts = {name: value if isinstance(value, int | float) else str(value) for name, value in self.facts.items()}
        record = {"verdict": self.verdict, "code": self.code, "line": self.line, "subject": self.subject}
        return {**record, "facts": facts, "text": self.text(), "hint": self.hint()}
