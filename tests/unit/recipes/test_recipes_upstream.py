"""Names of weights in the files of the five systems; layouts are built here, with torch's own modules."""

from __future__ import annotations

import torch
from torch import nn

from headway.recipes.atlas.model import Atlas, AtlasSize
from headway.recipes.atlas.upstream import UPSTREAM as ATLAS
from headway.recipes.layoutmaster.model import LayoutDiffusionTransformer, LayoutMaster, LayoutSize
from headway.recipes.layoutmaster.upstream import UPSTREAM as LAYOUTMASTER
from headway.recipes.nanochat.upstream import UPSTREAM as NANOCHAT
from headway.recipes.rdt.upstream import UPSTREAM as RDT
from headway.recipes.tfnet.model import Tfnet
from headway.recipes.tfnet.section import TfnetSection
from headway.recipes.tfnet.upstream import UPSTREAM as TFNET


def named(upstream, model):
    """Return the names and shapes that a file of theirs has, from our model."""
    found = {}
    for name, value in model.state_dict().items():
        at = upstream.rename(name, tuple(value.shape))
        if at is not None:
            found.update(dict.fromkeys((at.name, *at.copies), at.shape or tuple(value.shape)))
    return found | {name: shape for name, (_, shape) in upstream.extras(list(found)).items()}


def shapes_of(module, prefix=""):
    return {f"{prefix}{name}": tuple(value.shape) for name, value in module.state_dict().items()}


def test_tfnets_names_are_those_of_3d_convolutions_and_sequential_branches():
    section = TfnetSection(hidden_size=8, channels=(4, 6, 6, 8), blocks=(1, 2, 1, 1), attention=(2, 3, 3, 3))
    found = named(TFNET, Tfnet(section, 11))
    layer = nn.Sequential(nn.Conv1d(8, 8, 5), nn.BatchNorm1d(8), nn.ReLU(), nn.MaxPool1d(2), nn.Conv1d(8, 8, 5))
    wanted = {
        **shapes_of(nn.Sequential(*layer, nn.BatchNorm1d(8)), "conv1d1.temporal_conv."),
        **shapes_of(nn.LSTM(8, 4, num_layers=2, bidirectional=True), "temporal_model1.rnn."),
        **shapes_of(nn.Conv3d(4, 3, (3, 1, 1)), "conv2d.motorAttention2.conv3d1."),
        **shapes_of(nn.Conv3d(3, 4, (1, 7, 7), bias=False), "conv2d.conv1."),
        **shapes_of(nn.BatchNorm3d(6), "conv2d.layer2.1.bn2."),
        **shapes_of(nn.Sequential(nn.Conv3d(4, 6, 1, bias=False), nn.BatchNorm3d(6)), "conv2d.layer2.0.downsample."),
        **{f"classifier{number}.weight": (8, 12) for number in range(1, 6)},
    }
    assert {name: found.get(name) for name in wanted} == wanted
    assert TFNET.settings(found, {}) == {
        "task.hidden_size": 8,
        "task.channels": [4, 6, 6, 8],
        "task.blocks": [1, 2, 1, 1],
        "task.attention": [2, 3, 3, 3],
        "task.frequency": True,
    }


def test_atlas_names_are_those_of_decoder_layers_and_numbered_convolutions():
    size = AtlasSize(token_dim=12, lang_dim=10, token_features=4, pose_features=3, point_features=(2, 3, 4), geom_dim=6)
    size = AtlasSize(**{**{k: getattr(size, k) for k in AtlasSize.__slots__}, "fusion_dim": 8, "fusion_heads": 2})
    found = named(ATLAS, Atlas(size, nn.Identity(), nn.Identity()))
    wanted = {
        **shapes_of(nn.TransformerDecoderLayer(8, 2, 32, batch_first=True), "fusion.cross_attn_layers.3."),
        **shapes_of(nn.BatchNorm1d(4), "geom_encoder.pointnet.bn3."),
        **shapes_of(nn.Conv1d(2, 3, 1), "geom_encoder.pointnet.conv2."),
        **shapes_of(nn.Sequential(nn.Linear(9, 3), nn.LayerNorm(3)), "geom_encoder.pose_encoder."),
        **shapes_of(nn.Linear(11, 6), "geom_encoder.final_proj."),
        "geom_encoder.token_query": (1, 1, 12),
        "action_head.shared_layers.5.weight": (256,),
        "action_head.gripper_head.2.weight": (1, 256),
        "fusion.output_proj.weight": (8, 8),
    }
    assert {name: found.get(name) for name in wanted} == wanted
    told = ATLAS.settings(found, {})
    assert told["task.fusion_layers"] == 4 and told["task.point_features"] == [2, 3, 4]
    assert told["task.geom_output_dim"] == 6 and told["task.head_dims"] == [512, 256]


def test_layoutmasters_files_hold_the_transformer_alone():
    size = LayoutSize(visual_dim=5, hidden_dim=16, num_layers=3, num_heads=2, max_elements=7, is_fixed=False)
    layout = LayoutDiffusionTransformer(size)
    assert named(LAYOUTMASTER, LayoutMaster(nn.Linear(2, 2), layout)) == shapes_of(layout)
    told = LAYOUTMASTER.settings(shapes_of(layout), {})
    assert told == {
        "task.head_mode": "original",
        "task.max_elements": 7,
        "task.hidden_dim": 16,
        "task.visual_dim": 5,
        "task.num_layers": 3,
    }


def test_the_entries_beside_the_weights_are_those_an_optimizer_and_a_schedule_load():
    linear = nn.Linear(2, 2)
    for upstream, kind in ((LAYOUTMASTER, torch.optim.AdamW), (TFNET, torch.optim.Adam), (ATLAS, torch.optim.AdamW)):
        facts = upstream.facts({"epoch": 3, "best_loss": 0.5}, ["weight", "bias"])
        optimizer = kind(linear.parameters(), lr=1.0)
        optimizer.load_state_dict(facts["optimizer_state_dict"])
        linear(torch.ones(1, 2)).sum().backward()
        optimizer.step()
        assert optimizer.param_groups[0]["lr"] < 1.0
        if "scheduler_state_dict" in facts and upstream is LAYOUTMASTER:
            schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, T_max=5)
            schedule.load_state_dict(facts["scheduler_state_dict"])
            schedule.step()
            assert schedule.T_max == 100 and schedule.last_epoch == 4


def test_sizes_of_nanochat_and_rdt_come_from_shapes_and_the_file_beside_them():
    shapes = {"transformer.wte.weight": (32768, 768), "transformer.h.0.attn.c_k.weight": (256, 768)}
    shapes |= {f"transformer.h.{block}.attn.c_q.weight": (768, 768) for block in range(12)}
    meta = {"model_config": {"n_head": 6, "n_kv_head": 2, "sequence_len": 2048}}
    assert NANOCHAT.settings(shapes, meta) == {
        "task.depth": 12,
        "task.vocab_size": 32768,
        "task.aspect": 64,
        "task.head_dim": 128,
        "task.n_kv_head": 2,
        "task.max_seq_len": 2048,
    }
    shapes = {
        "model.x_pos_embed": (1, 67, 2048),
        "model.lang_cond_pos_embed": (1, 1024, 2048),
        "model.blocks.0.attn.q_norm.weight": (64,),
        **{f"model.blocks.{block}.norm1.weight": (2048,) for block in range(28)},
        "lang_adaptor.0.weight": (2048, 4096),
        "lang_adaptor.2.weight": (2048, 2048),
        "img_adaptor.weight": (2048, 1152),
    }
    told = RDT.settings(shapes, {})
    assert (told["task.num_heads"], told["task.depth"], told["task.action_chunk_size"]) == (32, 28, 64)
    assert (told["task.lang_adaptor"], told["task.img_adaptor"]) == ("mlp2x_gelu", "linear")
    assert told["task.lang_token_dim"] == 4096 and told["task.img_token_dim"] == 1152
