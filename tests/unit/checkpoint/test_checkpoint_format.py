from __future__ import annotations

import hashlib
import json
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from safetensors import safe_open

from fakes.disks import make_checkpoint, make_shard
from headway.checkpoint import read_manifest, verify_checkpoint
from headway.checkpoint.manifest import encode_manifest, parse_manifest
from headway.checkpoint.names import FinalName, TempName, parse_final, parse_shard, parse_temp
from headway.errors import CheckpointError
from headway.weights.layout import ITEM_BYTES, encode_header, lay_out, num_bytes, parse_header

_SHAPES = st.lists(st.integers(0, 5), max_size=3).map(tuple)


def test_importing_the_stage_does_not_import_torch():
    code = "import sys, headway.checkpoint, headway.checkpoint.writer; sys.exit('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_the_safetensors_library_reads_our_shards(tmp_path):
    path = make_checkpoint(tmp_path, 10)
    with safe_open(path / "rank-00001.safetensors", "np") as file:
        assert sorted(file.keys()) == ["model/w@32,0", "optim/w/m@32,0"]
        assert file.metadata()["step"] == "10" and file.metadata()["rank"] == "1"
        assert file.get_tensor("model/w@32,0").shape == (32, 16)


@given(
    st.dictionaries(
        st.text(st.characters(categories=("L", "N")), min_size=1),
        st.tuples(st.sampled_from(sorted(ITEM_BYTES)), _SHAPES),
    )
)
def test_a_header_is_read_back_as_written_and_items_are_aligned(tensors):
    spans = lay_out(tensors)
    header = encode_header(spans, {"step": "1"})
    assert len(header) % 8 == 0
    assert all(span.start % ITEM_BYTES[span.dtype] == 0 for span in spans.values())
    total = sum(num_bytes(*tensor) for tensor in tensors.values())
    found = parse_header(header, where="x", file_bytes=len(header) + total)
    assert dict(found.spans) == spans and found.metadata == {"step": "1"}


def test_a_manifest_is_read_back_as_written(tmp_path):
    manifest = verify_checkpoint(
        make_checkpoint(
            tmp_path, 10, measures={"bpb": float("nan"), "acc": 0.5}, meta={"best": float("-inf"), "b": [1]}
        )
    )
    again = parse_manifest(encode_manifest(manifest), where="x")
    assert encode_manifest(again) == encode_manifest(manifest)
    assert again.meta == {"best": float("-inf"), "b": [1]} and str(again.measures["bpb"]) == "nan"
    assert json.loads(encode_manifest(manifest))["schema"] == "checkpoint/1"


def test_reading_only_the_manifest_still_proves_it(tmp_path):
    path = make_checkpoint(tmp_path, 10)
    (path / "rank-00000.safetensors").unlink()
    assert read_manifest(path).step == 10
    (path / "manifest.json").write_bytes((path / "manifest.json").read_bytes() + b" ")
    with pytest.raises(CheckpointError) as refused:
        read_manifest(path)
    assert refused.value.code == "checkpoint/wrong-hash"


def test_one_step_has_one_name():
    assert parse_final("step-00001000") == FinalName(1000)
    assert parse_final("step-00001000.r2") == FinalName(1000, 2)
    assert parse_temp("step-00001000.tmp-3.1") == TempName(1000, 3, 1)
    others = ("step-1000", "step-0000001000", "step-00001000.tmp-3", "step-00001000 ", "step-00001000\n", "latest")
    assert [parse_final(name) for name in others] == [None] * len(others)
    assert parse_shard("../rank-00000.safetensors") is None and parse_shard("rank-00007.safetensors") == 7


def test_the_same_state_gives_the_same_shard_bytes(tmp_path):
    digests = set()
    for name in ("a", "b"):
        (tmp_path / name).mkdir()
        path = make_checkpoint(tmp_path / name, 10, world_size=1)
        digests.add(hashlib.sha256(Path(path / "rank-00000.safetensors").read_bytes()).hexdigest())
    assert len(digests) == 1 and make_shard({}, 0).need_bytes == 0


@pytest.mark.parametrize("gib", [0.7, 0.9, 2.5, 5, 700])
def test_header_of_a_file_of_any_real_size_is_read_back(gib):
    """Issue 19.0: the offsets of one tensor were multiplied, and refused from 759 MB on."""
    rows = int(gib * (1 << 30)) // (4 * 1024) // 2
    spans = lay_out({f"model/{name}": ("F32", (rows, 1024)) for name in ("a", "b")})
    header = encode_header(spans, {"format": "pt"})
    size = len(header) + spans["model/b"].end
    assert parse_header(header, where="big", file_bytes=size).spans == spans


@pytest.mark.parametrize("offsets", [[0], [0, 4, 8], [4, 0], [0, 1 << 63], [-4, 0], [0.0, 4.0], [True, 4]])
def test_offsets_that_are_not_two_places_are_refused(offsets):
    text = json.dumps({"a": {"dtype": "F32", "shape": [1], "data_offsets": offsets}}).encode()
    with pytest.raises(CheckpointError):
        parse_header(len(text).to_bytes(8, "little") + text, where="odd", file_bytes=len(text) + 12)
