from __future__ import annotations

import os
import random
import shutil

import pytest

from fakes.disks import make_checkpoint
from headway.checkpoint import find_resumable, verify_checkpoint
from headway.checkpoint.manifest import encode_manifest
from headway.checkpoint.verify import verify_bytes
from headway.errors import CheckpointError


def refuse(path) -> CheckpointError:
    with pytest.raises(CheckpointError) as refused:
        verify_checkpoint(path)
    assert refused.value.text("en") and refused.value.text("zh")
    return refused.value


def flip(path, position: int, bit: int) -> None:
    data = bytearray(path.read_bytes())
    data[position] ^= 1 << bit
    path.write_bytes(data)


def test_a_good_checkpoint_verifies(tmp_path):
    path = make_checkpoint(tmp_path, 10)
    manifest = verify_checkpoint(path, is_fresh=True)
    assert (manifest.step, manifest.samples, manifest.world_size) == (10, 80, 2)
    assert manifest.total_bytes == sum(file.stat().st_size for file in path.glob("*.safetensors"))


def test_every_one_of_a_hundred_flipped_bits_is_found(tmp_path):
    path, chance = make_checkpoint(tmp_path, 10), random.Random(7)
    files = sorted(path.iterdir())
    assert len(files) == 4
    for number in range(100):
        file = files[number % 4]
        position, bit = chance.randrange(file.stat().st_size), chance.randrange(8)
        flip(file, position, bit)
        assert file.name in str(refuse(path).facts["path"]) or file.name == "manifest.b3"
        flip(file, position, bit)
    verify_checkpoint(path)


def test_every_byte_of_the_manifest_hash_is_guarded(tmp_path):
    path = make_checkpoint(tmp_path, 10, world_size=1)
    for position in range((path / "manifest.b3").stat().st_size):
        flip(path / "manifest.b3", position, position % 8)
        refuse(path)
        flip(path / "manifest.b3", position, position % 8)
    verify_checkpoint(path)


@pytest.mark.parametrize("name", ["rank-00000.safetensors", "rank-00001.safetensors", "manifest.json", "manifest.b3"])
def test_a_truncated_file_is_found(tmp_path, name):
    path = make_checkpoint(tmp_path, 10)
    whole = (path / name).read_bytes()
    for keep in (0, 1, 7, 8, len(whole) // 2, len(whole) - 1):
        (path / name).write_bytes(whole[:keep])
        refuse(path)
    (path / name).write_bytes(whole + b"\0")
    refuse(path)


def test_a_truncated_shard_is_told_with_both_sizes(tmp_path):
    path = make_checkpoint(tmp_path, 10)
    shard = path / "rank-00001.safetensors"
    size = shard.stat().st_size
    os.truncate(shard, size - 100)
    found = refuse(path)
    assert (found.code, found.facts["have"], found.facts["want"]) == ("checkpoint/wrong-size", size - 100, size)


def test_swapped_shards_are_told_by_rank(tmp_path):
    path = make_checkpoint(tmp_path, 10)
    first, second = path / "rank-00000.safetensors", path / "rank-00001.safetensors"
    first.rename(path / "x")
    second.rename(first)
    (path / "x").rename(second)
    found = refuse(path)
    assert found.code == "checkpoint/foreign-shard"
    assert (found.facts["have_rank"], found.facts["want_rank"]) == ("1", "0")


def test_a_shard_of_another_step_is_told_by_step(tmp_path):
    path, other = make_checkpoint(tmp_path, 10), make_checkpoint(tmp_path, 20)
    shutil.copy(other / "rank-00001.safetensors", path / "rank-00001.safetensors")
    found = refuse(path)
    assert found.code == "checkpoint/foreign-shard"
    assert (found.facts["have_step"], found.facts["want_step"]) == ("20", "10")


@pytest.mark.parametrize("name", ["rank-00000.safetensors", "manifest.json", "manifest.b3"])
def test_a_missing_file_is_named(tmp_path, name):
    path = make_checkpoint(tmp_path, 10)
    (path / name).unlink()
    found = refuse(path)
    assert found.code == "checkpoint/missing-file" and name in str(found.facts["path"])


def test_an_extra_file_is_named(tmp_path):
    path = make_checkpoint(tmp_path, 10)
    (path / "rank-00002.safetensors").write_bytes(b"x")
    assert refuse(path).code == "checkpoint/extra-file"


def test_a_folder_under_another_steps_name_is_refused(tmp_path):
    path = make_checkpoint(tmp_path, 10).rename(tmp_path / "step-00000030")
    found = refuse(path)
    assert (found.code, found.facts["have"], found.facts["want"]) == ("checkpoint/wrong-step", 10, 30)


def test_symlinks_are_never_followed(tmp_path):
    path = make_checkpoint(tmp_path / "real", 10)
    (tmp_path / "run").mkdir()
    (tmp_path / "run" / "step-00000010").symlink_to(path)
    assert refuse(tmp_path / "run" / "step-00000010").code == "checkpoint/not-a-file"
    shard = path / "rank-00000.safetensors"
    shard.rename(tmp_path / "away")
    shard.symlink_to(tmp_path / "away")
    assert refuse(path).code == "checkpoint/not-a-file"


def test_a_pipe_in_a_files_place_is_not_waited_for(tmp_path):
    path = make_checkpoint(tmp_path, 10)
    (path / "manifest.json").unlink()
    os.mkfifo(path / "manifest.json")
    assert refuse(path).code == "checkpoint/not-a-file"


def test_the_search_takes_the_newest_that_verifies_and_says_why_not_the_others(tmp_path):
    for step in (5, 10, 20, 100):
        make_checkpoint(tmp_path, step, world_size=1)
    flip(tmp_path / "step-00000100" / "rank-00000.safetensors", 500, 3)
    (tmp_path / "step-00000020" / "manifest.json").unlink()
    (tmp_path / "step-00000300.tmp-1").mkdir()
    found = find_resumable(tmp_path)
    assert found.path == tmp_path / "step-00000010" and found.manifest.step == 10
    assert [(path.name, err.code) for path, err in found.skipped] == [
        ("step-00000100", "checkpoint/wrong-hash"),
        ("step-00000020", "checkpoint/missing-file"),
    ]


def test_an_unreadable_sector_lets_an_older_one_be_used(tmp_path, monkeypatch):
    old, new = make_checkpoint(tmp_path, 10, world_size=1), make_checkpoint(tmp_path, 20, world_size=1)
    bad, real = os.stat(new / "rank-00000.safetensors").st_ino, os.preadv

    def preadv(fd, buffers, offset):
        if os.fstat(fd).st_ino == bad:
            raise OSError(5, "Input/output error")
        return real(fd, buffers, offset)

    monkeypatch.setattr(os, "preadv", preadv)
    found = find_resumable(tmp_path)
    assert found.path == old and found.skipped[0][1].code == "checkpoint/unreadable"


def test_a_folder_without_checkpoints_has_nothing_to_resume(tmp_path):
    assert find_resumable(tmp_path / "absent").path is None
    (tmp_path / "step-00000001.tmp-1").mkdir()
    assert find_resumable(tmp_path).manifest is None and not find_resumable(tmp_path).skipped


def test_bytes_alone_prove_a_checkpoint_whose_meaning_is_known(tmp_path):
    path = make_checkpoint(tmp_path, 10)
    manifest = verify_checkpoint(path)
    verify_bytes(path, manifest, encode_manifest(manifest))
    dice = random.Random(4)
    for name in sorted(os.listdir(path)) * 8:
        kept = (path / name).read_bytes()
        flip(path / name, dice.randrange(len(kept)), dice.randrange(8))
        with pytest.raises(CheckpointError):
            verify_bytes(path, manifest, encode_manifest(manifest))
        (path / name).write_bytes(kept)
    (path / "more").touch()
    with pytest.raises(CheckpointError):
        verify_bytes(path, manifest, encode_manifest(manifest))
