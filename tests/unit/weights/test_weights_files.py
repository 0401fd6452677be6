from __future__ import annotations

import argparse
import os
import pickle
import struct
import zipfile

import numpy as np
import pytest
import torch
from safetensors.torch import save_file

from headway.errors import CheckpointError, UsageError
from headway.weights import open_weights, read_pickle, read_weights


def make_tensors():
    weight = torch.arange(12, dtype=torch.float32).view(3, 4)
    return {
        "a.weight": weight,
        "b.weight": weight,  # tied: one storage, two names
        "row": weight[1],
        "half": torch.randn(5).to(torch.bfloat16),
        "count": torch.tensor(7),
        "mask": torch.tensor([True, False]),
        "none": torch.empty(0, 3),
        "column": torch.randn(4, 1),
    }


def read_all(path):
    weights = read_weights(path)
    found = {}
    with open_weights(weights) as fill:
        for name, span in weights.spans.items():
            fill(name, memoryview(data := bytearray(span.end - span.start)))
            found[name] = span.dtype, span.shape, bytes(data)
    return found


def as_bytes(tensor):
    return tensor.contiguous().reshape(-1).view(torch.uint8).numpy().tobytes()


@pytest.mark.parametrize("ending", [".pt", ".pth", ".bin"])
def test_a_torch_file_is_read_tensor_by_tensor_as_torch_reads_it(tmp_path, ending):
    tensors = make_tensors()
    torch.save(tensors, tmp_path / f"model{ending}")
    found = read_all(tmp_path / f"model{ending}")
    assert {name: (shape, data) for name, (_, shape, data) in found.items()} == {
        name: (tuple(value.shape), as_bytes(value)) for name, value in tensors.items()
    }
    assert found["half"][0] == "BF16" and found["count"][0] == "I64" and found["mask"][0] == "BOOL"


def test_a_module_saved_with_its_parameters_is_read_too(tmp_path):
    torch.save(dict(torch.nn.Linear(3, 2).named_parameters()), tmp_path / "model.pt")
    assert {name: row[1] for name, row in read_all(tmp_path / "model.pt").items()} == {"weight": (2, 3), "bias": (2,)}


def test_folders_are_read_as_export_writes_them_and_two_files_are_refused(tmp_path):
    place = tmp_path / "checkpoint-6"
    (place / "ema").mkdir(parents=True)
    save_file({"w": torch.zeros(2)}, place / "model.safetensors", metadata={"format": "pt", "step": "6", "v": "w"})
    save_file({"w": torch.ones(2)}, place / "ema" / "model.safetensors")
    for path in (place, tmp_path):
        weights = read_weights(path)
        assert weights.average is not None and weights.aliases == {"v": "w"} and weights.bytes == 8
    for name in ("one.pt", "two.pt"):
        torch.save({"w": torch.zeros(2)}, tmp_path / name)
    with pytest.raises(UsageError) as refused:
        read_weights(tmp_path)
    assert refused.value.code == "checkpoint/import-folder" and refused.value.facts["num"] == 3


class Evil:
    def __init__(self, path):
        self.path = path

    def __reduce__(self):
        return os.mkdir, (str(self.path),)


def test_a_pickle_that_would_run_code_is_refused_and_runs_none(tmp_path):
    torch.save({"w": torch.zeros(2), "evil": Evil(tmp_path / "done")}, tmp_path / "model.pt")
    with pytest.raises(CheckpointError) as refused:
        read_weights(tmp_path / "model.pt")
    assert refused.value.code == "checkpoint/import-torch" and "mkdir" in refused.value.text()
    assert not (tmp_path / "done").exists()


def test_what_is_no_dict_of_dense_tensors_is_refused_with_its_reason(tmp_path):
    path = tmp_path / "model.pt"
    for value, why in (
        ({"w": torch.zeros(2, 3).t()}, "a view"),
        ({"step": 3}, "'step' is not a tensor"),
        ({"a": {"w": torch.zeros(2)}, "b": {"w": torch.zeros(2)}}, "these dicts"),
        ([torch.zeros(2)], "not a dict"),
    ):
        torch.save(value, path)
        with pytest.raises(CheckpointError, match=why):
            read_weights(path)
    path.write_bytes(b"not a zip")
    with pytest.raises(CheckpointError, match="UnpicklingError"):
        read_weights(path)
    with pytest.raises(UsageError):
        read_weights(tmp_path / "model.onnx")


def test_packed_or_cut_numbers_are_refused(tmp_path):
    torch.save({"w": torch.zeros(100)}, tmp_path / "model.pt")
    with zipfile.ZipFile(tmp_path / "model.pt") as good:
        members = {name: good.read(name) for name in good.namelist()}
    for change, why in (({"packed": True}, "packed"), ({"cut": 399}, "outside")):
        with zipfile.ZipFile(tmp_path / "other.pt", "w") as other:
            for name, data in members.items():
                is_data = name.endswith("/data/0")
                kind = zipfile.ZIP_DEFLATED if is_data and "packed" in change else zipfile.ZIP_STORED
                other.writestr(name, data[: change.get("cut")] if is_data else data, kind)
        with pytest.raises(CheckpointError, match=why):
            read_weights(tmp_path / "other.pt")


def make_trainer_file(model, optimizer, **facts):
    return {"epoch": 3, "model_state_dict": model.state_dict(), "optimizer_state_dict": optimizer.state_dict(), **facts}


@pytest.mark.parametrize("is_zip", [True, False])
def test_a_trainers_file_is_read_whatever_lies_beside_its_weights(tmp_path, is_zip):
    model = torch.nn.DataParallel(torch.nn.Sequential(torch.nn.Linear(4, 3), torch.nn.BatchNorm1d(3)))
    optimizer = torch.optim.AdamW(model.parameters())
    model(torch.randn(5, 4)).sum().backward()
    optimizer.step()
    facts = {"best_loss": np.float64(0.25), "args": argparse.Namespace(lr=1.0), "config": {"model": {"hidden_dim": 8}}}
    file = make_trainer_file(model, optimizer, shape=torch.Size([2]), kind=torch.float32, names={"a"}, **facts)
    torch.save(file, tmp_path / "model.pth", _use_new_zipfile_serialization=is_zip)
    weights = read_weights(tmp_path / "model.pth")
    assert weights.part == "model_state_dict"
    assert weights.facts["epoch"] == 3 and weights.facts["best_loss"] == 0.25
    assert weights.facts["config"] == {"model": {"hidden_dim": 8}}
    found = read_all(tmp_path / "model.pth")
    assert {name: (shape, data) for name, (_, shape, data) in found.items()} == {
        name: (tuple(value.shape), as_bytes(value)) for name, value in model.module.state_dict().items()
    }


@pytest.mark.parametrize("change", ["cut", "longer"])
def test_the_old_format_cut_short_or_with_odd_lengths_is_refused(tmp_path, change):
    torch.save({"w": torch.arange(100.0)}, tmp_path / "model.pth", _use_new_zipfile_serialization=False)
    raw = (tmp_path / "model.pth").read_bytes()
    length = struct.pack("<q", 100)
    assert raw.count(length) == 1
    (tmp_path / "model.pth").write_bytes(raw[:-4] if change == "cut" else raw.replace(length, struct.pack("<q", 101)))
    with pytest.raises(CheckpointError, match="missing"):
        read_weights(tmp_path / "model.pth")


def test_the_old_format_runs_no_code_either(tmp_path):
    file = {"w": torch.zeros(2), "evil": Evil(tmp_path / "done")}
    torch.save(file, tmp_path / "model.pth", _use_new_zipfile_serialization=False)
    with pytest.raises(CheckpointError, match="mkdir"):
        read_weights(tmp_path / "model.pth")
    assert not (tmp_path / "done").exists()


def test_a_single_tensor_is_read_too(tmp_path):
    torch.save(torch.arange(5, dtype=torch.int32), tmp_path / "token_bytes.pt")
    assert [
        (name, span.dtype, span.shape) for name, span in read_weights(tmp_path / "token_bytes.pt").spans.items()
    ] == [("tensor", "I32", (5,))]


def test_a_tokenizers_pickle_gives_its_state_and_no_code(tmp_path):
    state = pickle.dumps(
        {"pat_str": "x", "mergeable_ranks": {b"a": 0, b"\xff": 1}, "special_tokens": {"<|bos|>": 2}}, 2
    )
    (tmp_path / "tokenizer.pkl").write_bytes(b"\x80\x02ctiktoken.core\nEncoding\n)\x81" + state[2:-1] + b"b.")
    assert read_pickle(tmp_path / "tokenizer.pkl") == {
        "pat_str": "x",
        "mergeable_ranks": {"61": 0, "ff": 1},
        "special_tokens": {"<|bos|>": 2},
    }
    (tmp_path / "evil.pkl").write_bytes(pickle.dumps(Evil(tmp_path / "done")))
    with pytest.raises(CheckpointError, match="mkdir"):
        read_pickle(tmp_path / "evil.pkl")
