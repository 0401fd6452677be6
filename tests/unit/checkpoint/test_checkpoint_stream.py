"""Large files: past the page cache where that is possible, the same bytes and hash everywhere."""

from __future__ import annotations

import errno
import fcntl
import os
import random

import pytest
from blake3 import blake3

from headway.checkpoint.buffer import HostBuffer
from headway.checkpoint.disk import RealDisk, write_file
from headway.weights import stream
from headway.weights.stream import DIRECT_ALIGN, DirectWriter, hash_stream


class _Disk(RealDisk):
    """Notes which writes went past the page cache; may refuse these, or take less than it is given."""

    def __init__(self, *, refuses: bool = False, most: int = 1 << 30) -> None:
        self.direct: list[int] = []
        self._refuses, self._most = refuses, most

    def write(self, fd: int, data: memoryview) -> int:
        is_direct = bool(fcntl.fcntl(fd, fcntl.F_GETFL) & os.O_DIRECT)
        if is_direct and self._refuses:
            raise OSError(errno.EINVAL, os.strerror(errno.EINVAL))
        done = os.write(fd, data[: self._most])
        if is_direct:
            self.direct.append(done)
        return done


def _data(num_bytes: int) -> memoryview:
    data = HostBuffer(num_bytes).settle()
    data[:] = random.Random(num_bytes).randbytes(num_bytes)
    return data


@pytest.mark.parametrize("num_bytes", [0, 1, DIRECT_ALIGN - 1, DIRECT_ALIGN, 3 * DIRECT_ALIGN + 5, (1 << 20) + 4097])
@pytest.mark.parametrize("head", [0, 8, DIRECT_ALIGN])
def test_a_file_holds_what_was_written_whatever_its_size(tmp_path, num_bytes, head):
    data, disk = _data(num_bytes), _Disk()
    entry = write_file(disk, tmp_path / "x", [memoryview(b"h" * head), data])
    whole = b"h" * head + bytes(data)
    assert (tmp_path / "x").read_bytes() == whole
    assert (entry.bytes, entry.blake3) == (len(whole), blake3(whole).hexdigest())


def test_most_of_an_aligned_buffer_goes_past_the_page_cache_or_the_file_system_refuses(tmp_path):
    disk = _Disk()
    write_file(disk, tmp_path / "x", [memoryview(b"h" * DIRECT_ALIGN), _data(10 * DIRECT_ALIGN + 7)])
    assert disk.direct in ([10 * DIRECT_ALIGN], [])


@pytest.mark.parametrize("settings", [{"refuses": True}, {"most": 1000}, {"most": 2 * DIRECT_ALIGN}, {"most": 5000}])
def test_a_file_system_that_refuses_or_takes_little_still_gets_every_byte(tmp_path, settings):
    data = _data(9 * DIRECT_ALIGN + 1)
    entry = write_file(_Disk(**settings), tmp_path / "x", [data])
    assert (tmp_path / "x").read_bytes() == bytes(data)
    assert entry.blake3 == blake3(data).hexdigest()


def test_an_error_of_the_disk_is_not_taken_for_a_refusal(tmp_path):
    def write(fd: int, data: memoryview) -> int:
        raise OSError(errno.EIO, os.strerror(errno.EIO))

    fd = os.open(tmp_path / "x", os.O_WRONLY | os.O_CREAT)
    try:
        with pytest.raises(OSError) as failed:
            DirectWriter(fd, write).write(_data(2 * DIRECT_ALIGN))
    finally:
        os.close(fd)
    assert failed.value.errno == errno.EIO


def test_reading_ahead_hashes_in_order():
    data = random.Random(1).randbytes(100_003)

    def fill(at: int, into: memoryview) -> int:
        part = data[at : at + len(into)]
        into[: len(part)] = part
        return len(part)

    assert hash_stream(fill, chunk_bytes=1000, threads=1) == (len(data), blake3(data).hexdigest())


def test_touching_never_changes_what_was_copied():
    buffer = HostBuffer(100 << 20)
    buffer.warm_up(lambda part: part.__setitem__(0, 0))
    data = buffer.settle()
    data[:] = b"\1" * len(data)
    assert data[0] == data[64 << 20] == data[-1] == 1


def test_a_fault_of_the_hash_ends_the_reading_instead_of_holding_it_up_for_ever(monkeypatch):
    class Broken:
        def __init__(self, max_threads):
            pass

        def update(self, chunk):
            raise MemoryError

    monkeypatch.setattr(stream, "blake3", Broken)
    left = [1000] * 50
    with pytest.raises(MemoryError):
        hash_stream(lambda at, into: left.pop() if left else 0, chunk_bytes=1000, threads=1)
    assert not left


@pytest.mark.parametrize("size", [0, 1, 999, 1000])
def test_what_fits_one_chunk_is_hashed_without_a_thread(monkeypatch, size):
    """Issue 10: with no memory for a thread, `ckpt verify` of a small checkpoint waited forever for it to begin."""
    monkeypatch.setattr(stream, "SideHash", None)
    data = random.Random(2).randbytes(size)

    def fill(at: int, into: memoryview) -> int:
        part = data[at : at + len(into)]
        into[: len(part)] = part
        return len(part)

    assert hash_stream(fill, chunk_bytes=1000, threads=1) == (size, blake3(data).hexdigest())
