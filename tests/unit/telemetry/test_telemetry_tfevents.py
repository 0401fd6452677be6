"""Event files: what we write TensorBoard reads, what others write we read, and damage ends nothing but the file."""

from __future__ import annotations

import os
import random
import struct
from pathlib import Path

import pytest

from headway.telemetry.tfevents import (
    ScalarFile,
    crc_table,
    encode_first,
    encode_scalars,
    field_bytes,
    field_double,
    field_int,
    frame,
    varint,
)


def write(path: Path, num: int = 3) -> bytes:
    data = encode_first(1.0) + b"".join(
        encode_scalars(step, 5.0 + step, {"a/loss": 1 / step}) for step in range(1, num + 1)
    )
    path.write_bytes(data)
    return data


def test_tensorboard_reads_what_we_write(tmp_path: Path) -> None:
    reader = pytest.importorskip("tensorboard.backend.event_processing.event_accumulator")
    write(tmp_path / "events.out.tfevents.1", 4)
    found = reader.EventAccumulator(str(tmp_path))
    found.Reload()
    assert [(one.step, one.wall_time, round(one.value, 4)) for one in found.Scalars("a/loss")] == [
        (1, 6.0, 1.0),
        (2, 7.0, 0.5),
        (3, 8.0, 0.3333),
        (4, 9.0, 0.25),
    ]


def test_we_read_what_torchs_writer_writes(tmp_path: Path) -> None:
    writing = pytest.importorskip("torch.utils.tensorboard")
    with writing.SummaryWriter(tmp_path, flush_secs=1) as writer:
        writer.add_scalar("train/loss", 0.5, 7)
        writer.add_scalar("train/loss", 0.25, 8, new_style=True)
        writer.add_text("note", "words")
    (path,) = tmp_path.iterdir()
    assert [(one.tag, one.step, one.value) for one in ScalarFile(path).read()] == [
        ("train/loss", 7, 0.5),
        ("train/loss", 8, 0.25),
    ]


def test_a_growing_file_is_read_bit_by_bit(tmp_path: Path) -> None:
    path = tmp_path / "events"
    data = write(path)
    path.write_bytes(b"")
    file, seen = ScalarFile(path), []
    for end in range(0, len(data) + 1, 7):
        path.write_bytes(data[:end])
        seen += [one.step for one in file.read()]
    path.write_bytes(data)
    assert [*seen, *(one.step for one in file.read())] == [1, 2, 3] and not file.is_damaged


def tensor(kind: int, field: int, content: bytes) -> bytes:
    value = field_bytes(1, b"t") + field_bytes(8, field_int(1, kind) + field_bytes(field, content))
    return frame(field_double(1, 1.0) + field_int(2, 3) + field_bytes(5, field_bytes(1, value)), crc_table())


@pytest.mark.parametrize(
    ("kind", "field", "content", "wanted"),
    [
        (1, 4, struct.pack("<f", 2.5), [2.5]),
        (1, 5, struct.pack("<f", 2.5), [2.5]),
        (2, 6, struct.pack("<d", 2.5), [2.5]),
        (1, 4, struct.pack("<2f", 1, 2), []),
        (7, 8, b"words", []),
    ],
)
def test_tensors_of_one_number_are_scalars(
    tmp_path: Path, kind: int, field: int, content: bytes, wanted: list[float]
) -> None:
    path = tmp_path / "events"
    path.write_bytes(encode_first(1.0) + tensor(kind, field, content))
    assert [one.value for one in ScalarFile(path).read()] == wanted


def test_damage_ends_the_reading_of_a_file(tmp_path: Path) -> None:
    path = tmp_path / "events"
    data = bytearray(write(path))
    data[-6] ^= 1
    path.write_bytes(data)
    file = ScalarFile(path)
    assert [one.step for one in file.read()] == [1, 2] and file.is_damaged and file.read() == []


def test_a_length_beyond_all_reason_is_damage(tmp_path: Path) -> None:
    path = tmp_path / "events"
    length = struct.pack("<Q", 1 << 60)
    path.write_bytes(length + frame(b"", crc_table())[8:12] + bytes(100))
    file = ScalarFile(path)
    assert file.read() == [] and file.is_damaged


def test_nothing_in_a_file_makes_the_reader_fail(tmp_path: Path) -> None:
    chance = random.Random(7)
    path = tmp_path / "events"
    for _ in range(300):
        noise = bytes(chance.randrange(256) for _ in range(chance.randrange(60)))
        body = chance.choice(
            [noise, field_bytes(5, field_bytes(1, noise)), varint(5 << 3 | 2) + varint(1 << 40) + noise]
        )
        path.write_bytes(frame(body, crc_table()))
        assert all(one.step >= 0 for one in ScalarFile(path).read())


def test_what_is_no_file_is_not_read(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    assert ScalarFile(tmp_path / "pipe").read() == [] and ScalarFile(tmp_path / "none").read() == []
