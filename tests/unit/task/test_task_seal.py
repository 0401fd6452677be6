"""Data that has changed since it was prepared is refused."""

from __future__ import annotations

import os

import pytest

from headway.config import load_config
from headway.errors import CheckError
from headway.recipes.nanochat.data import open_index, prepare
from headway.task import find_recipe, install, seal


def fill(folder):
    (folder / "small.bin").write_bytes(os.urandom(5000))
    (folder / "large.bin").write_bytes(os.urandom(3 * 1000))
    (folder / "empty.bin").touch()


def flip(path, at):
    """Change one bit and leave size and times as they were."""
    status = path.stat()
    content = bytearray(path.read_bytes())
    content[at] ^= 4
    path.write_bytes(content)
    os.utime(path, ns=(status.st_atime_ns, status.st_mtime_ns))


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.setattr(seal, "_BLOCK_BYTES", 100)
    seal._look_once.cache_clear()
    install(tmp_path / "ready", fill, seal=True)
    return tmp_path / "ready"


def test_what_is_as_it_was_passes(folder):
    seal.look_quickly(folder)
    assert seal.look_at_all(folder) == 8000


@pytest.mark.parametrize("at", [0, 2500, 4999])
def test_one_flipped_bit_is_found_and_its_place_is_told(folder, at):
    flip(folder / "small.bin", at)
    for look in (seal.look_quickly, seal.look_at_all):
        with pytest.raises(CheckError) as refused:
            look(folder)
        assert refused.value.code == "recipes/data-changed"
        assert refused.value.facts["offset"] == at // 100 * 100


def test_of_a_large_file_some_blocks_are_read_and_both_ends(folder, monkeypatch):
    monkeypatch.setattr(seal, "_QUICK_BYTES", 1000)
    flip(folder / "large.bin", 2999)
    with pytest.raises(CheckError):
        seal.look_quickly(folder)


def test_a_cut_file_and_a_torn_seal_are_told_apart(folder):
    os.truncate(folder / "large.bin", 2999)
    with pytest.raises(CheckError) as refused:
        seal.look_quickly(folder)
    assert refused.value.code == "recipes/data-size"
    (folder / "seal.json").write_text('{"files": {')
    with pytest.raises(CheckError) as refused:
        seal.look_at_all(folder)
    assert refused.value.code == "recipes/seal-unread"


def test_changed_tokens_are_refused_and_unsealed_ones_are_made_again(tmp_path):
    words = ["recipe=nanochat", f"task.data_dir={tmp_path}"]
    section = load_config(None, recipe=find_recipe, overrides=words, environ={}).config.task
    prepare(section, lambda _: None)
    place, before = open_index(section)
    flip(place / "val.bin", 77)
    seal._look_once.cache_clear()  # a new process
    with pytest.raises(CheckError) as refused:
        prepare(section, lambda _: None)
    assert refused.value.code == "recipes/data-changed" and str(place) in refused.value.hint()
    (place / "seal.json").unlink()
    prepare(section, lambda _: None)
    assert open_index(section)[1] == before
