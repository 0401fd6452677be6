"""From logits to glosses, and from glosses to the word error rate."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from headway.recipes.tfnet.glosses import BLANK

Floats = NDArray[np.float32]
_KEPT_TOKENS = 40
"""Tokens of a frame a beam search looks at; the rest are too unlikely to end in a kept sentence."""


@dataclass(frozen=True, slots=True)
class Edits:
    """What turns a hypothesis into its reference."""

    sub: int
    dele: int
    ins: int
    length: int
    """Words of the reference."""

    @property
    def errors(self) -> int:
        """All edits."""
        return self.sub + self.dele + self.ins


def count_edits(reference: Sequence[object], hypothesis: Sequence[object]) -> Edits:
    """Return the cheapest edits, unit costs; of equal ones the one with most substitutions."""
    row = [(j, 0, 0, j) for j in range(len(hypothesis) + 1)]  # cost, substitutions, deletions, insertions
    for i, word in enumerate(reference, 1):
        above, row = row, [(i, 0, i, 0)]
        for j, other in enumerate(hypothesis, 1):
            cost, sub, dele, ins = above[j - 1]
            best = (cost, sub, dele, ins) if word == other else (cost + 1, sub + 1, dele, ins)
            cost, sub, dele, ins = above[j]
            best = min(best, (cost + 1, sub, dele + 1, ins), key=lambda way: way[0])
            cost, sub, dele, ins = row[j - 1]
            row.append(min(best, (cost + 1, sub, dele, ins + 1), key=lambda way: way[0]))
    _, sub, dele, ins = row[-1]
    return Edits(sub, dele, ins, len(reference))


def sum_errors(references: Sequence[Sequence[object]], hypotheses: Sequence[Sequence[object]]) -> dict[str, float]:
    """Return the sums behind both word error rates."""
    found = [count_edits(want, have) for want, have in zip(references, hypotheses, strict=True)]
    return {
        "sentences": float(len(found)),
        "words": float(sum(one.length for one in found)),
        "ratio": math.fsum(one.errors / max(1, one.length) for one in found),
        "sub": float(sum(one.sub for one in found)),
        "dele": float(sum(one.dele for one in found)),
        "ins": float(sum(one.ins for one in found)),
    }


def rates(sums: Mapping[str, float]) -> dict[str, float]:
    """Return percentages: `wer` is the mean over sentences as published, `wer_corpus` counts every word alike."""
    words = max(1.0, sums["words"])
    parts = {name: 100 * sums[name] / words for name in ("sub", "dele", "ins")}
    return {
        "wer": 100 * sums["ratio"] / max(1.0, sums["sentences"]),
        "wer_corpus": sum(parts.values()),
        "sub": parts["sub"],
        "del": parts["dele"],
        "ins": parts["ins"],
    }


def decode_greedy(logits_TV: Floats) -> list[int]:
    """Take the likeliest token of each frame, merge repeats, drop blanks."""
    path = logits_TV.argmax(-1)
    return [int(one) for at, one in enumerate(path) if one != BLANK and (at == 0 or one != path[at - 1])]


def decode_beam(logits_TV: Floats, width: int) -> list[int]:
    """Return the likeliest sentence by prefix beam search: paths that read the same are added up."""
    scores = log_softmax(logits_TV)
    # Sentence -> log probability of paths that end in a blank, and of those that end in its last word.
    beams: dict[tuple[int, ...], tuple[float, float]] = {(): (0.0, -math.inf)}
    for frame in scores:
        tokens = np.argpartition(-frame, min(_KEPT_TOKENS, len(frame) - 1))[:_KEPT_TOKENS]
        words = [(int(token), float(frame[token])) for token in tokens if token != BLANK]
        blank = float(frame[BLANK])
        grown: dict[tuple[int, ...], tuple[float, float]] = {}
        for prefix, (in_blank, in_word) in beams.items():
            both = _add(in_blank, in_word)
            _collect(grown, prefix, both + blank, -math.inf)
            if prefix:
                _collect(grown, prefix, -math.inf, in_word + float(frame[prefix[-1]]))
            for token, score in words:
                # The same word again is a new word only after a blank.
                before = in_blank if prefix and prefix[-1] == token else both
                _collect(grown, (*prefix, token), -math.inf, before + score)
        kept = sorted(grown.items(), key=lambda one: (-_add(*one[1]), one[0]))[:width]
        beams = dict(kept)
    return list(next(iter(beams)))


def log_softmax(logits: Floats) -> NDArray[np.float64]:
    """Return log probabilities over the last axis."""
    wide = logits.astype(np.float64)
    wide = wide - wide.max(-1, keepdims=True)
    out: NDArray[np.float64] = wide - np.log(np.exp(wide).sum(-1, keepdims=True))
    return out


def _add(a: float, b: float) -> float:
    """Return log(exp(a) + exp(b))."""
    high, low = max(a, b), min(a, b)
    return high if low == -math.inf else high + math.log1p(math.exp(low - high))


def _collect(beams: dict[tuple[int, ...], tuple[float, float]], key: tuple[int, ...], a: float, b: float) -> None:
    in_blank, in_word = beams.get(key, (-math.inf, -math.inf))
    beams[key] = _add(in_blank, a), _add(in_word, b)
