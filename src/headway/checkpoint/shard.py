"""One rank's share of a checkpoint: what it holds in memory, its file, and the list of what it wrote."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path

from headway.checkpoint.disk import Disk, FileEntry, write_file
from headway.checkpoint.manifest import (
    MANIFEST_CAP,
    PieceEntry,
    TensorEntry,
    encode_tensors,
    parse_files,
    parse_tensors,
)
from headway.checkpoint.names import part_name, shard_name
from headway.weights.layout import Span, encode_header
from headway.weights.reading import open_folder, read_small
from headway.weights.strict import Reader, no_collection, parse_json


@dataclass(frozen=True, slots=True)
class Box:
    """A box of a global tensor and its key in the shard."""

    name: str
    shape: tuple[int, ...]
    offset: tuple[int, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Shard:
    """A rank's state on the host, already in the layout of its file."""

    boxes: Mapping[str, Box]
    """By key in the file."""
    spans: Mapping[str, Span]
    data: memoryview
    """The whole data section."""
    _listed: dict[str, Mapping[str, TensorEntry]] = field(default_factory=dict, repr=False, compare=False)

    @property
    def need_bytes(self) -> int:
        """Bytes of data; the header comes on top."""
        return len(self.data)

    def list_tensors(self, file: str) -> Mapping[str, TensorEntry]:
        """Return what a manifest says of the tensors in this file; made once, for a shard is saved again and again."""
        if file not in self._listed:
            found: dict[str, list[PieceEntry]] = {}
            for key, box in self.boxes.items():
                found.setdefault(box.name, []).append(PieceEntry(file, key, box.offset, self.spans[key].shape))
            first = {box.name: (self.spans[key].dtype, box.shape) for key, box in self.boxes.items()}
            self._listed[file] = {name: TensorEntry(*first[name], tuple(pieces)) for name, pieces in found.items()}
        return self._listed[file]


@dataclass(frozen=True, slots=True)
class Part:
    """What one rank wrote."""

    file: str
    entry: FileEntry
    tensors: Mapping[str, TensorEntry]


def box_key(name: str, offset: Sequence[int], *, is_whole: bool) -> str:
    """Return a box's key in its shard: the plain name when the box is the whole tensor."""
    return name if is_whole else f"{name}@{','.join(map(str, offset))}"


def write_shard(
    disk: Disk,
    folder: Path,
    shard: Shard,
    *,
    rank: int,
    marks: Mapping[str, str],
    keep_going: Callable[[], bool] = lambda: True,
    is_alone: bool = False,
) -> Part:
    """Write a rank's shard and then its part list, both durable; the part list says that the shard is.

    A rank that `is_alone` leaves the list out: there is nobody to tell.
    """
    file = shard_name(rank)
    header = encode_header(shard.spans, {**marks, "rank": str(rank)})
    entry = write_file(disk, folder / file, [memoryview(header), shard.data], keep_going=keep_going)
    part = Part(file, entry, shard.list_tensors(file))
    if is_alone:
        return part
    head = f'"file": {json.dumps(part.file)}, "entry": {json.dumps(asdict(entry))}'
    temp = folder / f"{part_name(rank)}.new"
    write_file(disk, temp, [memoryview(f'{{{head}, "tensors": {encode_tensors(part.tensors)}}}'.encode())])
    disk.rename(temp, folder / part_name(rank))
    return part


@no_collection()
def read_part(folder: Path, rank: int) -> Part:
    """Read what another rank says it wrote."""
    path = folder / part_name(rank)
    with open_folder(folder) as fd:
        data = read_small(fd, path.name, where=folder, cap=MANIFEST_CAP)
    reader = Reader(str(path))
    fields = reader.mapping(parse_json(data, where=str(path)), "part", ("file", "entry", "tensors"))
    file = reader.choice(fields["file"], "file", (shard_name(rank),))
    files = parse_files(reader, {file: fields["entry"]})
    return Part(file, files[file], parse_tensors(reader, fields["tensors"]))
