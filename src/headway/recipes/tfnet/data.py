"""CE-CSL on disk: what is there, whether it can be trained on, and its vocabulary. No framework is needed for this."""

from __future__ import annotations

import hashlib
import itertools
import json
import os
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

from headway.errors import CheckError
from headway.messages import say as line
from headway.recipes.tfnet.frames import count_frames, find_clip
from headway.recipes.tfnet.glosses import Vocabulary, make_vocabulary
from headway.recipes.tfnet.labels import SPLITS, clip_dir, data_dir, label_file, label_key, read_labels
from headway.recipes.tfnet.measure import rates, sum_errors
from headway.recipes.tfnet.section import TfnetSection
from headway.recipes.tfnet.synthetic import FOLDERS, MARK, write_synthetic
from headway.task import hold

Say = Callable[[str], None]
_NAMED = 10
"""Most clips a message names."""


@dataclass(frozen=True, slots=True)
class Clip:
    """A clip and its label."""

    path: Path
    number: str
    words: tuple[str, ...]
    frames: int


@dataclass(frozen=True, slots=True)
class Dataset:
    """All three splits, checked."""

    clips: Mapping[str, tuple[Clip, ...]]
    vocabulary: Vocabulary
    notes: tuple[str, ...]
    """Lines for the person who waits."""

    def fingerprint(self) -> str:
        """Hash of what is trained on: which clips, how long, with which words."""
        digest = hashlib.sha256(self.vocabulary.fingerprint.encode())
        for clip in self.clips["train"]:
            digest.update(f"\n{clip.number} {clip.frames} {'/'.join(clip.words)}".encode())
        return digest.hexdigest()[:20]


def least_frames(words: Sequence[str]) -> int:
    """Return the fewest frames of which CTC can read these words: four a label, and a blank between repeats."""
    repeats = sum(a == b for a, b in itertools.pairwise(words))
    # ceil(T / 4) >= labels + repeats
    return 4 * (len(words) + repeats) - 3


def prepare(section: TfnetSection, say: Say) -> None:
    """Make the synthetic set where it is wanted; check labels and clips, and tell what was found."""
    root = data_dir(section)
    # Labels that are named are somebody's own: where they are missing, that is an error.
    if section.synthetic and section.train_label_path is None and not label_file(section, "train").exists():
        with hold(root, say):
            _make_synthetic(root, label_file(section, "train"), say)
    if (root / MARK).exists() and not section.synthetic:
        raise CheckError("tfnet/only-synthetic", folder=root)
    _require_named(section)
    found = open_dataset(section)
    for note in found.notes:
        say(note)
    num = {split: len(clips) for split, clips in found.clips.items()}
    say(line("tfnet/found", words=len(found.vocabulary), **num))


def _require_named(section: TfnetSection) -> None:
    """Refuse label files that are named and missing: no synthetic set takes their place."""
    for split in SPLITS:
        file, key = label_file(section, split), label_key(split)
        if getattr(section, key) is not None and not file.is_file():
            raise CheckError("tfnet/no-named-labels", file=file, key=f"task.{key}")


def _make_synthetic(root: Path, labels: Path, say: Say) -> None:
    foreign = {path.name for path in (root / "label").glob("*")} - {f"{split}.csv" for split in SPLITS}
    is_own = (root / MARK).exists() and not foreign  # a file beside ours is somebody's
    if labels.exists() or (not is_own and any((root / name).exists() for name in FOLDERS)):
        return  # made while we waited for the lock; or clips without labels, which are never replaced
    say(line("tfnet/making", folder=root))
    (root / MARK).write_text(json.dumps({"schema": "tfnet-synthetic/1"}), encoding="utf-8")
    write_synthetic(root)


def count_train_samples(section: TfnetSection) -> int | None:
    """Return the clips of one epoch, or None where there is no data yet."""
    return len(open_dataset(section).clips["train"]) if label_file(section, "train").exists() else None


def baseline(section: TfnetSection) -> dict[str, float]:
    """Return what the best constant answer scores on dev: the likeliest words of training, in their usual order."""
    found = open_dataset(section)
    answers = _constant_answers([clip.words for clip in found.clips["train"]])
    references = [clip.words for clip in found.clips["dev"]]
    scored = [rates(sum_errors(references, [answer] * len(references))) for answer in answers]
    best = min(scored, key=lambda one: one["wer"])
    return {"constant_wer": best["wer"], "constant_wer_corpus": best["wer_corpus"]}


def _constant_answers(sentences: Sequence[Sequence[str]]) -> list[list[str]]:
    """Return the commonest last word, alone and behind one and two common words, the same for the same sentences."""
    # A tie is decided by the word: a set has another order in every process.
    held = sorted(
        Counter(word for words in sentences for word in set(words)).items(), key=lambda one: (-one[1], one[0])
    )
    lasts = sorted(Counter(words[-1] for words in sentences).items(), key=lambda one: (-one[1], one[0]))
    last = lasts[0][0]
    common = [word for word, _ in held[:4] if word != last]
    return [[*common[:num], last] for num in range(3)]


def open_dataset(section: TfnetSection) -> Dataset:
    """Return the checked data; asked again in one process, what was found before."""
    stamps = tuple(_stamp(label_file(section, split)) for split in SPLITS)
    return _open_dataset(section, stamps)


@lru_cache(maxsize=2)
def _open_dataset(section: TfnetSection, stamps: tuple[int, ...]) -> Dataset:
    labels = {split: read_labels(label_file(section, split), section.text_cleanup) for split in SPLITS}
    vocabulary = make_vocabulary((row.words for part in labels.values() for row in part.rows), section.text_cleanup)
    notes: list[str] = []
    clips: dict[str, tuple[Clip, ...]] = {}
    for split, part in labels.items():
        if part.short_lines:
            lines = ", ".join(map(str, part.short_lines[:_NAMED]))
            notes.append(
                line("tfnet/short-rows", file=label_file(section, split), num=len(part.short_lines), lines=lines)
            )
        folder = clip_dir(section, split)
        places = [(row, find_clip(folder, row.signer, row.number)) for row in part.rows]
        missing = [f"{row.signer}/{row.number}" for row, place in places if place is None]
        if missing:
            names = ", ".join(missing[:_NAMED])
            raise CheckError("tfnet/missing-clips", folder=folder, num=len(missing), total=len(places), names=names)
        clips[split] = tuple(
            Clip(place, row.number, row.words, count_frames(place)) for row, place in places if place is not None
        )
    unseen = {word for split in ("dev", "test") for clip in clips[split] for word in clip.words}
    unseen -= {word for clip in clips["train"] for word in clip.words}
    if unseen:
        notes.append(line("tfnet/unseen", num=len(unseen), words=" ".join(sorted(unseen)[:_NAMED])))
    clips["train"] = _without_short(section, clips["train"], notes)
    return Dataset(clips, vocabulary, tuple(notes))


def _without_short(section: TfnetSection, clips: tuple[Clip, ...], notes: list[str]) -> tuple[Clip, ...]:
    """Refuse or leave out clips that CTC cannot read: their loss is infinite at every step."""
    short = [clip for clip in clips if min(clip.frames, section.max_frames) < least_frames(clip.words)]
    if not short:
        return clips
    names = ", ".join(f"{clip.number} ({clip.frames} < {least_frames(clip.words)})" for clip in short[:_NAMED])
    facts = {"num": len(short), "total": len(clips), "names": names}
    if section.short_clips == "stop":
        raise CheckError("tfnet/short-clips", **facts)
    notes.append(line("tfnet/short-clips", **facts))
    bad = {clip.number for clip in short}
    return tuple(clip for clip in clips if clip.number not in bad)


def _stamp(path: Path) -> int:
    try:
        return os.stat(path).st_mtime_ns
    except OSError as err:
        raise CheckError("tfnet/no-labels", file=path, why=err.strerror or err) from err
