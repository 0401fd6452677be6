"""The frozen encoders: pictures and sentences to tokens. Small built-in ones, or SigLIP and T5 when they are on disk.

They are not trained, not saved, and not part of the published parameter count.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import torch
import torch.nn.functional as F
from safetensors.torch import load_file
from torch import Tensor, nn

from headway.errors import CheckError
from headway.recipes.rdt.model import sines
from headway.recipes.rdt.section import RdtSection
from headway.task import build_on_cpu

BUILT_IN_VISION, BUILT_IN_TEXT = "patches", "words"
_PATCH = 8
"""Pixels of a patch's side, for the built-in encoder."""
_PRODUCTS = 6
"""Three colours times two coordinates."""
_SMALLEST = 16
"""Width of a token that has room for all this."""
_END = "</s>"
"""A word after every sentence, so that even an empty one has a token to look at."""


class PatchEncoder(nn.Module):
    """The built-in picture encoder: fixed, not trained. For each patch its coarse waves, as JPEG has them, its place,
    and its colour times its place.

    It is where SigLIP is in the published system, so it gives what a frozen encoder gives: tokens that tell
    content and place. It knows nothing of the tasks.
    """

    def __init__(self, size: RdtSection) -> None:
        super().__init__()
        self._grid = math.isqrt(size.img_patches)
        place = size.img_token_dim // 4
        content = size.img_token_dim - place - _PRODUCTS
        weight = np.zeros((content, 3 * _PATCH * _PATCH))
        waves = _waves()[: content // 3]
        for colour in range(3):
            weight[colour : 3 * len(waves) : 3, colour * _PATCH**2 : (colour + 1) * _PATCH**2] = waves
        rows, columns = np.divmod(np.arange(self._grid**2), self._grid)
        code = np.concatenate([sines(place // 4 * 2, at * 8.0) for at in (rows, columns)], axis=1)
        self.weight = _constant(weight)
        self.place = _constant(np.pad(code, ((0, 0), (0, place - code.shape[1]))))
        self.middle = _constant(np.stack([rows, columns], axis=1) * 2 / self._grid + 1 / self._grid - 1)

    def forward(self, images_NCHW: Tensor) -> Tensor:
        """Return (N, patches, width) of pictures with values from -1 to 1."""
        side = self._grid * _PATCH
        if images_NCHW.shape[-1] != side:
            images_NCHW = F.interpolate(images_NCHW, (side, side), mode="bilinear", antialias=True)
        cut = images_NCHW.to(self.weight.dtype).unflatten(2, (-1, _PATCH)).unflatten(4, (-1, _PATCH))
        waves = F.linear(cut.permute(0, 2, 4, 1, 3, 5).flatten(3).flatten(1, 2), self.weight)
        colours = waves[..., :3]
        # With these, where a colour lies in the whole picture is a plain sum over the patches.
        products = [colours * self.middle[:, axis, None] for axis in (0, 1)]
        return torch.cat([waves, *products, self.place.expand(len(waves), -1, -1)], dim=-1)


def _waves() -> np.ndarray:
    """Return the 64 cosine waves of a patch (DCT-II), orthonormal, the coarse ones first."""
    at = np.arange(_PATCH)
    one = np.cos(np.pi * (at[None] + 0.5) * at[:, None] / _PATCH) * np.sqrt(2 / _PATCH)
    one[0] /= np.sqrt(2)
    both = np.einsum("uy,vx->uvyx", one, one).reshape(_PATCH**2, -1)
    return both[np.argsort(at[:, None] + at[None], axis=None, kind="stable")]


def _constant(values: np.ndarray) -> nn.Parameter:
    """Return weights that are not trained; the device is the default one, so on the meta device they are a shape."""
    return nn.Parameter(torch.tensor(values, dtype=torch.float32), requires_grad=False)


class SiglipEncoder(nn.Module):
    """SigLIP's patch tokens, from a folder in the Hugging Face form."""

    def __init__(self, folder: Path) -> None:
        super().__init__()
        try:
            from transformers import SiglipVisionModel
        except ImportError as err:
            raise CheckError("rdt/missing-library", package="transformers") from err
        self.inner = SiglipVisionModel.from_pretrained(folder, local_files_only=True)
        self.inner.requires_grad_(False)
        self._side: int = self.inner.config.image_size

    def forward(self, images_NCHW: Tensor) -> Tensor:
        """Return (N, patches, width) of pictures with values from -1 to 1."""
        side = self._side
        pixels = F.interpolate(images_NCHW, (side, side), mode="bicubic", antialias=True).clamp(-1, 1)
        return self.inner(pixel_values=pixels.to(self.inner.dtype)).last_hidden_state.float()


def make_vision(section: RdtSection) -> nn.Module:
    """Return the picture encoder of a config, and check that its tokens are those the model expects."""
    if section.vision_encoder == BUILT_IN_VISION:
        width = max(_SMALLEST, section.img_token_dim)
        _check_tokens(section, patches=math.isqrt(section.img_patches) ** 2, width=width)
        return PatchEncoder(section)
    folder = Path(section.vision_encoder).expanduser()
    if not (folder / "config.json").is_file():
        raise CheckError("rdt/no-encoder", key="task.vision_encoder", folder=folder, built_in=BUILT_IN_VISION)
    encoder = build_on_cpu(lambda: SiglipEncoder(folder))
    sizes = encoder.inner.config
    _check_tokens(section, patches=(sizes.image_size // sizes.patch_size) ** 2, width=sizes.hidden_size)
    return encoder


def _check_tokens(section: RdtSection, *, patches: int, width: int) -> None:
    if (patches, width) != (section.img_patches, section.img_token_dim):
        want = {"want": section.img_patches, "want_width": section.img_token_dim}
        raise CheckError("rdt/picture-size", patches=patches, width=width, **want)


def encode_sentences(section: RdtSection, sentences: Sequence[str]) -> tuple[Tensor, Tensor]:
    """Return tokens (S, L, width) and their mask (S, L) of every sentence a run can meet; there are few."""
    if section.lang_embed is not None:
        tokens = _read_tokens(Path(section.lang_embed).expanduser(), sentences)
    elif section.text_encoder == BUILT_IN_TEXT:
        tokens = [_word_tokens(sentence, section.lang_token_dim) for sentence in sentences]
    else:
        tokens = _t5_tokens(Path(section.text_encoder).expanduser(), sentences)
    longest = max(len(one) for one in tokens)
    width = tokens[0].shape[-1]
    if longest > section.tokenizer_max_length or width != section.lang_token_dim:
        raise CheckError(
            "rdt/sentence-size",
            length=longest,
            width=width,
            max_length=section.tokenizer_max_length,
            max_width=section.lang_token_dim,
        )
    table = torch.zeros(len(tokens), longest, width, device="cpu")
    mask = torch.zeros(len(tokens), longest, dtype=torch.bool, device="cpu")
    for row, one in enumerate(tokens):
        table[row, : len(one)], mask[row, : len(one)] = one, True
    return table, mask


def _word_tokens(sentence: str, width: int) -> Tensor:
    """Return a fixed random vector for every word: the same word is the same vector on every machine."""
    rows = []
    for word in (*sentence.lower().split(), _END):
        seed = int.from_bytes(hashlib.sha256(word.encode()).digest()[:8], "little")
        rows.append(np.random.default_rng(seed).standard_normal(width))
    return torch.tensor(np.stack(rows), dtype=torch.float32, device="cpu")


def _read_tokens(file: Path, sentences: Sequence[str]) -> list[Tensor]:
    """Read sentences that were encoded beforehand: safetensors, one tensor (L, width) under each sentence."""
    try:
        found = load_file(file)
    except (OSError, ValueError) as err:
        raise CheckError("rdt/bad-file", file=file, why=err) from err
    missing = [repr(sentence) for sentence in sentences if sentence not in found]
    if missing:
        raise CheckError("rdt/no-sentence", file=file, missing=", ".join(missing))
    return [found[sentence].float() for sentence in sentences]


def _t5_tokens(folder: Path, sentences: Sequence[str]) -> list[Tensor]:
    """Encode with T5, once, and let it go: 4.7 billion weights are not kept beside the training."""
    if not (folder / "config.json").is_file():
        raise CheckError("rdt/no-encoder", key="task.text_encoder", folder=folder, built_in=BUILT_IN_TEXT)
    try:
        from transformers import AutoTokenizer, T5EncoderModel
    except ImportError as err:
        raise CheckError("rdt/missing-library", package="transformers") from err
    words = AutoTokenizer.from_pretrained(folder, local_files_only=True)
    # On the CPU whatever the run trains on: the few sentences are the same numbers everywhere, and no GPU holds it.
    with torch.no_grad(), torch.device("cpu"):
        model = T5EncoderModel.from_pretrained(folder, local_files_only=True, dtype=torch.bfloat16).eval()
        ids = [words(sentence, return_tensors="pt").input_ids for sentence in sentences]
        return [model(input_ids=one).last_hidden_state[0].float() for one in ids]
