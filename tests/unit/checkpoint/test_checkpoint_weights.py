from __future__ import annotations

import os
import zipfile

import pytest
import torch
from safetensors.torch import save_file

from headway.checkpoint import open_weights, read_weights
from headway.errors import CheckpointError, UsageError


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
        ({"model": {"w": torch.zeros(2)}}, "'model' is not a tensor"),
        ([torch.zeros(2)], "not a dict"),
    ):
        torch.save(value, path)
        with pytest.raises(CheckpointError, match=why):
            read_weights(path)
    path.write_bytes(b"not a zip")
    with pytest.raises(CheckpointError, match="zip"):
        read_weights(path)
    with pytest.raises(UsageError):
        read_weights(tmp_path / "model.ckpt")


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
