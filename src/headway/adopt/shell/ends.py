"""Where a quote, a bracket or a heredoc ends."""

from __future__ import annotations

_LOOKING = 400_000
"""Characters looked through in vain for closing brackets; without a limit, many open ones cost their number squared."""


class Ahead:
    """One text, and how much of it may still be looked through."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.looking = _LOOKING

    def closing_quote(self, at: int) -> int:
        """Return where a double quote ends, or -1; what is in `$(…)` may hold quotes of its own."""
        began, text = at, self.text
        while at < len(text) and self.looking > 0:
            char = text[at]
            if char == '"':
                return at
            if char == "\\":
                at += 2
            elif text.startswith("$(", at):
                end = self.closing(at + 1, "(", ")")
                at = end + 1 if end > 0 else at + 1
            else:
                at += 1
        self.looking -= at - began
        return -1

    def closing(self, at: int, opening: str, closing: str) -> int:
        """Return the place of the bracket that closes the one at a place, or -1."""
        began, depth, quote, text = at, 0, "", self.text
        while at < len(text) and self.looking > 0:
            char = text[at]
            if char == "\\" and quote != "'":
                at += 1
            elif quote:
                quote = "" if char == quote else quote
            elif char in "'\"":
                quote = char
            elif char == opening:
                depth += 1
            elif char == closing:
                depth -= 1
                if depth == 0:
                    return at
            at += 1
        self.looking -= at - began
        return -1

    def body(self, at: int, mark: str, *, is_dashed: bool) -> tuple[str, int]:
        """Return the text of a heredoc up to its mark, and the place behind it; `<<-` takes off leading tabs."""
        lines: list[str] = []
        while at < len(self.text):
            end = self.text.find("\n", at)
            end = len(self.text) if end < 0 else end
            line = self.text[at:end].lstrip("\t") if is_dashed else self.text[at:end]
            at = min(end + 1, len(self.text))
            if line.rstrip("\r") == mark:
                break
            lines.append(line)
        return "\n".join(lines) + "\n", at
