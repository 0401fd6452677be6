"""Clips as batches: augmentation, the padding that gives the length law, and labels. Plain arrays, any framework."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from headway.recipes.tfnet.data import Clip, least_frames
from headway.recipes.tfnet.frames import Frames, read_clip
from headway.recipes.tfnet.glosses import Vocabulary
from headway.recipes.tfnet.section import TfnetSection
from headway.task.order import mix_one

Ids = NDArray[np.int64]
Arrays = dict[str, NDArray[np.generic]]
_EDGE = 6
"""Frames added at both ends: what two convolutions of width 5 and two poolings eat away."""


def padded_length(frames: int) -> int:
    """Return the frames of a clip with its padding; the model makes ceil(frames / 4) outputs of them."""
    return 4 * -(-frames // 4) + 2 * _EDGE


class ClipData:
    """One split by index. A training clip is a pure function of (seed, index, epoch)."""

    def __init__(
        self, clips: Sequence[Clip], vocabulary: Vocabulary, section: TfnetSection, *, seed: int, is_train: bool
    ) -> None:
        self.clips = clips
        self._vocabulary, self._section, self._seed, self._is_train = vocabulary, section, seed, is_train
        self._most_labels = max(len(clip.words) for clip in clips)
        self._cache: dict[int, Frames] = {}
        self._room = section.cache_bytes

    def __len__(self) -> int:
        return len(self.clips)

    def arrays(self, ids: Ids, epochs: Ids) -> Arrays:
        """Return frames uint8 (B, T, 3, H, W), output lengths, labels padded by 0 and their lengths."""
        videos = [self._video(int(index), int(epoch)) for index, epoch in zip(ids, epochs, strict=True)]
        longest = max(padded_length(len(video)) for video in videos)
        longest = -(-longest // self._section.bucket) * self._section.bucket
        side = self._section.crop_size
        frames = np.empty((len(videos), longest, 3, side, side), np.uint8)
        labels = np.zeros((len(videos), self._most_labels), np.int64)
        label_lengths = np.zeros(len(videos), np.int64)
        for row, (index, video) in enumerate(zip(ids, videos, strict=True)):
            # Ends are padded by their own frame: black would look like a sign.
            places = np.clip(np.arange(longest) - _EDGE, 0, len(video) - 1)
            frames[row] = video[places].transpose(0, 3, 1, 2)
            numbers = self._vocabulary.encode(self.clips[int(index)].words)
            labels[row, : len(numbers)], label_lengths[row] = numbers, len(numbers)
        lengths = np.array([-(-len(video) // 4) for video in videos], np.int64)
        return {"frames": frames, "lengths": lengths, "labels": labels, "label_lengths": label_lengths}

    def longest(self, samples: int) -> Arrays:
        """Return blank clips of the most frames, with the most words."""
        section = self._section
        padded = -(-padded_length(section.max_frames) // section.bucket) * section.bucket
        return {
            "frames": np.zeros((samples, padded, 3, section.crop_size, section.crop_size), np.uint8),
            "lengths": np.full(samples, -(-section.max_frames // 4), np.int64),
            "labels": np.ones((samples, self._most_labels), np.int64),
            "label_lengths": np.full(samples, self._most_labels, np.int64),
        }

    def _video(self, index: int, epoch: int) -> Frames:
        section, whole = self._section, self._decoded(index)
        spare = section.frame_size - section.crop_size
        if not self._is_train:
            return whole[:, spare // 2 : spare // 2 + section.crop_size, spare // 2 : spare // 2 + section.crop_size]
        dice = np.random.default_rng(mix_one(self._seed, epoch, index))
        times = self._times(dice, len(whole), self.clips[index])
        top, left = (int(dice.integers(spare + 1)) for _ in range(2))
        video = whole[times, top : top + section.crop_size, left : left + section.crop_size]
        # One draw a clip: mirrored frame by frame, a clip flickers.
        return video[:, :, ::-1] if dice.random() < section.flip else video

    def _times(self, dice: np.random.Generator, have: int, clip: Clip) -> NDArray[np.int64]:
        """Return which frames a stretched or shrunk clip shows; never fewer than its labels need."""
        section = self._section
        factor = dice.uniform(1 - section.time_rescale, 1 + section.time_rescale)
        want = min(max(int(have * factor), section.min_frames), section.max_frames)
        want = max(4 * -(-want // 4), least_frames(clip.words)) if section.time_rescale else have
        if want <= have:
            return np.sort(dice.permutation(have)[:want])
        return np.sort(np.concatenate([np.arange(have), dice.integers(have, size=want - have)]))

    def _decoded(self, index: int) -> Frames:
        kept = self._cache.get(index)
        if kept is not None:
            return kept
        is_thinned = self._is_train or self._section.thin_eval
        most = self._section.max_frames if is_thinned else None
        frames = read_clip(self.clips[index].path, self._section.frame_size, most)
        if frames.nbytes <= self._room:
            self._cache[index] = frames
            self._room -= frames.nbytes
        return frames
