"""Step, total, loss and learning rate in what common trainers print: tqdm, Hugging Face, Lightning, mmengine, nanoGPT,
Ultralytics, MindSpore, Megatron, DeepSpeed, fairseq, Keras, timm, Paddle and torch's own examples."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final

_NUMBER: Final = r"[-+]?(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?|nan|inf"
_HINT: Final = re.compile(rb"\d%|loss|step|iter|epoch|batch=", re.IGNORECASE)
"""Lines without any of these are not looked at more closely."""
_LINE_CHARS: Final = 600
_COLOUR: Final = re.compile(rb"\x1b\[[0-9;?]*[A-Za-z]")

# tqdm:  12%|█▏   | 12/100 [   Ultralytics' own bars:  42% ━━━━──── 42/100 9.1it/s
_BAR: Final = re.compile(r"(\d{1,3})%(?:\|[^|]{0,200}\| *(\d+)/(\d+) *\[| [━─╸╺ ]{1,200}(\d+)/(\d+) )")
_BAR_EPOCH: Final = re.compile(r"\b[Ee]poch:?\s*\[?(\d+)(?:/(\d+))?")
_EPOCH_LINE: Final = re.compile(r"\s*Epoch (\d+)/(\d+)\s*")
_NOT_TRAINING: Final = re.compile(
    r"^\W*(?:valid|val\b|test|eval|sanity|predict|download|map\b|load|tokeniz|generat|filter|sav)|\bVal(?:id|:)|Epoch\((?:val|test)\)",
    re.I,
)
_COUNTED: Final = (
    # swift:  'global_step/max_steps': '50/937'   composer:  [epoch=0][batch=20/4800]
    re.compile(r"global_step/max_steps['\"]?:\s*['\"]?(?P<n>\d+)/(?P<total>\d+)"),
    re.compile(r"\[batch=(?P<n>\d+)/(?P<total>\d+)\]"),
    # fairseq:  epoch 001:  100 / 1105 loss=13.5, num_updates=100   "num_updates": "100"
    re.compile(r"num_updates['\"]?\s*[:=]\s*['\"]?(?P<n>\d+)"),
    # mmengine:  Epoch(train) [2][ 50/1000]   Iter(train) [  50/1000]   mmcv:  Iter [50/160000]
    re.compile(r"Epoch\(train\)\s*\[(?P<epoch>\d+)\]\[\s*(?P<n>\d+)/\s*(?P<of>\d+)\]"),
    re.compile(r"Iter(?:\(train\))?\s*\[\s*(?P<n>\d+)/\s*(?P<total>\d+)\]"),
    # mmcv, torch's imagenet example and DeiT:  Epoch: [0][ 10/5005]   Epoch: [0]  [ 10/5005]
    re.compile(r"Epoch:? \[(?P<epoch0>\d+)\]\s*\[\s*(?P<n>\d+)/\s*(?P<of>\d+)\]"),
    # Swin:  Train: [0/300][10/1251]   timm:  Train: 3 [ 100/1251 (  8%)]
    re.compile(r"Train: \[(?P<epoch0>\d+)/(?P<epochs>\d+)\]\s*\[\s*(?P<n>\d+)/(?P<of>\d+)\]"),
    re.compile(r"Train: (?P<epoch0>\d+) \[\s*(?P<n>\d+)/(?P<of>\d+)"),
    # Lightning's rich bar:  Epoch 0/4  ━━━━ 120/469 0:00:03
    re.compile(r"Epoch (?P<epoch0>\d+)/(?P<last>\d+)\s+[━╸╺ ]+\s*(?P<n>\d+)/(?P<of>\d+)"),
    # Epoch [1/10], Step [100/600]   MindFormers:  Epoch:[  1/ 10], step:[    2/ 6500]
    re.compile(
        r"Epoch:?\s*\[?\s*(?P<epoch>\d+)\s*/\s*(?P<epochs>\d+)\s*\]?,?\s.{0,20}?"
        r"(?:Step|Iter|Batch)\w*:?\s*\[?\s*(?P<n>\d+)\s*/\s*(?P<of>\d+)\]?",
        re.I,
    ),
    # Keras, below a line "Epoch 1/5":   12/1875 [.....] - ETA: 9s - loss: 2.1   120/1875 ━━━ 3s 2ms/step - loss: 1.2
    re.compile(r"^\s*(?P<n>\d+)/(?P<of>\d+)\s+(?:\[[=>.]+\]|[━╸╺ ]+\d+\w* ).* - "),
    # ESPnet:  1epoch:train:1-50batch:   clu:  [100] loss=4.6
    re.compile(r"\b(?P<epoch>\d+)epoch:train:\d+-(?P<n>\d+)batch"),
    re.compile(r"\] \[(?P<n>\d+)\] \w"),
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
    # tqdm without an end:  120it [00:10, 11.9it/s, loss=0.5]
    re.compile(r"(?:^|\s)(?P<n>\d+)it \[\d"),
)
_LOSS: Final = re.compile(
    r"(?<![\w.])((?:[A-Za-z][\w./]*[ _/])?loss(?:/[\w/]+|_step|_mean)?)['\"]?\s*(?:is|[:=|])?\s*['\"]?"
    rf"({_NUMBER})(?![\w/])",
    re.I,
)
_NOT_LOSS: Final = re.compile(r"(?:^|[ _/])(?:val|valid|validation|eval|test|dev)(?:$|[ _/])", re.I)
_RATE: Final = re.compile(
    rf"(?<![A-Za-z])(?:\w*[_/])?(?:lr\d?|learning[_ ]rate)(?![A-Za-z_])['\"]?\s*[:=]?\s*[\['\"]{{0,2}}({_NUMBER})", re.I
)
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
        self._named: tuple[int, int] | None = None
        self._is_zero_based = False

    def feed(self, line: bytes) -> Progress | None:
        """Return what a line says about the training, or None."""
        if not _HINT.search(line[:_LINE_CHARS]):
            return None
        text = _COLOUR.sub(b"", line[:_LINE_CHARS]).decode("utf-8", "replace")
        if _NOT_TRAINING.search(text):
            return None
        if named := _EPOCH_LINE.fullmatch(text):
            self._named = int(named[1]), int(named[2])
        loss, rate = _find_loss(text), _RATE.search(text)
        lr = float(rate[1]) if rate else None
        if not self._count(text, has_value=loss is not None or lr is not None) and (loss is None or not self._step):
            return None
        return Progress(step=self._step, total=self._total, loss=loss, lr=lr)

    def _count(self, text: str, *, has_value: bool) -> bool:
        """Follow the step; say whether the line told one."""
        bar = _BAR.search(text)
        if bar is not None:
            return self._count_bar(text, bar)
        for pattern in _COUNTED:
            found = pattern.search(text)
            if found is None:
                continue
            parts = found.groupdict()
            epoch = _whole(parts.get("epoch"), parts.get("epoch0"))
            count, of, total = (_whole(parts.get(name)) for name in ("n", "of", "total"))
            if count is None or (epoch is None and not has_value and total is None):
                continue  # "step 3" without a loss or a total is prose
            if of is None:
                return self._set(count, total, epoch)
            epochs, last = _whole(parts.get("epochs")), _whole(parts.get("last"))
            if epoch is None and self._named is not None:
                epoch, epochs = self._named
            epochs = last + 1 if last is not None else epochs
            return self._advance(count, of, epoch, epochs, first=0 if parts.get("epoch0") else 1)
        return False

    def _count_bar(self, text: str, bar: re.Match[str]) -> bool:
        """A bar counts within the epoch that its line names, if it names one."""
        count, of = int(bar[2] or bar[4]), int(bar[3] or bar[5])
        if ultra := _ULTRALYTICS.search(text):
            # YOLOv5 counts 0/2, 1/2, 2/2; its successors 1/3, 2/3, 3/3.
            self._is_zero_based = self._is_zero_based or ultra[1] == "0"
            return self._advance(
                count, of, int(ultra[1]), int(ultra[2]) + self._is_zero_based, first=int(not self._is_zero_based)
            )
        named = _BAR_EPOCH.search(text, 0, bar.start())
        epochs = _whole(named[2]) if named else None
        return self._advance(count, of, int(named[1]) if named else None, epochs)

    def _set(self, step: int, total: int | None, epoch: int | None) -> bool:
        if epoch is not None and epoch != self._epoch:
            self._before = self._step if self._epoch is not None and step <= self._last else 0
            self._epoch = epoch
        self._last = step
        self._step, self._total = self._before + step, total or self._total
        return True

    def _advance(self, count: int, of: int, epoch: int | None, epochs: int | None, *, first: int = 1) -> bool:
        """Add up counts that begin anew in each epoch; `first` is the number of the first one."""
        if self._last_of is None and epoch is not None and epochs is not None:
            self._before = max(0, epoch - first) * of  # a run that goes on begins in a later one
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
    best: tuple[int, float] | None = None
    for name, value in _LOSS.findall(text):
        if _NOT_LOSS.search(name):
            continue
        # The plain name is the one that is trained on; a part of it (nll_loss, kd_loss) stands in for it.
        score = 0 if name.lower().rpartition(" ")[2] in ("loss", "loss_step") else 1
        if best is None or score < best[0]:
            best = score, float(value)
    return best[1] if best else None


def _whole(*texts: str | None) -> int | None:
    return next((int(text) for text in texts if text is not None), None)
