"""CE-CSL's labels: `Number,Translator,Chinese Sentences,Gloss,Note`, one row a clip."""

from __future__ import annotations

import csv
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from headway.errors import CheckError
from headway.recipes.tfnet.glosses import split_glosses
from headway.recipes.tfnet.section import TfnetSection

SPLITS: Final = ("train", "dev", "test")
HEADER: Final = ("Number", "Translator", "Chinese Sentences", "Gloss", "Note")
_KEYS: Final = {"train": "train", "dev": "valid", "test": "test"}
"""A split's word in the guide's own keys."""


@dataclass(frozen=True, slots=True)
class Row:
    """One clip's label."""

    number: str
    signer: str
    words: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Labels:
    """One split's labels, and the lines that were too short to have one."""

    rows: tuple[Row, ...]
    short_lines: tuple[int, ...]


def label_file(section: TfnetSection, split: str) -> Path:
    """Return where a split's labels are."""
    given: str | None = getattr(section, label_key(split))
    return Path(given).expanduser() if given else data_dir(section) / "label" / f"{split}.csv"


def label_key(split: str) -> str:
    """Return the key of the section that names a split's labels."""
    return f"{_KEYS[split]}_label_path"


def clip_dir(section: TfnetSection, split: str) -> Path:
    """Return the folder above a split's clips."""
    given: str | None = getattr(section, f"{_KEYS[split]}_data_path")
    return Path(given).expanduser() if given else data_dir(section) / "video" / split


def data_dir(section: TfnetSection) -> Path:
    """Return the folder CE-CSL lies in."""
    return Path(section.data_dir).expanduser().absolute()


def read_labels(path: Path, cleanup: str) -> Labels:
    """Return a split's labels; short rows are noted, not fatal: the published train.csv ends in the middle of one."""
    try:
        text = path.read_text(encoding="utf-8-sig")
    except (OSError, UnicodeDecodeError) as err:
        raise CheckError("tfnet/no-labels", file=path, why=err) from err
    reader = csv.reader(text.splitlines())
    header = tuple(cell.strip() for cell in next(reader, []))
    if header[:4] != HEADER[:4]:
        raise CheckError("tfnet/bad-header", file=path, have=",".join(header)[:80], want=",".join(HEADER))
    rows, short = [], []
    for cells in reader:
        words = split_glosses(cells[3], cleanup) if len(cells) >= 4 else ()
        # A row cut inside its gloss has no Note cell; the words it has are not all of them.
        if len(cells) < len(HEADER) or not words:
            short.append(reader.line_num)
        else:
            rows.append(Row(cells[0].strip(), cells[1].strip(), words))
    if not rows:
        raise CheckError("tfnet/no-rows", file=path, lines=reader.line_num)
    return Labels(tuple(rows), tuple(short))
