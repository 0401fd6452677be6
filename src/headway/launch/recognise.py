"""Step, total, loss and learning rate in what common trainers print: tqdm, Hugging Face, Lightning, mmengine, nanoGPT,
Ultralytics, MindSpore, Megatron, DeepSpeed and torch's own examples."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final

_NUMBER: Final = r"[-+]?(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?|nan|inf"
_HINT: Final = re.compile(rb"\d%\||loss|step|iter|epoch", re.IGNORECASE)
"""Lines without any of these are not looked at more closely."""
_LINE_CHARS: Final = 600

_BAR: Final = re.compile(r"(\d{1,3})%\|[^|]{0,200}\| *(\d+)/(\d+) *\[")
_BAR_EPOCH: Final = re.compile(r"^\W*[Ee]poch:?\s*(\d+)(?:/(\d+))?")
_NOT_TRAINING: Final = re.compile(
    r"^\W*(?:valid|val\b|test|eval|sanity|predict|download|map\b|load|tokeniz|generat|filter|sav)|\bVal(?:id|:)|Epoch\((?:val|test)\)",
    re.I,
)
_COUNTED: Final = (
    # mmengine:  Epoch(train) [2][ 50/1000]   Iter(train) [  50/1000]
    re.compile(r"Epoch\(train\)\s*\[(?P<epoch>\d+)\]\[\s*(?P<n>\d+)/\s*(?P<of>\d+)\]"),
    re.compile(r"Iter\(train\)\s*\[\s*(?P<n>\d+)/\s*(?P<total>\d+)\]"),
    # mmcv, torch's imagenet example and DeiT:  Epoch: [0][ 10/5005]   Epoch: [0]  [ 10/5005]
    re.compile(r"Epoch:? \[(?P<epoch0>\d+)\]\s*\[\s*(?P<n0>\d+)/\s*(?P<of>\d+)\]"),
    # Epoch [1/10], Step [100/600]
    re.compile(
        r"Epoch:? \[?(?P<epoch>\d+)/(?P<epochs>\d+)\]?,? .{0,20}?(?:Step|Iter|Batch)\w*:? \[?(?P<n>\d+)/(?P<of>\d+)\]?",
        re.I,
    ),
    # torch's mnist example:  Train Epoch: 1 [640/60000 (1%)]
    re.compile(r"Train Epoch:\s*(?P<epoch>\d+)\s*\[(?P<n>\d+)/(?P<of>\d+)"),
    # MindSpore:  epoch: 1 step: 100, loss is 2.30
    re.compile(r"epoch:?\s*\[?(?P<epoch>\d+)[^,]{0,12}?,?\s*step:?\s*\[?\s*(?P<n>\d+)(?:/\s*(?P<of>\d+))?", re.I),
    # nanoGPT:  iter 10: loss 4.2   nanochat:  step 00010/21400   Megatron:  iteration 10/ 100 |
    re.compile(
        r"(?:^|[\s|\[(,])(?:global[_ ]?)?(?:steps?|iter(?:ation)?s?|update)\b[\s:=\[#]*"
        r"(?P<n>\d+)(?:\s*/\s*(?P<total>\d+))?",
        re.I,
    ),
)
_LOSS: Final = (
    re.compile(rf"['\"]loss['\"]:\s*['\"]?({_NUMBER})"),
    re.compile(rf"(?<![\w.])(?:train[_ /]?)?(?:lm |total[_ ])?loss(?:_step)?\s*(?:is|[:=|])?\s*({_NUMBER})", re.I),
)
_RATE: Final = re.compile(rf"(?<![\w.])(?:lr|learning[_ ]rate)['\"]?\s*[:=]?\s*['\"]?({_NUMBER})", re.I)
# Ultralytics:  1/100   2.5G   1.234   2.345   1.456   12   640:  50%|
_ULTRALYTICS: Final = re.compile(r"^\s*(\d+)/(\d+)\s+\S*G?\s+((?:\d+\.\d+\s+)+)\d+\s+\d+:")


@dataclass(frozen=True, slots=True, kw_only=True)
class Progress:
    """What one line told; None: it did not say."""

    step: int
    """Steps since the beginning, as far as the lines tell."""
    total: int | None = None
    loss: float | None = None
    lr: float | None = None


class ProgressReader:
    """Reads one rank's lines in order: a bar counts within an epoch, a loss may stand on a line of its own."""

    def __init__(self) -> None:
        self._step = 0
        self._total: int | None = None
        self._epoch: int | None = None
        self._before = 0
        self._last = 0
        self._last_of: int | None = None

    def feed(self, line: bytes) -> Progress | None:
        """Return what a line says about the training, or None."""
        if not _HINT.search(line[:_LINE_CHARS]):
            return None
        text = line[:_LINE_CHARS].decode("utf-8", "replace")
        if _NOT_TRAINING.search(text):
            return None
        loss = _find_loss(text)
        if not self._count(text, has_loss=loss is not None) and (loss is None or not self._step):
            return None
        rate = _RATE.search(text)
        lr = float(rate[1]) if rate else None
        return Progress(step=self._step, total=self._total, loss=loss, lr=lr)

    def _count(self, text: str, *, has_loss: bool) -> bool:
        """Follow the step; say whether the line told one."""
        bar = _BAR.search(text)
        if bar is not None:
            named = _BAR_EPOCH.search(text)
            ultra = _ULTRALYTICS.search(text)
            epoch = int(ultra[1]) - 1 if ultra else int(named[1]) if named else None
            epochs = _whole(ultra[2] if ultra else named[2] if named else None)
            return self._advance(int(bar[2]), int(bar[3]), epoch, epochs)
        for pattern in _COUNTED:
            found = pattern.search(text)
            if found is None:
                continue
            parts = found.groupdict()
            epoch = _whole(parts.get("epoch"), parts.get("epoch0"))
            count = _whole(parts.get("n"), parts.get("n0"))
            of = _whole(parts.get("of"))
            if count is None or (epoch is None and not has_loss and parts.get("total") is None):
                continue  # "step 3" without a loss or a total is prose
            if of is None:
                return self._set(count, _whole(parts.get("total")), epoch)
            return self._advance(count, of, epoch, _whole(parts.get("epochs")))
        return False

    def _set(self, step: int, total: int | None, epoch: int | None) -> bool:
        if epoch is not None and epoch != self._epoch:
            self._before = self._step if self._epoch is not None and step <= self._last else 0
            self._epoch = epoch
        self._last = step
        self._step, self._total = self._before + step, total or self._total
        return True

    def _advance(self, count: int, of: int, epoch: int | None, epochs: int | None) -> bool:
        """Add up counts that begin anew in each epoch."""
        is_new = epoch != self._epoch or of != self._last_of or count < self._last
        if is_new and self._last_of is not None and (epoch is not None or count < self._last):
            self._before += self._last_of if self._last_of == of else self._last
        self._epoch, self._last, self._last_of = epoch, count, of
        self._step = self._before + count
        if epochs is not None:
            self._total = epochs * of
        else:
            self._total = of if epoch is None and not self._before else None
        return True


def _find_loss(text: str) -> float | None:
    ultra = _ULTRALYTICS.search(text)
    if ultra is not None:
        return sum(map(float, ultra[3].split()))
    for pattern in _LOSS:
        found = pattern.search(text)
        if found is not None:
            return float(found[1])
    return None


def _whole(*texts: str | None) -> int | None:
    return next((int(text) for text in texts if text is not None), None)
