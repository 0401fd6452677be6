from __future__ import annotations

import numpy as np
import pytest
import torch
from torch import nn

from fakes.tfnet_set import SMALL, write_small
from headway.config import load_config
from headway.errors import CheckError
from headway.recipes.tfnet.model import Tfnet
from headway.recipes.tfnet.parts import TfnetParts
from headway.recipes.tfnet.section import TfnetSection
from headway.task import find_recipe

SHAPE = {"channels": (4, 6, 6, 8), "blocks": (1, 2, 1, 1), "attention": (2, 3, 3, 3), "hidden_size": 8}


def resnet(**changed):
    """Return weights under torchvision's names, at these widths."""
    state = {"conv1.weight": torch.randn(4, 3, 7, 7), "fc.weight": torch.randn(10, 8), "fc.bias": torch.zeros(10)}
    norms = {"bn1": 4}
    before = 4
    for stage, (width, blocks) in enumerate(zip(SHAPE["channels"], SHAPE["blocks"], strict=True), start=1):
        for block in range(blocks):
            place = f"layer{stage}.{block}"
            first = before if block == 0 else width
            state |= {f"{place}.conv1.weight": torch.randn(width, first, 3, 3)}
            state |= {f"{place}.conv2.weight": torch.randn(width, width, 3, 3)}
            norms |= {f"{place}.bn1": width, f"{place}.bn2": width}
            if block == 0 and (stage > 1 or before != width):
                state[f"{place}.downsample.0.weight"] = torch.randn(width, before, 1, 1)
                norms[f"{place}.downsample.1"] = width
        before = width
    for name, width in norms.items():
        norm = nn.BatchNorm2d(width)
        norm.running_mean.normal_()
        state |= {f"{name}.{leaf}": value for leaf, value in norm.state_dict().items()}
    return {**state, **changed}


@pytest.mark.parametrize("is_zip", [True, False])
def test_the_frame_network_starts_from_a_resnet_of_torchvision(tmp_path, is_zip):
    state = resnet()
    torch.save(state, tmp_path / "resnet34.pth", _use_new_zipfile_serialization=is_zip)
    model = Tfnet(TfnetSection(**SHAPE, frames_file=str(tmp_path / "resnet34.pth")), 5)
    model.init_weights(3)
    plain = Tfnet(TfnetSection(**SHAPE), 5)
    plain.init_weights(3)
    found, drawn = model.state_dict(), plain.state_dict()
    assert torch.equal(found["frames.conv1.weight"], state["conv1.weight"])
    assert torch.equal(found["frames.stages.1.0.down.1.running_mean"], state["layer2.0.downsample.1.running_mean"])
    same = {name for name in found if torch.equal(found[name], drawn[name])}
    assert {name for name in found if not name.startswith("frames.")} <= same
    assert {name for name in found if ".attention." in name} <= same and "frames.stages.1.1.conv2.weight" not in same


def test_a_resnet_of_other_widths_is_refused_by_name(tmp_path):
    torch.save(resnet(**{"layer2.1.conv2.weight": torch.zeros(5, 6, 3, 3)}), tmp_path / "other.pth")
    model = Tfnet(TfnetSection(**SHAPE, frames_file=str(tmp_path / "other.pth")), 5)
    with pytest.raises(CheckError) as refused:
        model.init_weights(3)
    assert refused.value.code == "tfnet/other-frames" and refused.value.facts["name"] == "layer2.1.conv2.weight"


def parts(folder, *words):
    asked = [f"task.data_dir={folder / 'data'}", *SMALL, "task.framework=torch", *words]
    return TfnetParts(load_config("tfnet", recipe=find_recipe, overrides=asked).config)


def test_validation_clips_are_read_in_full_unless_thinned(tmp_path):
    write_small(tmp_path / "data")
    words = ("task.max_frames=16", "task.min_frames=8", "task.short_clips=skip")
    whole = parts(tmp_path, *words, "task.thin_eval=false").data("dev")
    thinned = parts(tmp_path, *words, "task.thin_eval=true").data("dev")
    ids = np.arange(len(whole))
    assert thinned.arrays(ids, ids * 0)["lengths"].max() == 4
    assert whole.arrays(ids, ids * 0)["lengths"].max() > 4


def test_equal_neighbours_are_one_where_the_original_says_so(tmp_path):
    write_small(tmp_path / "data")
    logits = np.full((5, 1, 4), -9.0, np.float32)
    for place, word in enumerate((2, 0, 2, 3, 0)):
        logits[place, 0, word] = 9.0
    assert parts(tmp_path).decode(logits, [5], "greedy") == [[2, 2, 3]]
    assert parts(tmp_path, "task.merge_equal=true").decode(logits, [5], "greedy") == [[2, 3]]
    original = load_config("tfnet", recipe=find_recipe, overrides=["preset=original"]).config
    assert (original.task.hidden_size, original.lr.base, original.batch.per_device) == (1024, 1e-4, 2)
    assert original.task.merge_equal and not original.task.thin_eval and original.task.distill == "original"
