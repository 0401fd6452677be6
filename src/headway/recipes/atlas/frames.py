"""Atlas' samples: one frame and its instruction each, as pictures and words or as what frozen encoders said of them."""

# B batch, S views, T text tokens

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from headway.recipes.atlas.data import Index, data_dir
from headway.recipes.atlas.episodes import ACTION_DIM, Camera, Episode, read_image, resize
from headway.recipes.atlas.section import AtlasSection
from headway.task import Ids


@dataclass(frozen=True, slots=True)
class Texts:
    """Every instruction of the data: its words, or its features."""

    values: Tensor
    """Words (U, T), or features (U, T, C)."""
    real: Tensor
    """(U, T)."""
    is_encoded: bool


class Frames:
    """Pictures and instructions of all frames, training ones first."""

    def __init__(self, section: AtlasSection, index: Index) -> None:
        self._section, self._base = section, data_dir(section)
        self._episodes = [Episode(**fields) for fields in (*index.train, *index.val)]
        self._starts = np.cumsum([0, *(episode.frames for episode in self._episodes)])
        self.instructions = sorted({episode.instruction for episode in self._episodes})
        places = {text: place for place, text in enumerate(self.instructions)}
        self._text_of = np.array([places[episode.instruction] for episode in self._episodes], np.int64)
        self._cameras: list[Camera] = ["workspace", "wrist"] if section.use_wrist_camera else ["workspace"]

    def __len__(self) -> int:
        return int(self._starts[-1])

    def episode_of(self, ids: Ids) -> Ids:
        """Return the number of the episode each frame is in."""
        return np.searchsorted(self._starts, ids, side="right") - 1

    def text_of(self, ids: Ids) -> Ids:
        """Return the number of each frame's instruction."""
        return self._text_of[self.episode_of(ids)]

    def look(self, ids: Ids) -> Tensor:
        """Return the pictures of frames as bytes (B, S, H, W, 3)."""
        return torch.from_numpy(np.stack([self._look_at(int(one)) for one in ids]))

    def _look_at(self, frame: int) -> np.ndarray:
        number = int(self.episode_of(np.array([frame]))[0])
        episode, inside = self._episodes[number], frame - int(self._starts[number])
        flip, side = self._section.flip_hdf5, self._section.image_size
        views = (read_image(self._base, episode, inside, camera, flip_hdf5=flip) for camera in self._cameras)
        return np.stack([resize(view, side) for view in views])


class FrameData:
    """One split, as batches."""

    def __init__(
        self,
        frames: Frames,
        span: range,
        *,
        folder: Path,
        texts: Texts,
        features: Mapping[str, np.memmap] | None,
        has_wrong_texts: bool = False,
    ) -> None:
        self._frames, self._span, self._texts, self._features = frames, span, texts, features
        self._actions = np.load(folder / "actions.npy", mmap_mode="r", allow_pickle=False)
        self._has_wrong_texts = has_wrong_texts and len(texts.values) > 1

    def __len__(self) -> int:
        return len(self._span)

    def batch(self, ids: Ids, epochs: Ids) -> dict[str, Tensor]:
        """Return frames with their actions; there is no augmentation, so epochs change nothing."""
        rows = np.asarray(ids, np.int64) + self._span.start
        text = self._frames.text_of(rows)
        out = {"action": torch.from_numpy(np.array(self._actions[rows]))}
        if self._features is None:
            out["images"] = self._frames.look(rows)
        else:
            out.update({name: torch.from_numpy(np.array(values[rows])) for name, values in self._features.items()})
        out.update(self.instruct(text))
        if self._has_wrong_texts:
            # The next one in the list of all: in the synthetic set always another colour.
            wrong = self.instruct((text + 1) % len(self._texts.values))
            out.update({f"wrong_{name}": value for name, value in wrong.items()})
        return out

    def instruct(self, numbers: Ids | Sequence[int]) -> dict[str, Tensor]:
        """Return instructions by their number."""
        places = torch.as_tensor(np.asarray(numbers, np.int64))
        name = "text" if self._texts.is_encoded else "words"
        return {name: self._texts.values[places], "real": self._texts.real[places]}


def make_example(section: AtlasSection, samples: int) -> dict[str, Tensor]:
    """Return a batch of zeros of the right shapes: a true one may cost hours of encoding."""
    views, side = section.num_views, section.image_size // section.point_stride
    length = section.lang_max_length
    out = {"action": torch.zeros(samples, ACTION_DIM), "real": torch.ones(samples, length, dtype=torch.bool)}
    if section.freeze_lang_encoder:
        out["text"] = torch.zeros(samples, length, section.lang_dim)
    else:
        out["words"] = torch.zeros(samples, length, dtype=torch.int64)
    if not (section.freeze_vggt and section.cache_features):
        shape = (samples, views, section.image_size, section.image_size, 3)
        return {**out, "images": torch.zeros(shape, dtype=torch.uint8)}
    tokens = torch.zeros(samples, views, 2 * section.vggt_width)
    points = torch.zeros(samples, views, side * side, 3)
    return {**out, "tokens": tokens, "points": points, "pose": torch.zeros(samples, views, 9)}
