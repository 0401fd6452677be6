"""Step, total, loss and learning rate in what common trainers print: tqdm, Hugging Face, Lightning, mmengine, nanoGPT,
Ultralytics, MindSpore, Megatron, DeepSpeed, fairseq, detectron2, Keras, timm, Paddle and plain prints."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final

from headway.launch.foreign.printed_counts import Counter
from headway.launch.foreign.printed_lines import (
    Bar,
    Count,
    Loss,
    ends_epoch,
    find_bar,
    find_count,
    find_epoch,
    find_loss,
    find_rate,
    is_evaluation,
)

_LINE_BYTES: Final = 2000
_HINT: Final = re.compile("loss|step|iter|epoch|batch|updates|episode|损失|轮".encode())
"""Lines with none of these and no bar are not looked at more closely."""
_COLOUR: Final = re.compile(rb"\x1b\[[0-9;?]{0,20}[A-Za-z]|#033\[[0-9;]{0,9}[A-Za-z]|#015")
_NAMED: Final = re.compile(
    r"[\W_]{0,80}(?:Epoch:?\s{1,4}\[?(\d{1,6})(?:\s?/\s?(\d{1,6}))?"
    r"|第 ?(\d{1,6}) ?(?:/ ?(\d{1,6}) ?)?轮(?:训练)?(?:开始)?)[\W_]{0,80}",
    re.I,
)
"""An epoch on a line of its own."""
_FRACTION: Final = re.compile(r"['\"]epoch['\"]: ['\"]?(\d{1,6}\.\d{1,18})")
_EPOCHS_BAR: Final = re.compile(r"epochs?\W*$", re.I)
# Starting training for 20 epochs...   Num Epochs = 3   Namespace(epochs=10, lr=0.1)   Total optimization steps = 460
_PROMISED_EPOCHS: Final = re.compile(
    r"training for (\d{1,6}) epochs|(?<![A-Za-z])(?:max_epoch|epochs)['\"]?\s?[:=]\s?(\d{1,6})(?![\d%/]|\.\d)", re.I
)
_PROMISED_STEPS: Final = re.compile(r"total (?:optimization|train(?:ing)?) steps?\s?[:=]\s?(\d{1,12})(?!\.?\d)", re.I)
# Ultralytics:  1/100   2.5G   1.234   2.345   1.456   12   640:  50%|
_ULTRALYTICS: Final = re.compile(
    r"^\s{0,20}(\d{1,6})/(\d{1,6})\s{1,12}\S{1,12}\s{1,12}((?:[\d.]{3,12}\s{1,12}|nan\s{1,12}){1,12})\d+\s{1,12}\d+:"
)
_YOLO_HEADER: Final = re.compile(r"^\s{0,20}Epoch\s{1,12}gpu_mem\s", re.I)
_UNDER_EPOCHS: Final = ("keras", "step", "steps")
"""Counts that belong to the epoch that a line of its own has named."""
_RANKS: Final = {"bar": 2.0, "named": 3.0, "yolo": 3.0, "step": 1.5, "name": 0.0}


@dataclass(frozen=True, slots=True, kw_only=True)
class Progress:
    """What one line reported; None: it did not say."""

    step: int
    """Steps since the beginning, as far as the lines tell."""
    total: int | None = None
    loss: float | None = None
    lr: float | None = None


class ProgressReader:
    """Reads one rank's lines in order: a bar counts within an epoch, a loss may be on a line of its own."""

    def __init__(self) -> None:
        self._counters: dict[str, Counter] = {}
        self._lead: str | None = None
        self._named: tuple[int, int | None] | None = None
        """The epoch that the last line of its own named, and of how many."""
        self._is_headed = False
        """No count has come since that line."""
        self._epochs: int | None = None
        self._steps: int | None = None
        self._is_evaluating = False
        self._is_zero_based = False
        self._sums_losses = True

    def feed(self, line: bytes) -> Progress | None:
        """Return what a line says about the training, or None."""
        line = line[:_LINE_BYTES]
        if b"%" not in line and not _HINT.search(line.lower()):
            return None
        text = _COLOUR.sub(b"", line).decode("utf-8", "replace")
        if is_evaluation(text):
            self._is_evaluating = True
            return None
        ultra = _ULTRALYTICS.search(text)
        loss = Loss(self._summed(ultra[3])) if ultra else find_loss(text)
        if loss is None and self._promised(text):
            return None
        rate = find_rate(text)
        told = self._count(text, ultra, has_loss=loss is not None, has_rate=rate is not None)
        if told:
            self._is_evaluating = False
        elif told is not None or loss is None or not (self._from_fraction(text) or self._belongs(loss)):
            return None
        lead = self._counters[self._lead] if self._lead else None
        if lead is None:
            return None
        total = lead.total or (self._steps if self._lead != "name" else None)
        return Progress(
            step=lead.step,
            total=total if total is not None and total >= lead.step else None,
            loss=None if loss is None else loss.value,
            lr=rate,
        )

    def _from_fraction(self, text: str) -> bool:
        """Hugging Face without bars: {'loss': 0.5, 'epoch': 0.32}, after a header that says how long the run is."""
        found = _FRACTION.search(text) if self._steps and self._epochs and self._lead in (None, "fraction") else None
        if found is None or not self._steps or not self._epochs:
            return False
        counter = self._counters.setdefault("fraction", Counter())
        counter.take(Count("fraction", round(float(found[1]) / self._epochs * self._steps), self._steps), None)
        return self._leads("fraction", has_loss=True)

    def _belongs(self, loss: Loss) -> bool:
        """Say whether a loss on a line of its own is the training's; it belongs to the step reported last."""
        if loss.is_part or (self._is_evaluating and not loss.says_train):
            return False
        if self._lead is None and "name" in self._counters:
            self._lead = "name"
        if self._lead is not None:
            self._counters[self._lead].has_loss = True
        return self._lead is not None

    def _promised(self, text: str) -> bool:
        """Lines that say beforehand how long the run will be, or what the columns are."""
        if epochs := _PROMISED_EPOCHS.search(text):
            self._epochs = int(epochs[1] or epochs[2])
        elif steps := _PROMISED_STEPS.search(text):
            self._steps = int(steps[1])
        elif _YOLO_HEADER.search(text):
            self._is_zero_based = " obj" in text  # YOLOv5 and v7 count 0/2, 1/2, 2/2; their successors 1/3, 2/3, 3/3
            self._sums_losses = " total " not in text
        else:
            return False
        return True

    def _summed(self, losses: str) -> float:
        values = [float(value) for value in losses.split()]
        return sum(values) if self._sums_losses else values[-1]

    def _count(self, text: str, ultra: re.Match[str] | None, *, has_loss: bool, has_rate: bool) -> bool | None:
        """Follow the step; say whether the line reported one. None: it counts nothing; False: other things."""
        bar = find_bar(text, has_loss=has_loss)
        if bar is not None:
            return self._count_bar(bar, ultra, has_loss=has_loss)
        if "%|" in text:
            return False
        count = find_count(text, has_loss=has_loss, has_rate=has_rate)
        if count is not None:
            return self._count_line(count, has_loss=has_loss)
        return self._count_epoch(text, has_loss=has_loss) or None

    def _count_line(self, count: Count, *, has_loss: bool) -> bool:
        counter = self._counters.setdefault(count.kind, Counter())
        if count.kind == "keras":
            if counter.of not in (None, count.of) and not self._is_headed:
                return False  # evaluate() draws the same bar
            self._is_headed = False
        if self._named is not None and count.kind in _UNDER_EPOCHS and count.epoch is None:
            epoch, epochs = self._named
            count = Count(count.kind, count.n, of=count.of or count.total, epoch=epoch, epochs=epochs)
        counter.take(count, self._epochs)
        return self._leads(count.kind, has_loss=has_loss)

    def _count_epoch(self, text: str, *, has_loss: bool) -> bool:
        """Whole epochs are steps where nothing finer is counted."""
        if alone := _NAMED.fullmatch(text):
            epoch_text, epochs_text = alone[1] or alone[3], alone[2] or alone[4]
            self._named, self._is_headed = (int(epoch_text), int(epochs_text) if epochs_text else None), True
        named = find_epoch(text)
        is_end = ends_epoch(text)
        if named is None or not (has_loss or alone or is_end or (named[1] and self._lead in (None, "name"))):
            return False
        epoch, epochs = named
        counter = self._counters.setdefault("name", Counter())
        counter.take(Count("name", epoch, epochs or self._epochs), None)
        if epochs is not None:
            self._epochs = epochs
        return (has_loss or is_end) and self._leads("name", has_loss=has_loss)

    def _count_bar(self, bar: Bar, ultra: re.Match[str] | None, *, has_loss: bool) -> bool:
        """A bar counts within the epoch that its line names, or the line above it, if one does."""
        kind = "yolo" if ultra else "named" if bar.is_named or has_loss else "bar"
        if kind == "named" and _EPOCHS_BAR.search(bar.name):
            kind = "name"
        if kind == "bar" and not self._is_own(bar):
            return False
        counter = self._counters.setdefault(kind, Counter())
        if ultra is not None:
            self._is_zero_based = self._is_zero_based or ultra[1] == "0"
            epochs = int(ultra[2]) + self._is_zero_based
            is_own = counter.take_bar(bar, int(ultra[1]), epochs, int(not self._is_zero_based))
        elif kind == "name":
            self._epochs, self._named = bar.of, (min(bar.count + 1, bar.of), bar.of)
            is_own = counter.take(Count("name", bar.count, bar.of), None)
        else:
            is_own = counter.take_bar(bar, *self._epoch_of(bar))
        return is_own and self._leads(kind, has_loss=has_loss)

    def _epoch_of(self, bar: Bar) -> tuple[int | None, int | None]:
        """Return the epoch of a bar and how many there are; one named "steps" counts those of the run."""
        named = find_epoch(bar.name)
        if named is None and bar.name.lower().startswith("steps"):
            return None, None
        epoch, epochs = named or self._named or (None, None)
        return epoch, epochs if epochs is not None or bar.of == self._steps else self._epochs

    def _is_own(self, bar: Bar) -> bool:
        """Of bars without names the longest is training's; another is an evaluation's until it has taken more time."""
        counter = self._counters.get("bar")
        if counter is None or counter.of is None:
            return bar.count > 0  # one that has done nothing may yet turn out too fast for training
        if counter.of == bar.of:
            return True
        is_prelude = bar.count > 0 and bar.of > counter.of and counter.is_done and not counter.has_loss
        if bar.elapsed_s <= counter.elapsed_s and not is_prelude:
            return False
        del self._counters["bar"]
        return True

    def _leads(self, kind: str, *, has_loss: bool) -> bool:
        """Let a count lead that tells more than the one before."""
        counter = self._counters[kind]
        counter.has_loss = counter.has_loss or has_loss
        if self._lead is None or self._lead == kind or self._rank(kind) > self._rank(self._lead):
            self._lead = kind
        return self._lead == kind or has_loss

    def _rank(self, kind: str) -> float:
        counter = self._counters[kind]
        rank = _RANKS.get(kind, 3.0 if counter.of is not None or counter.total is not None else 1.5)
        return rank + (0.75 if counter.has_loss else 0.0)
