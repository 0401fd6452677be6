"""Checkpoints made to harm: their hashes are right, so only the strict reading is in the way."""

from __future__ import annotations

import gc
import json
import struct
import tracemalloc

import pytest
from blake3 import blake3

from fakes.disks import make_checkpoint
from headway.checkpoint import verify_checkpoint
from headway.checkpoint.verify import hash_line
from headway.errors import CheckpointError


def refuse(path) -> str:
    with pytest.raises(CheckpointError) as refused:
        verify_checkpoint(path)
    assert len(refused.value.text("en")) < 1000 and len(refused.value.text("zh")) < 1000
    return refused.value.code


def reseal(path, data: bytes) -> None:
    (path / "manifest.json").write_bytes(data)
    (path / "manifest.b3").write_bytes(hash_line(data))


def edit(path, change) -> None:
    fields = json.loads((path / "manifest.json").read_bytes())
    change(fields)
    reseal(path, json.dumps(fields).encode())


def test_the_collector_of_garbage_is_as_it_was_after_reading_and_after_a_refusal(tmp_path):
    path = make_checkpoint(tmp_path, 10)
    verify_checkpoint(path)
    assert gc.isenabled()
    edit(path, lambda fields: fields.update(step=-1))
    refuse(path)
    assert gc.isenabled()
    gc.disable()
    try:
        refuse(path)
        assert not gc.isenabled()
    finally:
        gc.enable()


def swap_shard(path, data: bytes, name: str = "rank-00000.safetensors") -> None:
    (path / name).write_bytes(data)
    entry = {"bytes": len(data), "blake3": blake3(data).hexdigest()}
    edit(path, lambda fields: fields["files"].update({name: entry}))


def header(fields: object, data: bytes = b"") -> bytes:
    text = json.dumps(fields).encode()
    return struct.pack("<Q", len(text)) + text + data


def piece(fields) -> dict:
    return fields["tensors"]["model/w"]["pieces"][0]


def test_the_tools_of_this_file_make_good_checkpoints_too(tmp_path):
    path = make_checkpoint(tmp_path, 10)
    edit(path, lambda fields: fields.update(samples=81))
    assert verify_checkpoint(path).samples == 81


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"{}",
        b"[]",
        b"null",
        b'{"schema": "checkpoint/2"}',
        b"[" * 200_000,
        b'{"a":' * 200_000,
        b'{"schema": ' + b"9" * 10_000 + b"}",
        b'{"a": 1, "a": 2}',
        b'{"a": NaN}',
        b"\xff\xfe{}",
        b'"' + b"x" * 1_000_000 + b'"',
    ],
    ids=["empty", "object", "list", "null", "schema", "deep", "deeper", "digits", "twice", "nan", "utf16", "text"],
)
def test_a_manifest_of_another_form_is_refused(tmp_path, data):
    path = make_checkpoint(tmp_path, 10)
    reseal(path, data)
    assert refuse(path) in ("checkpoint/not-json", "checkpoint/form")


def test_a_manifest_of_100_megabytes_is_refused_before_it_is_read(tmp_path):
    path = make_checkpoint(tmp_path, 10)
    with (path / "manifest.json").open("wb") as file:
        file.truncate(100_000_000)
    tracemalloc.start()
    assert refuse(path) == "checkpoint/manifest-large"
    assert tracemalloc.get_traced_memory()[1] < 5_000_000
    tracemalloc.stop()


@pytest.mark.parametrize(
    ("change", "code"),
    [
        (lambda f: f.update(step=-1), "form"),
        (lambda f: f.update(step=True), "form"),
        (lambda f: f.update(step=1 << 200), "form"),
        (lambda f: f.update(step=1.0), "form"),
        (lambda f: f.update(extra=1), "form"),
        (lambda f: f.pop("ledger"), "form"),
        (lambda f: f.update(ledger="\x1b[2J"), "form"),
        (lambda f: f.update(meta=[]), "form"),
        (lambda f: f.update(suspect=0), "form"),
        (lambda f: f["files"].update({"../../evil": {"bytes": 1, "blake3": "0" * 64}}), "form"),
        (lambda f: f["files"].update({"/etc/passwd": {"bytes": 1, "blake3": "0" * 64}}), "form"),
        (lambda f: f["files"].update({"rank-00009.safetensors": {"bytes": 1, "blake3": "0" * 64}}), "missing-file"),
        (lambda f: f["files"]["rank-00000.safetensors"].update(blake3="0" * 63 + "G"), "form"),
        (lambda f: f["files"]["rank-00000.safetensors"].update(bytes=1 << 62), "wrong-size"),
        (lambda f: f["files"].pop("rank-00000.safetensors"), "piece-file"),
        (lambda f: f["tensors"].pop("model/w"), "unlisted"),
        (lambda f: f["tensors"]["model/w"].update(dtype="PICKLE"), "form"),
        (lambda f: f["tensors"]["model/w"].update(dtype="I32"), "piece-differs"),
        (lambda f: f["tensors"]["model/w"].update(shape=[65, 16]), "not-covered"),
        (lambda f: f["tensors"]["model/w"].update(shape=[1 << 40, 1 << 40]), "form"),
        (lambda f: f["tensors"]["model/w"].update(pieces=[]), "not-covered"),
        (lambda f: f["tensors"]["model/w"]["pieces"].pop(), "not-covered"),
        (lambda f: f["tensors"]["model/w"]["pieces"].append(piece(f)), "piece-twice"),
        (lambda f: piece(f).update(offset=[-1, 0]), "form"),
        (lambda f: piece(f).update(offset=[1 << 62, 0]), "piece-outside"),
        (lambda f: piece(f).update(offset=[0]), "piece-outside"),
        (lambda f: piece(f).update(offset=[16, 0]), "pieces-overlap"),
        (lambda f: piece(f).update(file="../rank-00000.safetensors"), "piece-file"),
        (lambda f: piece(f).update(key="optim/w/m@32,0"), "piece-differs"),
    ],
)
def test_a_manifest_that_lies_is_refused(tmp_path, change, code):
    path = make_checkpoint(tmp_path, 10)
    edit(path, change)
    assert refuse(path) == f"checkpoint/{code}"


@pytest.mark.parametrize(
    ("data", "code"),
    [
        (b"", "header-short"),
        (b"1234567", "header-short"),
        (struct.pack("<Q", 1 << 63) + b"{}", "header-large"),
        (struct.pack("<Q", 3) + b"{}", "header-large"),
        (header([]), "form"),
        (header({"a": {"dtype": "F32", "shape": [2], "data_offsets": [0, 8]}}), "wrong-size"),
        (header({"a": {"dtype": "F32", "shape": [2], "data_offsets": [8, 0]}}, b"x" * 8), "form"),
        (header({"a": {"dtype": "F32", "shape": [2], "data_offsets": [0, 4]}}, b"x" * 4), "form"),
        (header({"a": {"dtype": "F32", "shape": [-2], "data_offsets": [0, 8]}}, b"x" * 8), "form"),
        (header({"a": {"dtype": "U8", "shape": [2], "data_offsets": [2, 4]}}, b"x" * 4), "header-offsets"),
        (
            header({k: {"dtype": "U8", "shape": [4], "data_offsets": [0, 4]} for k in "ab"}, b"x" * 4),
            "header-offsets",
        ),
        (header({"__metadata__": {"a": {}}}), "form"),
        (header({}), "piece-differs"),
    ],
)
def test_a_shard_whose_header_lies_is_refused(tmp_path, data, code):
    path = make_checkpoint(tmp_path, 10)
    swap_shard(path, data)
    assert refuse(path) == f"checkpoint/{code}"


def test_a_header_that_fills_its_whole_cap_is_refused(tmp_path):
    path = make_checkpoint(tmp_path, 10)
    with (path / "rank-00000.safetensors").open("wb") as file:
        file.write(struct.pack("<Q", 100 << 20))
        file.truncate(101 << 20)
    data = (path / "rank-00000.safetensors").read_bytes()
    swap_shard(path, data)
    assert refuse(path) == "checkpoint/header-large"


def test_a_tensor_in_dust_is_refused(tmp_path):
    path = make_checkpoint(tmp_path, 10)
    side = 14

    def shatter(fields) -> None:
        places = [(a, b, c, d) for a in range(side) for b in range(side) for c in range(side) for d in range(side)]
        fields["tensors"]["model/w"] = {
            "dtype": "U8",
            "shape": [side] * 4,
            "pieces": [
                {"file": "rank-00000.safetensors", "key": f"k{n}", "offset": list(at), "shape": [1, 1, 1, 1]}
                for n, at in enumerate(places)
            ],
        }

    edit(path, shatter)
    assert refuse(path) == "checkpoint/too-many-pieces"
