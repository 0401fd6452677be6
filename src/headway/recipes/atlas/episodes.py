"""Episodes on disk, in the two formats there are: folders of PNGs, and LIBERO's HDF5 files.

    <data_dir>/<split>/episode_000000/images/workspace_000000.png      one per frame, or .jpg
                                     /images/wrist_000000.png          one per frame, when the camera is used
                                     /actions.parquet  or actions.csv  first 7 columns, one row per frame
                                     /language_task.txt  or metadata.json {"language_task": …}
    <data_dir>/**/*.hdf5             data/demo_0/actions, data/demo_0/obs/{agentview_rgb, eye_in_hand_rgb}

pillow, pyarrow and h5py are imported where they are used: a start on prepared data needs none of them.
"""

from __future__ import annotations

import csv
import functools
import json
import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from headway.errors import CheckError

Camera = Literal["workspace", "wrist"]
Image = npt.NDArray[np.uint8]
COLUMNS = ("dx", "dy", "dz", "droll", "dpitch", "dyaw", "gripper")
ACTION_DIM = len(COLUMNS)
# Named outright: "the first key with rgb in it" takes the wrist camera for the workspace when keys are sorted.
_HDF5_CAMERAS: dict[Camera, str] = {"workspace": "agentview_rgb", "wrist": "eye_in_hand_rgb"}
_TASK_KEYS = ("language_task", "task", "instruction", "text", "language")


@dataclass(frozen=True, slots=True, kw_only=True)
class Episode:
    """One demonstration."""

    path: str
    """Its folder, or the HDF5 file it is in, below the data folder."""
    demo: str | None
    """Its group in the HDF5 file."""
    split: str
    """Folder it was found in; HDF5 has none."""
    frames: int
    instruction: str

    @property
    def name(self) -> str:
        """What tells it from every other episode."""
        return f"{self.path}/{self.demo}" if self.demo else self.path


def list_files(data_dir: Path, splits: list[str]) -> list[Path]:
    """Return every file the episodes are read from, in order."""
    found = [file for split in splits for file in _walk(data_dir / split)]
    return sorted(found) or sorted(data_dir.rglob("*.hdf5"))


def _walk(folder: Path) -> Iterator[Path]:
    for place, _, names in os.walk(folder):
        yield from (Path(place) / name for name in names if not name.startswith("."))


def read_episodes(data_dir: Path, splits: list[str], cameras: list[Camera]) -> Iterator[tuple[Episode, Any]]:
    """Yield every episode with its actions (frames, 7); Any: numpy's float32."""
    folders = [(split, folder) for split in splits for folder in sorted((data_dir / split).glob("episode_*"))]
    for split, folder in folders:
        yield _read_folder(data_dir, folder, split, cameras)
    if not folders:
        for file in sorted(data_dir.rglob("*.hdf5")):
            yield from _read_hdf5(data_dir, file, cameras)


def read_image(data_dir: Path, episode: Episode, frame: int, camera: Camera, *, flip_hdf5: bool) -> Image:
    """Return one picture as bytes (height, width, 3)."""
    if episode.demo is not None:
        pixels: Image = _open_hdf5(data_dir / episode.path, os.getpid())[
            f"data/{episode.demo}/obs/{_HDF5_CAMERAS[camera]}"
        ][frame]
        return np.ascontiguousarray(pixels[::-1]) if flip_hdf5 else pixels
    from PIL import Image as Pillow

    files = list_frames(data_dir / episode.path / "images", camera)
    if frame >= len(files):
        raise CheckError("atlas/frames", folder=episode.path, camera=camera, have=len(files), rows=episode.frames)
    file = files[frame]
    try:
        with Pillow.open(file) as image:
            return np.asarray(image.convert("RGB"))
    except OSError as err:
        raise CheckError("atlas/bad-file", file=file, why=err) from err


def resize(pixels: Image, side: int) -> Image:
    """Return a picture as a square of a side, bicubic as the original does it."""
    if pixels.shape[:2] == (side, side):
        return pixels
    from PIL import Image as Pillow

    return np.asarray(Pillow.fromarray(pixels).resize((side, side), Pillow.Resampling.BICUBIC))


@functools.lru_cache(maxsize=4096)
def list_frames(folder: Path, camera: str) -> list[Path]:
    """Return a camera's pictures in the order of their numbers: `workspace_9.jpg` comes before `workspace_10.jpg`.

    Listed once per process: prepared episodes do not change.
    """
    found = [file for file in folder.glob(f"{camera}_*") if file.suffix.lower() in (".png", ".jpg", ".jpeg")]

    def number(file: Path) -> tuple[int, str]:
        digits = "".join(letter for letter in file.stem.removeprefix(f"{camera}_") if letter.isdigit())
        return int(digits or 0), file.name

    return sorted(found, key=number)


def _read_folder(data_dir: Path, folder: Path, split: str, cameras: list[Camera]) -> tuple[Episode, Any]:
    actions = _read_actions(folder)
    for camera in cameras:
        have = len(list_frames(folder / "images", camera))
        if have != len(actions):
            raise CheckError("atlas/frames", folder=folder, camera=camera, have=have, rows=len(actions))
    path = folder.relative_to(data_dir).as_posix()
    return Episode(path=path, demo=None, split=split, frames=len(actions), instruction=_read_task(folder)), actions


def _read_actions(folder: Path) -> npt.NDArray[np.float32]:
    parquet, text = folder / "actions.parquet", folder / "actions.csv"
    if parquet.is_file():
        rows = _read_parquet(parquet)
    elif text.is_file():
        rows = _read_csv(text)
    else:
        raise CheckError("atlas/no-actions", folder=folder)
    if rows.ndim != 2 or rows.shape[1] < ACTION_DIM or not len(rows):
        raise CheckError("atlas/bad-actions", file=folder, have=" × ".join(map(str, rows.shape)), want=ACTION_DIM)
    return _finite(rows[:, :ACTION_DIM], folder)


def _finite(rows: npt.NDArray[np.float32], place: Path) -> npt.NDArray[np.float32]:
    if not np.isfinite(rows).all():
        raise CheckError("atlas/not-finite", file=place, row=int(np.argwhere(~np.isfinite(rows))[0, 0]))
    return rows


def _read_parquet(file: Path) -> npt.NDArray[np.float32]:
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        with pq.ParquetFile(file) as opened:
            table = opened.read()
        return np.stack([np.asarray(column.to_numpy(), np.float32) for column in table.columns[:ACTION_DIM]], axis=1)
    except (pa.ArrowException, OSError, ValueError, TypeError) as err:
        raise CheckError("atlas/bad-file", file=file, why=str(err).splitlines()[0]) from err


def _read_csv(file: Path) -> npt.NDArray[np.float32]:
    try:
        with file.open(newline="", encoding="utf-8") as opened:
            rows = [row[:ACTION_DIM] for row in csv.reader(opened) if row]
        has_header = bool(rows) and not _is_number(rows[0][0])
        return np.array([[float(value) for value in row] for row in rows[has_header:]], np.float32)
    except (ValueError, csv.Error, UnicodeDecodeError) as err:
        raise CheckError("atlas/bad-file", file=file, why=err) from err


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


def _read_task(folder: Path) -> str:
    """Return the instruction. Without one nothing is made up: a model trained on a placeholder knows no language."""
    text, record = folder / "language_task.txt", folder / "metadata.json"
    found = ""
    if text.is_file():
        found = text.read_text(encoding="utf-8").strip()
    elif record.is_file():
        try:
            facts = json.loads(record.read_text(encoding="utf-8"))
        except ValueError as err:
            raise CheckError("atlas/bad-file", file=record, why=err) from err
        values = (facts.get(key) for key in _TASK_KEYS) if isinstance(facts, dict) else ()
        found = next((value.strip() for value in values if isinstance(value, str) and value.strip()), "")
    if not found:
        raise CheckError("atlas/no-instruction", folder=folder)
    return found


def _read_hdf5(data_dir: Path, file: Path, cameras: list[Camera]) -> Iterator[tuple[Episode, Any]]:
    opened = _open_hdf5(file, os.getpid())
    path = file.relative_to(data_dir).as_posix()
    try:
        group = opened["data"]
        instruction = _hdf5_task(group, file)
        for demo in sorted(group, key=lambda name: (len(name), name)):
            actions = np.asarray(group[demo]["actions"], np.float32)
            if actions.ndim != 2 or actions.shape[1] != ACTION_DIM or not len(actions):
                have = " × ".join(map(str, actions.shape))
                raise CheckError("atlas/bad-actions", file=file, have=have, want=ACTION_DIM)
            for camera in cameras:
                have_frames = len(group[demo]["obs"][_HDF5_CAMERAS[camera]])
                if have_frames != len(actions):
                    raise CheckError(
                        "atlas/frames", folder=f"{file}/{demo}", camera=camera, have=have_frames, rows=len(actions)
                    )
            episode = Episode(path=path, demo=demo, split="", frames=len(actions), instruction=instruction)
            yield episode, _finite(actions, file)
    except (KeyError, TypeError, AttributeError) as err:
        raise CheckError("atlas/bad-file", file=file, why=err) from err


def _hdf5_task(group: Any, file: Path) -> str:
    """Return the instruction of a LIBERO file: from its record, or from its name. Any: h5py has no types."""
    record = group.attrs.get("problem_info")
    if record is not None:
        said = json.loads(record).get("language_instruction", "")
        text = ("".join(said) if isinstance(said, list) else str(said)).strip().strip('"').strip()
        if text:
            return text
    return file.stem.removesuffix("_demo").replace("_", " ")


@functools.lru_cache(maxsize=64)
def _open_hdf5(file: Path, process: int) -> Any:
    """Return an open file; each process has its own, as a handle must not cross a fork. Any: h5py has no types."""
    try:
        import h5py
    except ModuleNotFoundError as err:
        raise CheckError("atlas/missing-library", package="h5py") from err
    try:
        return h5py.File(file, "r")
    except OSError as err:
        raise CheckError("atlas/bad-file", file=file, why=err) from err
