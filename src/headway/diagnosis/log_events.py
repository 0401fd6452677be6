"""From the lines of a log to what they say: exceptions, other signs of failure, and progress."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Final

from headway.diagnosis.log_lines import WORDS, Extract, Line
from headway.diagnosis.rulebook import Rule, Rulebook

_MARK: Final = re.compile(r"Traceback \(most recent call (?:last|first)\)")
_FRAME: Final = re.compile(
    r'\s*File "(?P<file>[^"]+)", line \d+(?:, in (?P<function>\S+))?'
    r"|(?:File )?(?P<cell>(?:~|/|[A-Z]:\\|Cell In|<ipython)[^\s:,]*)(?::\d+,|,)? in (?P<called>[\w.<>]+(?:\(|$))"
)
"""A frame of Python, or of IPython."""
_INSIDE: Final = re.compile(r'\s|File "|[\^~]+$|\[Previous line repeated|-{2,}(?:>|$)|$')
_RAISED: Final = re.compile(r"(?P<type>(?:[A-Za-z_]\w*\.)*[A-Z]\w*)(?:\([\w.]+\))?(?::(?:\s+(?P<text>.*))?|)$")
"""The last line of a traceback."""
_NAMED: Final = re.compile(
    r"(?:[\w .:\[\]-]{0,40}?[\s\]])??"
    r"(?P<type>(?:[A-Za-z_]\w*\.)*(?:[A-Z]\w*(?:Error|Exception)|KeyboardInterrupt))(?:\([\w.]+\))?(?::(?:\s+(?P<text>.*))?|)$"
)
"""An exception whose traceback is missing: a log that begins in the middle."""
_MARKERS: Final = re.compile(r"[\s~^-]*$")
_INDENTED: Final = re.compile(r"\s+(?:[a-z_]\w*\.)*[A-Z]\w*(?:Error|Exception|Interrupt): \S")
"""The same in a traceback that is indented as a whole, though its first line is not."""
_CODE_LINE: Final = 200
"""A longer line inside of a traceback is not code, but a message that was pasted without its line ends."""
_NOT_RAISED: Final = frozenset({"Traceback", "Thread", "File", "Exception ignored", "Note", "Warning"})
_IGNORED: Final = re.compile(r"Exception ignored in|Exception in thread .*?(?:wandb|Msg|Chk)|--- Logging error ---")
_CHAINED: Final = re.compile(r"During handling of the above exception")
_PROGRESS: Final = re.compile(
    r"(?i)\b(?:it/s|s/it|samples/s\w*|tokens?/s\w*)\b|\b(?:loss|ppl|acc\w*)\b\W{0,6}\d|\b(?:step|iter(?:ation)?|epoch)s?\W{0,6}\d"
)
_FINISHED: Final = re.compile(
    r"(?i)\btrain(?:ing)?\b(?: \w+){0,3} (?:is |has |was )?(?:completed?|finished|done|successful)\b"
    r"(?! with (?:err|exit))"
    r"|\btrain_runtime\b|训练(?:已)?(?:完成|结束|成功)"
)
"""What programs print when they have trained to the end."""
_PROGRESS_WORDS: Final = ("loss", "it/s", "s/it", "step", "iter", "epoch", "/s", "%|", "acc")
_BAR: Final = re.compile(r"\d+%\|.{0,60}\|\s*[\d.]+[kKMGT]?i?B?/")
_NATIVE_FRAME: Final = re.compile(r"\s*frame #\d+: |.{0,400}\+ 0x[0-9a-f]+ \(0x")
_QUIET: Final = re.compile(
    r".{0,80}?(?:\b(?:INFO|DEBUG|WARNING|(?<!NCCL )WARN|Warning)\b|\w*Warning: )"
    r"|.{0,20}\[[WID]\d{0,4}[\] ]|[WI]\d{4} \d\d:"
)
"""What a logger calls information or a warning did not end anything."""
_OWN_LINE: Final = re.compile(
    r"\[?\d{4}-\d\d-\d\d|(?:\[rank\d+\]:)?\[[EWI]\d* |[EWI]\d{4} \d\d:|srun:|slurmstepd|wandb: "
)
"""A line of a logger: no message continues in it."""
_CALLED_WARNING: Final = re.compile(r"\bW(?:ARNING|arning): ")
_JOB_END: Final = re.compile(r"slurmstepd: error: \*\*\* JOB (\d+) ")
_MESSAGE_LINES: Final = 8
_CUT_FRAMES: Final = 1
"""Frames that a traceback without an end has at least: none may be a remark of a logger."""
_LONG, _AROUND, _PARTS = 1200, 300, 6
"""Characters of a line that is matched whole, and around each of the first alarming words of a longer one."""
_RARE: Final = 12
_SHAPES: Final = 2000
_NUMBERS: Final = re.compile(r"\d+")
_MESSAGE: Final = 3000
"""Characters of an exception that are matched."""
_KEPT: Final = 6
"""Evidence lines kept of each finding."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Hit:
    """One place where a rule is satisfied."""

    rule: Rule
    line: Line
    order: int
    """Position among the lines that were read."""
    text: str
    """All that it says, further lines included."""
    frames: tuple[str, ...] = ()
    """Files of the traceback, outermost first."""
    is_ignored: bool = False
    """Python itself continued after it."""


@dataclass(slots=True)
class Finding:
    """All places where one rule is satisfied."""

    rule: Rule
    hits: list[Hit] = field(default_factory=list)
    num: int = 0
    last: int = 0
    """Position of the last one."""
    ranks: set[int] = field(default_factory=set)

    @property
    def first(self) -> int:
        """Position of the first one."""
        return self.hits[0].order

    def add(self, hit: Hit) -> None:
        """Count one more place."""
        self.num += 1
        self.last = hit.order
        if hit.line.rank is not None:
            self.ranks.add(hit.line.rank)
        if len(self.hits) < _KEPT:
            self.hits.append(hit)


@dataclass(slots=True)
class Reading:
    """What a log says."""

    findings: dict[str, Finding] = field(default_factory=dict)
    progress: list[int] = field(default_factory=list)
    """Positions of lines that show training advancing."""
    raised: list[tuple[Hit, tuple[str, ...]]] = field(default_factory=list)
    """Every exception, as one of no special kind, and the codes of the rules that know it."""
    finished: int = -1
    """Position of the last line that says that training is done."""
    recovered: dict[str, int] = field(default_factory=dict)
    """Position of the last line that shows that a fault, named by its code, was overcome."""
    num: int = 0
    last: Line | None = None
    """The last line that is not empty."""
    jobs: list[tuple[str, int]] = field(default_factory=list)
    """Number and position of every job whose end a scheduler has written into the log."""


@dataclass(slots=True)
class _Open:
    """A traceback whose end has not been seen."""

    is_ignored: bool
    files: list[str] = field(default_factory=list)
    code: str = ""
    """The last line of code that was quoted."""
    strangers: int = 0
    indent: str = ""
    """Blanks before every line of it: a log that was pasted somewhere."""


@dataclass(slots=True)
class _Raised:
    """An exception whose message may continue."""

    line: Line
    order: int
    lines: list[str]
    files: tuple[str, ...]
    is_ignored: bool
    has_traceback: bool


_FRAMEWORKS: Final = {
    "mindspore": re.compile(
        rb"[Mm]ind[Ss]pore|msrun|[Aa]scend|ASCEND|\bCANN\b|\bNPU|\bnpu|_npu\b|aclnn|\b[Aa]clrt|[Hh]ccl|HCCL"
        rb"|\bE[EZLIJKHFG]\d{4}: |EZ9999|\[ERROR\] (?:GE|ME|RUNTIME|KERNEL|TDT|DEVICE|ANALYZER|PIPELINE)\("
    ),
    "deepspeed": re.compile(rb"[Dd]eep[Ss]peed|micro_batch_per_gpu|zero_optimization|ds_config"),
}


def find_frameworks(taken: Extract) -> set[str]:
    """Return the frameworks that are named in a log."""
    data = [part for _, part in taken.regions]
    return {name for name, pattern in _FRAMEWORKS.items() if any(pattern.search(part) for part in data)}


def _is_progress(text: str) -> bool:
    return _PROGRESS.search(text, 0, _LONG) is not None or _BAR.search(text, 0, _LONG) is not None


def alarming_words(book: Rulebook) -> tuple[str, ...]:
    """Return lower-case words without one of which a line is not matched.

    The usual ones, those that a rule names, and every text that a sign cannot do without and that is long enough to
    be rare: so a rule needs no word of its own to be found.
    """
    rules = book.rules.values()
    named = (*WORDS, *(word for rule in rules for word in rule.words))
    texts = {text for rule in rules for sign in rule.signs for text in sign.literals if len(text) >= _RARE}
    return (*named, *sorted(text for text in texts if not any(word in text for word in named)))


def _first_places(text: str, word: str) -> list[int]:
    places: list[int] = []
    place = text.find(word)
    while place >= 0 and len(places) < _PARTS:
        places.append(place)
        place = text.find(word, place + _AROUND)
    return places


class EventReader:
    """Reads lines one by one."""

    def __init__(self, book: Rulebook) -> None:
        self._book = book
        self._open: dict[str, _Open] = {}
        self._raised: dict[str, _Raised] = {}
        self._ignored: set[str] = set()
        self._dull: set[str] = set()
        """Lines of progress, without their numbers, that no rule matches: a run has millions like them."""
        self._words = alarming_words(book)
        self._recoveries = [(rule.code, rule.recovered) for rule in book.rules.values() if rule.recovered is not None]
        self.reading = Reading()
        self._match = lru_cache(maxsize=4096)(book.match)

    def read(self, lines: Iterable[Line]) -> Reading:
        """Return what the lines say."""
        for line in lines:
            self._take(line)
            self.reading.num += 1
        for source in list(self._raised):
            self._finish(source)
        for opened in self._open.values():
            self._end_cut_off(opened)
        return self.reading

    def _end_cut_off(self, opened: _Open) -> None:
        """Count a traceback whose last line is missing because the log ends in it."""
        if opened.is_ignored or len(opened.files) < _CUT_FRAMES or self.reading.last is None:
            return
        frames = tuple(opened.files)
        rule = self._book.rules["mindspore-exception" if _is_mindspore(frames) else "python-exception"]
        hit = Hit(rule=rule, line=self.reading.last, order=self.reading.num, text=self.reading.last.text, frames=frames)
        self.reading.raised.append((hit, ()))

    def _take(self, line: Line) -> None:
        text, reading = line.text, self.reading
        if not text.strip():
            self._finish(line.source)
            return
        reading.last = line
        lowered = text.lower()
        if ("train" in lowered or "训练" in text) and _FINISHED.search(text, 0, _LONG):
            reading.finished = reading.num
        shape = ""
        if any(word in lowered for word in _PROGRESS_WORDS) and _is_progress(text):
            reading.progress.append(reading.num)
            shape = _NUMBERS.sub("0", text)
        for code, pattern in self._recoveries:
            if code in reading.findings and pattern.search(text):
                reading.recovered[code] = reading.num
        if "raceback" in text and (mark := _MARK.search(text)) is not None:
            self._finish(line.source)
            self._read_before(line, text[: mark.start()])
            indent = text[: len(text) - len(text.lstrip())]
            self._open[line.source] = _Open(is_ignored=line.source in self._ignored, indent=indent)
            self._ignored.discard(line.source)
            if len(text) < _CODE_LINE:
                return
        if ("xception" in text or "Logging error" in text) and _IGNORED.search(text):
            self._ignored.add(line.source)
        if _NATIVE_FRAME.match(text) or self._is_part_of_traceback(line):
            return
        alarming = "" if shape in self._dull else self._alarming(text, lowered)
        if not alarming:
            return
        if (job := _JOB_END.search(text)) is not None:
            reading.jobs.append((job[1], reading.num))
        is_quiet = _QUIET.match(line.raw) is not None
        matched = self._match(alarming)
        if shape and not matched and len(self._dull) < _SHAPES:
            self._dull.add(shape)
        for rule, _ in matched:
            if rule.is_quiet or not is_quiet:
                self._add(rule, line, alarming)

    def _read_before(self, line: Line, text: str) -> None:
        """Take what a bar without an end of line has left in front of a traceback."""
        for rule, _ in self._match(self._alarming(text, text.lower())) if text.strip() else ():
            self._add(rule, line, text)

    def _alarming(self, text: str, lowered: str) -> str:
        """Return what is to be matched of a line: nothing without an alarming word, of a long line around them."""
        present = [word for word in self._words if word in lowered]
        if not present or len(text) <= _LONG:
            return text if present else ""
        parts, end = [text[:_AROUND]], _AROUND
        for place in sorted(place for word in present for place in _first_places(lowered, word)):
            if len(parts) > _PARTS:
                break
            if place >= end:
                parts.append(text[max(end, place - _AROUND) : place + _AROUND])
                end = place + _AROUND
        return " ".join(parts)

    def _is_part_of_traceback(self, line: Line) -> bool:
        """Take a line of a traceback; True: nothing else is to be read in it."""
        text, opened = line.text, self._open.get(line.source)
        if opened is None and _FRAME.match(text):
            # A log that begins in the middle of a traceback.
            opened = self._open.setdefault(line.source, _Open(is_ignored=False))
        if opened is None:
            named = (
                _NAMED.match(text.strip()) if "Error" in text or "Exception" in text or "Interrupt" in text else None
            )
            if named is not None and not named["type"].endswith("Warning") and not _QUIET.match(line.raw):
                self._begin(line, named["type"], (), is_ignored=line.source in self._ignored, has_traceback=False)
                return True
            raised = self._raised.get(line.source)
            if raised is not None and (len(raised.lines) >= _MESSAGE_LINES or _OWN_LINE.match(line.raw)):
                self._finish(line.source)
            elif raised is not None:
                raised.lines.append(text)
            return False
        text = text.removeprefix(opened.indent)
        frame = _FRAME.match(text)
        if frame is not None:
            place = frame["file"] or frame["cell"], frame["function"] or frame["called"] or ""
            opened.files.append(" ".join(place).replace("\\", "/"))
            return len(text) < _CODE_LINE
        if _INSIDE.match(text) and not _INDENTED.match(text):
            if opened.files and len(text) < _CODE_LINE and not _MARKERS.match(text):
                opened.code = text.strip()
            return len(text) < _CODE_LINE
        text = text.strip()
        raised_now = _RAISED.match(text)
        if raised_now is not None and raised_now["type"].rpartition(".")[2] not in _NOT_RAISED:
            del self._open[line.source]
            frames = tuple(opened.files) + ((opened.code,) if opened.code else ())
            self._begin(line, raised_now["type"], frames, is_ignored=opened.is_ignored, has_traceback=True)
            return True
        opened.strangers += 1
        if opened.strangers > 40:
            del self._open[line.source]
        return False

    def _begin(self, line: Line, kind: str, files: tuple[str, ...], *, is_ignored: bool, has_traceback: bool) -> None:
        self._finish(line.source)
        if kind.endswith("Warning"):
            return
        self._raised[line.source] = _Raised(
            line, self.reading.num, [line.text.strip()], files, is_ignored, has_traceback
        )

    def _finish(self, source: str) -> None:
        """Judge an exception whose message is over."""
        raised = self._raised.pop(source, None)
        if raised is None:
            return
        # A message that calls itself a warning has ended the program anyway.
        said = _CALLED_WARNING.sub("", "\n".join(raised.lines)[:_MESSAGE])
        found = [rule for rule, _ in self._match(said, "\n".join(raised.files))]
        name = "mindspore-exception" if _is_mindspore(raised.files) else "python-exception"
        plain = self._book.rules[name]
        for rule in [*found, plain]:
            hit = Hit(
                rule=rule,
                line=raised.line,
                order=raised.order,
                text=said,
                frames=raised.files,
                is_ignored=raised.is_ignored,
            )
            if rule is plain:
                self.reading.raised.append((hit, tuple(one.code for one in found)))
            else:
                self.reading.findings.setdefault(rule.code, Finding(rule)).add(hit)

    def _add(self, rule: Rule, line: Line, text: str) -> None:
        finding = self.reading.findings.setdefault(rule.code, Finding(rule))
        finding.add(Hit(rule=rule, line=line, order=self.reading.num, text=text))


def _is_mindspore(files: tuple[str, ...]) -> bool:
    return any("/mindspore/" in file for file in files)
