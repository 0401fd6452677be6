"""The half of TFNet's task that needs no framework: data, measures and what a checkpoint says of itself."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property
from itertools import groupby
from pathlib import Path
from typing import Any
from unicodedata import east_asian_width

import numpy as np

from headway.messages import say
from headway.recipes.tfnet.clips import Arrays, ClipData
from headway.recipes.tfnet.data import Clip, Dataset, open_dataset
from headway.recipes.tfnet.frames import count_frames
from headway.recipes.tfnet.glosses import Vocabulary, check_vocabulary
from headway.recipes.tfnet.measure import Floats, count_edits, decode_beam, decode_greedy, rates, sum_errors
from headway.recipes.tfnet.section import PredictOptions, TfnetSection
from headway.task import RunConfig


class TfnetParts:
    """Data and measures of one resolved config."""

    def __init__(self, config: RunConfig) -> None:
        self.config = config
        self.section: TfnetSection = config.task

    @cached_property
    def dataset(self) -> Dataset:
        """All splits, checked."""
        return open_dataset(self.section)

    @property
    def vocabulary(self) -> Vocabulary:
        """The words and their numbers."""
        return self.dataset.vocabulary

    def data(self, split: str) -> ClipData:
        """Return one split; only training clips are augmented."""
        clips = self.dataset.clips[split]
        return self.open_clips(clips, is_train=split == "train")

    def open_clips(self, clips: Sequence[Clip], *, is_train: bool = False) -> ClipData:
        """Return these clips as data."""
        return ClipData(clips, self.vocabulary, self.section, seed=self.config.seed, is_train=is_train)

    def longest_clips(self, samples: int) -> Arrays:
        """Return a batch as large as any: every clip has the most frames and the most words."""
        return self.data("train").longest(samples)

    def data_id(self) -> dict[str, str]:
        """Return hashes of what is trained on and of the words' numbers."""
        return {"train": self.dataset.fingerprint(), "vocabulary": self.vocabulary.fingerprint}

    def decode(self, logits_LBV: Floats, lengths: Sequence[int], decoder: str | None = None) -> list[list[int]]:
        """Return the numbers of each clip's words."""
        decoder = decoder or self.section.decoder
        found = []
        for row, length in enumerate(lengths):
            logits_LV = logits_LBV[: int(length), row]
            is_beam = decoder == "beam"
            read = decode_beam(logits_LV, self.section.beam_width) if is_beam else decode_greedy(logits_LV)
            found.append([word for word, _ in groupby(read)] if self.section.merge_equal else read)
        return found

    def score(self, logits_LBV: Floats, batch: Mapping[str, Any]) -> dict[str, float]:
        """Return the sums behind the error rates of a batch."""
        lengths, labels = np.asarray(batch["label_lengths"]), np.asarray(batch["labels"])
        references = [labels[row, :length].tolist() for row, length in enumerate(lengths)]
        return sum_errors(references, self.decode(logits_LBV, np.asarray(batch["lengths"]).tolist()))

    def summarize(self, sums: Mapping[str, float]) -> dict[str, float]:
        """Return word error rates in percent and the loss a clip."""
        return {**rates(sums), "loss": sums["loss"] / sums["sentences"]}

    def describe(self, step: int, measures: Mapping[str, float]) -> dict[str, Any]:
        """Return what travels with the weights: the words' numbers above all."""
        return {
            "vocabulary": self.vocabulary.to_json(),
            "section": self.section.model_dump(mode="json"),
            "step": step,
            "measures": dict(measures),
        }

    def check_export(self, described: Mapping[str, Any]) -> None:
        """Refuse a checkpoint whose words have other numbers."""
        check_vocabulary(described["vocabulary"], self.vocabulary)

    def asked_clips(self, asked: PredictOptions) -> list[Clip]:
        """Return the clips `headway predict` wants read."""
        if not asked.clip:
            return list(self.dataset.clips[asked.split][: asked.samples])
        path = Path(asked.clip).expanduser()
        return [Clip(path, path.stem, (), count_frames(path))]

    def table(self, clips: Sequence[Clip], found: Sequence[Sequence[int]]) -> str:
        """Return what was read in each clip, with its label and the errors where there is a label."""
        rows = [
            (say("tfnet/column-clip"), say("tfnet/column-read"), say("tfnet/column-label"), say("tfnet/column-errors"))
        ]
        for clip, numbers in zip(clips, found, strict=True):
            words = self.vocabulary.decode(numbers)
            edits = count_edits(clip.words, words)
            errors = f"{edits.errors}/{edits.length}" if clip.words else ""
            rows.append((clip.number, " ".join(words) or "-", " ".join(clip.words), errors))
        widths = [max(_columns(row[place]) for row in rows) for place in range(3)]
        return "\n".join(
            "  ".join(
                [*(cell + " " * (width - _columns(cell)) for cell, width in zip(row, widths, strict=False)), row[3]]
            )
            for row in rows
        )


def _columns(text: str) -> int:
    """Return how many columns of a terminal a text takes: a Chinese character takes two."""
    return sum(2 if east_asian_width(letter) in "WF" else 1 for letter in text)
