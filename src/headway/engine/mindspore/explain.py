"""What MindSpore's own errors mean, in words that say what to do."""

from __future__ import annotations

import re
from typing import Final

import mindspore as ms

from headway.engine.mindspore.context import first_line
from headway.errors import HeadwayError, TrainError

_RULES: Final = (
    ("mindspore/out-of-memory", re.compile(r"[Oo]ut of memory|[Mm]emory not enough|Allocate .*memory.* fail|EL0004")),
    (
        "mindspore/device",
        re.compile(r"[Uu]nsupported device target|device_target.*not (?:support|available)|nvidia-smi"),
    ),
    ("mindspore/package", re.compile(r"(?:ModuleNotFound|Import)Error|No module named|cannot open shared object")),
    ("mindspore/scheduler", re.compile(r"scheduler|cluster.*(?:fail|timed? ?out)|Topology build timed out", re.I)),
    (
        "mindspore/compile",
        re.compile(r"The Traceback of Net Construct Code|analyze_fail\.ir|static_analysis|infer failed|ParseFuncGraph"),
    ),
)


def explain(error: BaseException) -> BaseException:
    """Return the error in our words when it is one we know; else the error itself."""
    if isinstance(error, HeadwayError):
        return error
    said = f"{type(error).__name__}: {error}"
    for code, pattern in _RULES:
        if pattern.search(said):
            known = TrainError(code, why=first_line(error), target="the device", mindspore=ms.__version__)
            known.__cause__, known.__traceback__ = error, error.__traceback__
            return known
    return error
