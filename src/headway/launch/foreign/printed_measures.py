"""Results of validation in what trainers print: val_loss=0.31, {'eval_loss': 0.5}, "Test set: Average loss: 0.05"."""

from __future__ import annotations

import math
import re
from typing import Final, Literal

from headway.launch.foreign.printed_lines import is_evaluation

_MOST: Final = 8
"""Measures kept of one line."""
_METRIC: Final = (
    r"loss|acc(?:uracy)?(?:[@_]?top?\d)?|acc@\d|top[-_ ]?\d(?:[-_ ]acc\w{0,5})?|ppl|perplexity|bpb|bits?[_ ]per[_ ]byte"
    r"|f1(?:[-_ ]score)?|bleu|rouge\w{0,4}|[cw]er|m?iou|m?ap(?:50(?:-95)?)?|auc|auroc|mse|rmse|mae|r2|psnr|ssim|fid"
    r"|error|err|success(?:[-_ ]rate)?|score|reward|dice|recall|precision|损失|准确率|精度"
)
_SPLIT: Final = r"val(?:id(?:ation)?)?|test|eval(?:uation)?|dev|验证|测试|评估"
_VALUE: Final = r"([-+]?(?:\d{1,12}\.?\d{0,18}|\.\d{1,18})(?:[eE][-+]?\d{1,3})?|nan|-?inf)(?![\w./])(\s?%)?"
_BETWEEN: Final = r"['\"]?(?:\s{0,3}(?:is\b|[:=：])\s{0,3}|\s{1,3})['\"]?"
_NAMED: Final = re.compile(rf"(?<![A-Za-z0-9_.])({_SPLIT})[ _/\-.]{{0,2}}({_METRIC}){_BETWEEN}{_VALUE}", re.I)
_PLAIN: Final = re.compile(rf"(?<![\w.])(?:(?:average|avg|mean|total)[ _]|平均)?({_METRIC}){_BETWEEN}{_VALUE}", re.I)
_OF: Final = re.compile(r"(?<![\w.])(accuracy|acc|准确率)[:=：\s]{1,4}(\d{1,9})\s?/\s?(\d{1,9})", re.I)
_PART: Final = re.compile(r"\[\s{0,6}\d{1,9}\s{0,3}/\s{0,6}\d{1,9}\s{0,3}\]|\d%\s?\|")
"""A batch of the validation, not its result."""
_OLD: Final = re.compile(r"(?:best|min|max|lowest|highest|previous|最[佳优好低高])\W{0,3}(?:so far)?\W{0,3}$", re.I)
"""What comes before a result of earlier."""
_MODE: Final = re.compile(rf"(?<![a-z])({_SPLIT})", re.I)
_LOWER_IS_BETTER: Final = re.compile(r"loss|ppl|perplexity|bpb|byte|[cw]er$|mse|mae|err|fid")
_ZH: Final = {"验证": "val", "评估": "eval", "测试": "test", "损失": "loss", "准确率": "accuracy", "精度": "accuracy"}


def find_measures(text: str) -> dict[str, float]:
    """Return the results of a validation that a line tells, by name; of a line about one batch: none."""
    found: dict[str, float] = {}
    if _PART.search(text):
        return found
    for named in _NAMED.finditer(text):
        if not _OLD.search(text, max(0, named.start() - 24), named.start()):
            _put(found, *named.groups(""))
    if not found and is_evaluation(text) and (mode := _MODE.search(text)):
        for metric, right, of in _OF.findall(text):
            _put(found, mode[1], metric, str(int(right) / max(1, int(of))), "")
        for metric, value, percent in _PLAIN.findall(text):
            _put(found, mode[1], metric, value, percent)
    return found


def main_measure(names: list[str]) -> str:
    """Return the measure that decides which validation is the best: a loss where there is one, else the first."""
    return next((name for name in names if name.endswith("loss")), names[0])


def sense(name: str) -> Literal["min", "max"]:
    """Say which way a measure is better."""
    return "min" if _LOWER_IS_BETTER.search(name) else "max"


def _put(found: dict[str, float], split: str, metric: str, value: str, percent: str) -> None:
    words = (_ZH.get(split, split).lower(), re.sub(r"[\s-]+", "_", _ZH.get(metric, metric).lower()))
    name = "_".join(words)
    number = round(float(value) / 100, 12) if percent.strip() else float(value)
    if name not in found and len(found) < _MOST and not math.isinf(number):
        found[name] = number
