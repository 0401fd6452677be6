import sys
import threading
import types

import numpy as np
import pytest
import torch
from safetensors.torch import save_file
from torch import nn

from fakes.atlas_set import toy_section, toy_task, write_toy
from headway.errors import CheckError
from headway.recipes.atlas import features, find
from headway.recipes.atlas.data import prepare
from headway.recipes.atlas.encoders import build_language, build_vision, is_frozen
from headway.recipes.atlas.features import make_features, open_features
from headway.recipes.atlas.model import see


@pytest.fixture(scope="module")
def toy(tmp_path_factory):
    folder = tmp_path_factory.mktemp("atlas")
    write_toy(folder)
    return folder


def _weights(section, file, **changes):
    state = {name: value.clone() for name, value in build_vision(section).state_dict().items()}
    save_file({**state, **changes}, str(file))
    return state


def test_weights_on_disk_are_used_and_unused_ones_left_alone(toy, tmp_path):
    section = toy_section(toy)
    gamma = torch.full((16,), 0.7)
    state = _weights(section, tmp_path / "model.safetensors", **{"track_head.x": torch.ones(3)})
    state["aggregator.frame_blocks.0.ls1.gamma"] = gamma
    save_file({**state, "track_head.x": torch.ones(3)}, str(tmp_path / "model.safetensors"))
    for place in (tmp_path, tmp_path / "model.safetensors"):
        vision = build_vision(toy_section(toy, vggt_checkpoint=str(place), builtin_encoders=False))
        assert torch.equal(vision.aggregator.frame_blocks[0].ls1.gamma, gamma) and is_frozen(vision)
    image = torch.zeros(1, 2, 32, 32, 3, dtype=torch.uint8)
    assert see(vision, image, 8)["tokens"].shape == (1, 2, 32)


def test_weights_of_another_size_are_refused(toy, tmp_path):
    _weights(toy_section(toy), tmp_path / "model.safetensors")
    with pytest.raises(CheckError) as refused:
        build_vision(toy_section(toy, vggt_checkpoint=str(tmp_path), vggt_width=32))
    assert refused.value.code == "atlas/other-weights"
    with pytest.raises(CheckError) as refused:
        build_vision(toy_section(toy, vggt_checkpoint=str(tmp_path), vggt_depth=3))
    assert refused.value.facts["have"] < refused.value.facts["want"]


def test_a_pickle_is_not_read(toy, tmp_path):
    (tmp_path / "model.pt").write_bytes(b"\x80\x04.")
    for place in (tmp_path, tmp_path / "model.pt"):
        with pytest.raises(CheckError) as refused:
            build_vision(toy_section(toy, vggt_checkpoint=str(place)))
        assert refused.value.code == "atlas/not-safetensors"


def test_a_stand_in_is_said_and_never_taken_unasked(toy, monkeypatch, tmp_path):
    monkeypatch.setattr(find, "_HUB", tmp_path)
    lines = []
    prepare(toy_section(toy, vggt_checkpoint="facebook/VGGT-1B"), lines.append)
    assert any("facebook/VGGT-1B" in line and "task.vggt_checkpoint" in line for line in lines)
    with pytest.raises(CheckError) as refused:
        prepare(toy_section(toy, vggt_checkpoint="facebook/VGGT-1B", builtin_encoders=False), lines.append)
    assert refused.value.code == "atlas/no-weights"


def test_a_hub_name_is_found_in_the_hubs_own_cache(toy, monkeypatch, tmp_path):
    monkeypatch.setattr(find, "_HUB", tmp_path)
    snapshot = tmp_path / "models--facebook--VGGT-1B" / "snapshots" / "abc"
    snapshot.mkdir(parents=True)
    found = find.find_vggt(toy_section(toy, vggt_checkpoint="facebook/VGGT-1B"))
    assert (found.path, found.stands_in_for) == (snapshot, None)


def test_without_transformers_the_missing_package_is_named(toy, monkeypatch, tmp_path):
    monkeypatch.setitem(sys.modules, "transformers", None)
    with pytest.raises(CheckError) as refused:
        build_language(toy_section(toy, lang_encoder_name=str(tmp_path)))
    assert refused.value.code == "atlas/no-transformers" and "pip install transformers" in refused.value.hint()


class _Hub(types.ModuleType):
    """Stands in for transformers: as much of it as is used, and what it was asked for."""

    def __init__(self):
        super().__init__("transformers")
        self.asked = {}
        hub = self

        class AutoTokenizer:
            pad_token_id, eos_token_id = None, 9

            @classmethod
            def from_pretrained(cls, folder, **options):
                hub.asked["tokenizer"] = (folder, options)
                return cls()

            def __call__(self, text, *, truncation, max_length):
                return {"input_ids": [len(word) for word in text.split()][:max_length]}

        class Inner(nn.Module):
            def __init__(self):
                super().__init__()
                self.config = types.SimpleNamespace(hidden_size=12)
                self.words = nn.Embedding(20, 12)

            def forward(self, *, input_ids, attention_mask):
                assert attention_mask.dtype == torch.int64
                return types.SimpleNamespace(last_hidden_state=self.words(input_ids).half())

        class AutoModel:
            @staticmethod
            def from_pretrained(folder, **options):
                hub.asked["model"] = (folder, options)
                return Inner()

        self.AutoTokenizer, self.AutoModel = AutoTokenizer, AutoModel


def test_a_transformer_on_disk_reads_the_instructions(toy, monkeypatch, tmp_path):
    hub = _Hub()
    monkeypatch.setitem(sys.modules, "transformers", hub)
    task = toy_task(toy, lang_encoder_name=str(tmp_path))
    model = task.build_model()
    folder, options = hub.asked["model"]
    assert folder == str(tmp_path) and options["local_files_only"] and options["use_safetensors"]
    assert hub.asked["tokenizer"][1] == {"local_files_only": True}
    words, real = model.language.tokenize(["go to red", "move to the red block"])
    assert words.tolist() == [[2, 2, 3, 9, 9], [4, 2, 3, 3, 5]] and real.sum().item() == 8, "padded with the end token"
    batch = task.train_data().batch(np.arange(2), None)
    assert batch["text"].shape == (2, 5, 12) and batch["text"].dtype == torch.float32
    assert model(batch).shape == (2, 7) and is_frozen(model.language)


def test_cached_features_are_what_the_encoder_says_live(toy):
    cached, live = toy_task(toy), toy_task(toy, cache_features=False)
    model = cached.build_model().eval()
    ids = np.array([3, 0, 17])
    kept, shown = cached.train_data().batch(ids, None), live.train_data().batch(ids, None)
    assert "images" not in kept and shown["images"].shape == (3, 2, 32, 32, 3)
    for name, value in see(model.vision, shown["images"], 8).items():
        assert torch.allclose(kept[name], value, atol=1e-5), name
    with torch.no_grad():
        assert torch.allclose(model(kept), model(shown), atol=1e-4)


def test_frozen_encoders_run_once_and_other_weights_have_other_features(toy, tmp_path, monkeypatch):
    folder = str(tmp_path / "cache")
    ran = []
    monkeypatch.setattr(features, "see", lambda *given: ran.append(1) or see(*given))
    for times in (1, 2):
        toy_task(toy, cache_dir=folder).build_model()
        assert len(ran) == 1 + 1, f"start {times}: one look for the shapes, one chunk"
    state = _weights(toy_section(toy), tmp_path / "model.safetensors")
    state["aggregator.frame_blocks.0.ls1.gamma"] += 0.1
    save_file(state, str(tmp_path / "model.safetensors"))
    toy_task(toy, cache_dir=folder, vggt_checkpoint=str(tmp_path)).build_model()
    assert len(ran) == 4
    assert len([place for place in (tmp_path / "cache" / "features").iterdir() if place.is_dir()]) == 2


class _Eye(nn.Module):
    """Says the first pixel, and remembers which frames it saw."""

    def __init__(self):
        super().__init__()
        self.scale = nn.Parameter(torch.ones(()), requires_grad=False)


def _fake_see(vision, images, stride):
    value = images[..., 0, 0, 0].float()
    return {"tokens": value[..., None], "points": value[..., None, None].expand(-1, -1, 1, 3), "pose": value[..., None]}


def _look(seen):
    def look(ids):
        seen.extend(ids.tolist())
        return torch.as_tensor(ids).view(-1, 1, 1, 1, 1).expand(-1, 1, 2, 2, 3)

    return look


def _make(folder, seen, frames=200):
    from contextlib import nullcontext

    make_features(folder, frames=frames, vision=_Eye(), stride=1, look=_look(seen), context=nullcontext)


def test_several_processes_share_the_work_and_all_rows_are_there(tmp_path, monkeypatch):
    monkeypatch.setattr(features, "see", _fake_see)
    seen = [[], [], []]
    workers = [threading.Thread(target=_make, args=(tmp_path / "f" / "key", part, 1000)) for part in seen]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join(30)
    rows = open_features(tmp_path / "f" / "key")["tokens"]
    assert rows[:, 0, 0].tolist() == list(range(1000))
    real = sorted(frame for part in seen for frame in part if frame)
    assert real == list(range(1, 1000)), "no frame twice (frame 0 also gives the shapes)"
    assert sorted(file.name for file in (tmp_path / "f" / "key").iterdir()) == ["points.npy", "pose.npy", "tokens.npy"]


def test_a_stopped_encoding_goes_on_where_it_was(tmp_path, monkeypatch):
    monkeypatch.setattr(features, "see", _fake_see)
    seen = []

    def stop_after_two_chunks(vision, images, stride):
        if len(seen) > 140:
            raise KeyboardInterrupt
        return _fake_see(vision, images, stride)

    monkeypatch.setattr(features, "see", stop_after_two_chunks)
    with pytest.raises(KeyboardInterrupt):
        _make(tmp_path / "f" / "key", seen)
    assert not (tmp_path / "f" / "key").exists()
    monkeypatch.setattr(features, "see", _fake_see)
    again = []
    _make(tmp_path / "f" / "key", again)
    assert again == list(range(128, 200))
    assert open_features(tmp_path / "f" / "key")["pose"][:, 0, 0].tolist() == list(range(200))
