"""Clips on disk as arrays: a folder of numbered JPEG frames, or a video file."""

from __future__ import annotations

import importlib
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import numpy as np
from numpy.typing import NDArray

from headway.errors import CheckError

if TYPE_CHECKING:
    from PIL.Image import Image

Frames = NDArray[np.uint8]
"""frames, height, width, 3"""
VIDEOS: Final = (".mp4", ".avi", ".mov", ".mkv")


def find_clip(folder: Path, signer: str, number: str) -> Path | None:
    """Return the frames folder or video of a clip; frames first, because they need no decoder."""
    place = folder / signer / number
    if place.is_dir():
        return place
    return next((file for end in VIDEOS if (file := place.with_name(number + end)).is_file()), None)


def count_frames(clip: Path) -> int:
    """Return how many frames a clip has, without decoding them."""
    if clip.is_dir():
        return len(list_frames(clip))
    with _open_video(clip) as container:
        stream = container.streams.video[0]
        return int(stream.frames) or sum(1 for _ in container.decode(stream))


def list_frames(folder: Path) -> list[Path]:
    """Return a clip's frames in order."""
    return sorted(file for file in folder.iterdir() if file.suffix.lower() in (".jpg", ".jpeg", ".png"))


def read_clip(clip: Path, size: int, most: int | None) -> Frames:
    """Return the frames of a clip at one size; more than `most` are thinned before they are decoded; none: all."""
    if not clip.is_dir():
        return _read_video(clip, size, most)
    files = list_frames(clip)
    if not files:
        raise CheckError("tfnet/empty-clip", clip=clip)
    return np.stack([_read_image(files[at], size) for at in thin(len(files), most)])


def thin(have: int, most: int | None) -> NDArray[np.int64]:
    """Return which frames to keep."""
    if most is None or have <= most:
        return np.arange(have)
    return np.linspace(0, have - 1, most).round().astype(np.int64)


def _read_image(file: Path, size: int) -> Frames:
    from PIL import Image  # planning and reading a config need no pictures

    try:
        with Image.open(file) as image:
            return _fit(image, size)
    except OSError as err:  # an image that cannot be identified is one too
        raise CheckError("tfnet/bad-frame", file=file, why=err) from err


def _fit(image: Image, size: int) -> Frames:
    from PIL.Image import Resampling

    plain = image.convert("RGB")
    if plain.size != (size, size):
        plain = plain.resize((size, size), Resampling.BILINEAR)
    return np.asarray(plain, dtype=np.uint8)


def _read_video(clip: Path, size: int, most: int | None) -> Frames:
    with _open_video(clip) as container:
        frames = [_fit(frame.to_image(), size) for frame in container.decode(video=0)]
    if not frames:
        raise CheckError("tfnet/empty-clip", clip=clip)
    return np.stack([frames[at] for at in thin(len(frames), most)])


def _open_video(clip: Path) -> Any:  # PyAV has no stubs
    try:
        av = importlib.import_module("av")
    except ModuleNotFoundError as err:
        raise CheckError("tfnet/no-decoder", clip=clip) from err
    try:
        return av.open(str(clip))
    except (OSError, ValueError) as err:
        raise CheckError("tfnet/bad-frame", file=clip, why=err) from err
