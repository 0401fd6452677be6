"""Shell text into words and operators. Nothing is expanded here and nothing is ever run.

The rules are those of bash, with four slips of authors read as they were meant and noted: blanks or a comment behind a
backslash, a comment line between continued lines, a line that begins with an option, and `<place>` or `[a|b]` where
bash would see a redirect or a pipe.
"""

from __future__ import annotations

import re

from headway.adopt.shell.ends import Ahead
from headway.adopt.shell.tokens import Lexed, Operator, Piece, Slip, Word

_NAME = re.compile(r"[A-Za-z_]\w*")
_ASSIGNMENT = re.compile(r"[A-Za-z_]\w*\+?=")
_BAD_CONTINUATION = re.compile(r"\\[ \t]+(?:#[^\n]*)?(?=\n|\Z)|\\\Z")
_PLACEHOLDER = re.compile(r"<[^\W\d][^<>\n;&\"'`$]{0,80}(?<! )>|<[^\W\d]>")
_PLACEHOLDER_VALUE = re.compile(r"<[^\s<>&;\"'`$()][^<>\n;&\"'`$]{0,80}>")
"""Behind a `=`, where a redirect hardly ever is, a placeholder may begin and end with anything."""
_CHOICE = re.compile(r"\[[^\[\]\s;&|]+(?:\|[^\[\]\s;&|]+)+\]|\{[^{}\s;&|,]+(?:\|[^{}\s;&|,]+)+\}")
_OPTION_LINE = re.compile(r"(?:[ \t]*(?:#[^\n]*)?\n){0,20}[ \t]*--?[A-Za-z]")
_REDIRECT = re.compile(r"(?:&>>|&>|<<<|<<-|<<|>>|>&|<&|>\||<>|>|<)")
_CONTROL = re.compile(r"(?:&&|\|\||;;&?|;&|\|&|[|&;()])")
_DOTS_LINE = re.compile(r"([ \t]+)(?:\.\.\.|…)[ \t]*(?=\n|\Z)")
"""Arguments that were left out; the line before often lacks its backslash."""
_USAGE_LINE = re.compile(r"\[-[^\n]*\]\n([ \t]+)\S")
"""A help text continues behind `[--flag VALUE]` without any backslash."""
_MIXED = re.compile(r"(?:'([^'\"\n]*)\"|\"([^'\"\n$`]*)')(?=\s|\Z)(?![^\n]*['\"])")
"""`NAME='value"`: two halves that do not match, and nothing else on the line to close them."""
_HEREDOC = re.compile(r"[ \t]*(?:'([^'\n]*)'|\"([^\"\n]*)\"|([^\s;&|<>()]+))")


def read_words(text: str, first_line: int = 1) -> Lexed:
    """Return the words and operators of a shell text; a line break is the operator `\\n`."""
    return _Lexer(text, first_line).read()


class _Lexer:
    """One pass over one text: the position only moves forward, and looking ahead has a budget."""

    def __init__(self, text: str, first_line: int) -> None:
        self.text, self.at, self.line = text, 0, first_line
        self.out = Lexed()
        self.literal_until = 0
        self.is_continued = False
        self.indent = 0
        """Blanks before the line on which the last command began."""
        self.heredocs: list[tuple[int, str, bool, bool]] = []
        self.ahead = Ahead(text)
        self.is_in_array = False

    def read(self) -> Lexed:
        while self.at < len(self.text):
            self._step()
        return self.out

    def _step(self) -> None:
        char = self.text[self.at]
        if char in " \t\r\f\v\u00a0\u3000":
            self.at += 1
        elif char == "\n":
            self._end_line()
        elif char == "\\" and self._skip_continuation():
            self.is_continued = True
        elif char == "#":
            self._skip_comment()
        elif self._is_operator():
            self._read_operator()
        else:
            self._note_indent()
            word = self._read_word()
            if word.pieces or word.array is not None:
                self.out.tokens.append(word)
                self.is_continued = False

    def _note_indent(self) -> None:
        last = self.out.tokens[-1] if self.out.tokens else None
        if last is None or (isinstance(last, Operator) and not last.is_redirect):
            before = self.text[self.text.rfind("\n", 0, self.at) + 1 : self.at]
            self.indent = len(before) - len(before.lstrip()) if before.strip() else len(before)

    def _end_line(self) -> None:
        line = self.line
        self.at += 1
        self.line += 1
        self.is_continued = False
        if self.heredocs:
            self._read_heredocs()
        elif self._goes_on():
            return
        elif self._has_command() and _OPTION_LINE.match(self.text, self.at):
            self.out.slips.append(Slip("adopt/slip-no-backslash", line))
            return
        self.out.tokens.append(Operator("\n", line))

    def _goes_on(self) -> bool:
        """Whether the next line is `...` or continues with a help text, deeper than the command it then belongs to."""
        usage = self.text.rfind("[", 0, self.at)
        match = _DOTS_LINE.match(self.text, self.at) or _USAGE_LINE.match(self.text, max(usage, 0))
        if match is None or match.end() < self.at or not self._has_command():
            return False
        return len(match[1]) > self.indent

    def _open_words(self) -> list[Word]:
        """Return the words of the command that is still open, last first; none where a redirect is among them."""
        words: list[Word] = []
        for token in reversed(self.out.tokens[-400:]):
            if isinstance(token, Operator):
                return [] if token.is_redirect else words
            words.append(token)
        return words

    def _has_command(self) -> bool:
        """Whether an option on the next line can belong to words before it."""
        words = self._open_words()
        return bool(words) and not (words[-1].plain or "x").startswith("-")

    def _only_assigns(self) -> bool:
        """Whether nothing but `NAME=value` is before this place, so that the command is still to come."""
        words = self._open_words()
        return bool(words) and all(word.pieces and _ASSIGNMENT.match(word.pieces[0].raw) for word in words)

    def _skip_continuation(self) -> bool:
        if self.text.startswith("\\\n", self.at):
            self.at += 2
            self.line += 1
            return True
        match = _BAD_CONTINUATION.match(self.text, self.at)
        if not match:
            return False
        if match.end() < len(self.text):
            self.out.slips.append(Slip("adopt/slip-after-backslash", self.line))
            self.line += 1
        self.at = match.end() + 1
        return True

    def _skip_comment(self) -> None:
        end = self.text.find("\n", self.at)
        end = len(self.text) if end < 0 else end
        comment = self.text[self.at : end].rstrip()
        self.at = end
        if self.is_continued and end < len(self.text):
            # Bash ends the command here; whoever comments out one of several continued lines does not mean that.
            if comment.endswith("\\") or _OPTION_LINE.match(self.text, end + 1) or self._only_assigns():
                self.out.slips.append(Slip("adopt/slip-comment-inside", self.line))
                self.at += 1
                self.line += 1
            else:
                self.is_continued = False

    def _is_operator(self) -> bool:
        if self.at < self.literal_until:
            return False
        char = self.text[self.at]
        if char in "|&;()":
            return True
        if char not in "<>":
            return False
        kind = _PLACEHOLDER_VALUE if self.text[self.at - 1 : self.at] == "=" else _PLACEHOLDER
        if char == "<" and (match := kind.match(self.text, self.at)):
            self.literal_until = match.end()
            return False
        return not self.text.startswith(("<(", ">("), self.at)

    def _read_operator(self) -> None:
        line = self.line
        self.is_continued = False
        match = _REDIRECT.match(self.text, self.at)
        if match is None:
            match = _CONTROL.match(self.text, self.at)
            assert match is not None, "an operator begins with a sign"
            self.at = match.end()
            self.out.tokens.append(Operator(match[0], line))
            return
        self.at = match.end()
        sign = match[0]
        if sign in ("<<", "<<-"):
            self._note_heredoc(sign, line)
            return
        while self.at < len(self.text) and self.text[self.at] in " \t":
            self.at += 1
        # `> >(tee log)`: the target may be a process of its own.
        is_process = self.text.startswith(("<(", ">("), self.at)
        is_word = is_process or (self.at < len(self.text) and self.text[self.at] not in "\n|&;()<>#")
        target = self._read_word() if is_word else None
        self.out.tokens.append(Operator(sign, line, is_redirect=True, target=target))

    def _note_heredoc(self, sign: str, line: int) -> None:
        match = _HEREDOC.match(self.text, self.at)
        if match is None:
            return
        self.at = match.end()
        mark = next(part for part in match.groups() if part is not None).replace("\\", "")
        self.heredocs.append((len(self.out.tokens), mark, sign == "<<-", match[3] is None or "\\" in match[3]))
        self.out.tokens.append(Operator(sign, line, is_redirect=True))

    def _read_heredocs(self) -> None:
        for place, mark, is_dashed, is_literal in self.heredocs:
            began = self.at
            body, self.at = self.ahead.body(began, mark, is_dashed=is_dashed)
            self.line += self.text.count("\n", began, self.at)
            old = self.out.tokens[place]
            self.out.tokens[place] = Operator(
                old.sign if isinstance(old, Operator) else "<<",
                old.line,
                is_redirect=True,
                body=body,
                is_literal=is_literal,
            )
        self.heredocs = []

    # words

    def _read_word(self) -> Word:
        line, pieces, plain = self.line, [], []  # type: int, list[Piece], list[str]

        def flush() -> None:
            if plain:
                pieces.append(Piece("text", "".join(plain)))
                plain.clear()

        while self.at < len(self.text):
            char = self.text[self.at]
            if char in " \t\n\r\f\v\u00a0\u3000" and self.at >= self.literal_until:
                break
            if char == "(" and self._begins_array(pieces, plain):
                flush()
                return Word(tuple(pieces), line, array=self._read_array())
            if char in "[{" and (match := _CHOICE.match(self.text, self.at)):
                self.literal_until = max(self.literal_until, match.end())
            if self._ends_word(char, plain, has_pieces=bool(pieces)):
                break
            if char == "\\":
                if self._skip_continuation():
                    self.is_continued = True
                    if self.at < len(self.text) and self.text[self.at] == "#":
                        break
                    continue
                plain.append(self.text[self.at + 1 : self.at + 2])
                self.at += 2
            elif char in "'\"" and self._is_value(plain) and (match := _MIXED.match(self.text, self.at)):
                flush()
                self.out.slips.append(Slip("adopt/slip-open-quote", self.line))
                pieces.append(Piece("text", match[1] if match[1] is not None else match[2], is_quoted=True))
                self.at = match.end()
            elif char == "'":
                flush()
                pieces.append(self._read_single())
            elif char == '"':
                flush()
                pieces.extend(self._read_double())
            elif char == "`" or (char in "<>" and self.at >= self.literal_until):
                flush()
                pieces.append(self._read_command(is_quoted=False))
            elif char == "$" and (piece := self._read_dollar(is_quoted=False)):
                flush()
                pieces.append(piece)
            else:
                plain.append(char)
                self.at += 1
        flush()
        return Word(tuple(pieces), line)

    def _is_value(self, plain: list[str]) -> bool:
        """Whether a value begins here, behind `NAME=` or, by a slip, `NAME = `."""
        last = self.out.tokens[-1] if self.out.tokens else None
        return plain[-1:] == ["="] or (not plain and isinstance(last, Word) and last.plain == "=")

    def _begins_array(self, pieces: list[Piece], plain: list[str]) -> bool:
        """Whether `(` follows `NAME=`; an array holds no arrays."""
        is_free = not pieces and not self.is_in_array and self.at >= self.literal_until
        return is_free and _ASSIGNMENT.fullmatch("".join(plain)) is not None

    def _ends_word(self, char: str, plain: list[str], *, has_pieces: bool) -> bool:
        if char not in "|&;()<>" or not self._is_operator():
            return False
        if char in "<>" and plain and not has_pieces and "".join(plain).isdigit():
            # `2>`: the number belongs to the redirect and is of no interest.
            plain.clear()
        return True

    def _read_array(self) -> tuple[Word, ...]:
        self.at += 1
        self.is_in_array = True
        words: list[Word] = []
        while self.at < len(self.text) and self.text[self.at] != ")":
            char = self.text[self.at]
            if char in " \t\r\n\u00a0":
                self.line += char == "\n"
                self.at += 1
            elif char == "#":
                end = self.text.find("\n", self.at)
                self.at = len(self.text) if end < 0 else end
            elif char in "|&;(":
                self.at += 1
            elif char == "\\" and self._skip_continuation():
                continue
            else:
                before = self.at
                words.append(self._read_word())
                self.at += self.at == before
        self.is_in_array = False
        self.at += 1
        return tuple(words)

    def _read_single(self) -> Piece:
        end = self.text.find("'", self.at + 1)
        if end < 0:
            return self._read_stray()
        raw = self.text[self.at + 1 : end]
        self.line += raw.count("\n")
        self.at = end + 1
        return Piece("text", raw, is_quoted=True)

    def _read_stray(self) -> Piece:
        """A quote without its other half: an apostrophe, most likely."""
        self.out.slips.append(Slip("adopt/slip-open-quote", self.line))
        self.at += 1
        return Piece("text", self.text[self.at - 1])

    def _read_double(self) -> list[Piece]:
        if self.ahead.closing_quote(self.at + 1) < 0:
            return [self._read_stray()]
        self.at += 1
        pieces: list[Piece] = []
        plain: list[str] = []
        while self.at < len(self.text) and self.text[self.at] != '"':
            char = self.text[self.at]
            piece = None
            if char == "\\" and self.text[self.at + 1 : self.at + 2] in ("$", "`", '"', "\\", "\n"):
                escaped = self.text[self.at + 1]
                plain.append("" if escaped == "\n" else escaped)
                self.line += escaped == "\n"
                self.at += 2
                continue
            if char == "$":
                piece = self._read_dollar(is_quoted=True)
            elif char == "`":
                piece = self._read_command(is_quoted=True)
            if piece is None:
                self.line += char == "\n"
                plain.append(char)
                self.at += 1
                continue
            pieces.append(Piece("text", "".join(plain), is_quoted=True))
            plain.clear()
            pieces.append(piece)
        self.at += 1
        pieces.append(Piece("text", "".join(plain), is_quoted=True))
        return pieces

    def _read_dollar(self, *, is_quoted: bool) -> Piece | None:
        text, at = self.text, self.at
        after = text[at + 1 : at + 2]
        if after == "(" or (after == "[" and "]" in text[at + 2 : at + 200]):
            return self._read_command(is_quoted=is_quoted)
        if after == "{":
            end = self.ahead.closing(at + 1, "{", "}")
            if end < 0:
                return None
            return self._take_braces(end, is_quoted=is_quoted)
        if after == "'" and not is_quoted:
            self.at += 1
            return self._read_single()
        match = _NAME.match(text, at + 1)
        name = match[0] if match else after if after and after in "0123456789@*#?$!-" else ""
        if not name:
            return None
        self.at = at + 1 + len(name)
        return Piece("variable", text[at : self.at], is_quoted, name=name)

    def _take_braces(self, end: int, *, is_quoted: bool) -> Piece:
        raw = self.text[self.at : end + 1]
        self.line += raw.count("\n")
        self.at = end + 1
        inside = raw[2:-1]
        match = re.match(r"#?(?:[^\W\d]\w*|\d+|[@*#?$!-])", inside)
        name = match[0] if match else inside
        return Piece("variable", raw, is_quoted, name=name, rest=inside[len(name) :])

    def _read_command(self, *, is_quoted: bool) -> Piece:
        text, at = self.text, self.at
        if text[at] == "`":
            end = text.find("`", at + 1)
        elif text.startswith("$[", at):
            end = text.find("]", at)
        else:
            end = self.ahead.closing(at + 1, "(", ")")
        if end < 0:
            self.at += 1
            return Piece("text", text[at], is_quoted)
        raw = text[at : end + 1]
        self.line += raw.count("\n")
        self.at = end + 1
        if raw.startswith("$[") or (raw.startswith("$((") and raw.endswith("))")):
            return Piece("arithmetic", raw, is_quoted, rest=raw[3:-2] if raw.startswith("$((") else raw[2:-1])
        return Piece("command", raw, is_quoted, rest=raw[1:-1] if raw[0] == "`" else raw[2:-1])
