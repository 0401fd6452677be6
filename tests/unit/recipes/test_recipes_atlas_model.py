from dataclasses import replace

import numpy as np
import pytest
import torch
from torch import nn

from headway.recipes.atlas.encoders import build_atlas
from headway.recipes.atlas.language import WordEncoder, encode_texts, hash_words
from headway.recipes.atlas.model import (
    Atlas,
    AtlasSize,
    FusionLayer,
    PointNet,
    gripper_loss,
    gripper_target,
    measure_spread,
    pose_loss,
    see,
)
from headway.recipes.atlas.scene import draw_scene, draw_workspace
from headway.recipes.atlas.section import AtlasSection
from headway.recipes.atlas.vggt import Vggt, VggtSize

SMALL = VggtSize(
    image_size=32,
    patch=8,
    width=16,
    heads=2,
    vit_depth=1,
    depth=2,
    dense_features=8,
    dense_channels=(8, 8, 8, 8),
    dense_layers=(0, 0, 1, 1),
    camera_depth=1,
    layer_scale=0.1,
)
TOY = AtlasSize(
    token_dim=32,
    lang_dim=16,
    token_features=16,
    pose_features=4,
    point_features=(4, 8, 8),
    geom_dim=16,
    fusion_dim=16,
    fusion_layers=2,
    fusion_heads=2,
    head_dims=(16, 16),
    dropout=0.0,
)


def _count(module):
    return sum(param.numel() for param in module.parameters())


def _vision(seed=0, size=SMALL):
    vision = Vggt(size)
    vision.init_weights(seed)
    return vision.eval()


def _atlas(**changes):
    language = WordEncoder(16, buckets=64, heads=2, longest=8)
    language.init_weights(0)
    return Atlas(replace(TOY, **changes), _vision(), language, point_stride=8).eval()


def test_the_trained_part_has_the_published_number_of_parameters():
    with torch.device("meta"):
        model = Atlas(AtlasSize(), nn.Identity(), nn.Identity())
    assert [_count(part) for part in (model.geometry, model.fusion, model.head)] == [899_328, 72_963_072, 791_047]
    assert _count(model) == 74_653_447


def test_the_published_section_builds_the_published_model_with_frozen_encoders():
    with torch.device("meta"):
        model = build_atlas(AtlasSection())
    assert sum(param.numel() for param in model.parameters() if param.requires_grad) == 74_653_447
    assert _count(model.vision) == 1_190_596_120
    assert not any(param.requires_grad for part in (model.vision, model.language) for param in part.parameters())


@pytest.mark.parametrize("width", [64, 1024])
def test_a_fusion_layer_follows_the_published_formula(width):
    with torch.device("meta"):
        layer = FusionLayer(AtlasSize(fusion_dim=width))
    assert _count(layer) == 16 * width**2 + 19 * width


def test_the_backbone_has_the_names_and_sizes_of_the_published_weights():
    with torch.device("meta"):
        vision = Vggt(VggtSize())
    shapes = {name: tuple(value.shape) for name, value in vision.state_dict().items()}
    # Counted in the published code without its track head.
    assert (len(shapes), _count(vision)) == (1403, 1_190_596_120)
    assert shapes["aggregator.patch_embed.pos_embed"] == (1, 1370, 1024)
    assert shapes["aggregator.register_token"] == (1, 2, 4, 1024)
    assert shapes["aggregator.global_blocks.23.attn.q_norm.weight"] == (64,)
    assert shapes["camera_head.poseLN_modulation.1.weight"] == (6144, 2048)
    assert shapes["point_head.scratch.output_conv2.2.weight"] == (4, 32, 1, 1)
    assert "depth_head.scratch.refinenet4.resConfUnit1.conv1.weight" not in shapes


def test_only_global_attention_lets_one_view_know_of_another():
    vision, one = _vision(), torch.rand(1, 2, 3, 32, 32)
    other = torch.cat((one[:, :1], torch.rand(1, 1, 3, 32, 32)), dim=1)
    with torch.no_grad():
        told = [vision(images).tokens[:, 0] for images in (one, other)]
        for block in vision.aggregator.global_blocks:
            block.ls1.gamma.zero_()
        alone = [vision(images).tokens[:, 0] for images in (one, other)]
    assert not torch.allclose(*told) and torch.equal(*alone)


def test_the_first_view_has_tokens_of_its_own():
    vision, image = _vision(), torch.rand(1, 1, 3, 32, 32)
    with torch.no_grad():
        tokens = vision(image.expand(1, 3, 3, 32, 32)).tokens[0]
    special, patches = vision.aggregator.num_special, 16
    assert special == 5 and tokens.shape == (3, special + patches, 32)
    assert not torch.allclose(tokens[0, :special], tokens[1, :special])
    assert torch.allclose(tokens[1], tokens[2], atol=1e-6), "all others are alike"


@pytest.mark.parametrize("pixels", [32, 48])
def test_heads_give_a_pose_a_point_and_a_depth(pixels):
    with torch.no_grad():
        seen = _vision()(torch.rand(2, 2, 3, pixels, pixels), with_depth=True)
    assert seen.pose.shape == (2, 2, 9) and (seen.pose[..., 7:] >= 0).all()
    assert seen.points.shape == (2, 2, pixels, pixels, 3) and seen.depth.shape == (2, 2, pixels, pixels)
    assert (seen.depth > 0).all() and seen.points.isfinite().all()


def test_untrained_points_lie_on_a_table_in_the_order_of_the_pixels():
    with torch.no_grad():
        points = _vision()(torch.rand(1, 1, 3, 32, 32)).points[0, 0]
    across, down = points[..., 0].mean(0), points[..., 1].mean(1)
    assert (across.diff()[::4] > -0.05).all() and across[-1] - across[0] > 0.8
    assert down[-1] - down[0] > 0.8 and points[..., 2].std() < 0.2


def test_pooled_features_of_untrained_weights_tell_where_a_block_is():
    vision = _vision(size=replace(SMALL, width=32))
    rng = np.random.default_rng(0)
    scenes = [draw_scene(rng, 0) for _ in range(320)]
    images = torch.from_numpy(np.stack([draw_workspace(scene, 32)[None] for scene in scenes]))
    with torch.no_grad():
        tokens = see(vision, images, 8)["tokens"][:, 0]
    places = torch.tensor(np.stack([scene.blocks[0] for scene in scenes]), dtype=torch.float32)
    mean, whitening = measure_spread(tokens[:240, None])
    read = torch.cat(((tokens - mean) @ whitening, torch.ones(320, 1)), dim=1)
    fit = torch.linalg.lstsq(read[:240].T @ read[:240] + torch.eye(read.size(1)), read[:240].T @ places[:240]).solution
    error = (read[240:] @ fit - places[240:]).abs().mean()
    # On scenes it was not fitted to, a straight line finds the block several times better than its mean place.
    assert error < 0.4 * (places[240:] - places[:240].mean(0)).abs().mean()


def test_padding_is_no_text_unless_the_original_is_asked_for():
    said = "go to red"
    for masks, is_equal in ((True, True), (False, False)):
        model = _atlas(masks_padding=masks)
        images = torch.randint(0, 255, (1, 2, 32, 32, 3), dtype=torch.uint8)
        words, real = model.language.tokenize([said])
        longer, partly = model.language.tokenize([said, "move to the red block"])
        with torch.no_grad():
            short = model({"images": images, "words": words, "real": real})
            padded = model({"images": images, "words": longer[:1], "real": partly[:1]})
        assert torch.allclose(short, padded, atol=1e-5) is is_equal, masks


def test_the_original_gripper_target_is_out_of_reach_and_the_mapped_one_is_not():
    raw = torch.tensor([-1.0, -1.0, 1.0])
    best = torch.tensor([0.0, 0.0, 1.0])  # all a sigmoid can say
    assert gripper_loss(best, gripper_target(raw, original=False), "l1").tolist() == [0, 0, 0]
    assert gripper_loss(best, gripper_target(raw, original=True), "l1").tolist() == [1, 1, 0]
    assert gripper_loss(torch.tensor([0.3]), torch.tensor([-1.0]), "bce").item() == pytest.approx(0.35667, rel=1e-4)


def test_pose_losses_are_means_over_the_six_numbers():
    away = torch.full((2, 6), 2.0)
    for kind, value in (("smooth_l1", 1.5), ("l1", 2.0), ("l2", 4.0)):
        assert pose_loss(away, torch.zeros(2, 6), kind).tolist() == [value, value]


def test_whitened_features_have_equal_spread_and_keep_the_views_apart():
    dice = torch.Generator().manual_seed(0)
    mix = torch.randn(6, 6, generator=dice) * torch.tensor([3.0, 1, 1, 1, 0.3, 0.2])
    tokens = torch.randn(4000, 2, 6, generator=dice) @ mix + torch.tensor([[0.0], [5.0]])
    mean, whitening = measure_spread(tokens, floor=1e-9)
    white = (tokens - mean) @ whitening
    own = (white - white.mean(0)).flatten(0, 1)
    assert torch.allclose(torch.cov(own.T), torch.eye(6), atol=2e-3)
    assert (white[:, 1].mean(0) - white[:, 0].mean(0)).norm() > 1


def test_points_count_as_a_set():
    net = PointNet((4, 8, 8)).eval()
    points = torch.randn(2, 3, 10)
    with torch.no_grad():
        assert torch.allclose(net(points), net(points[..., torch.randperm(10)]))


def test_words_have_the_same_number_on_every_machine_and_case_does_not_count():
    assert hash_words("Go to RED!", 4096) == hash_words("go to red", 4096) == [2988, 577, 1900]
    assert 0 not in hash_words("a b c d e f", 3), "0 is padding"


def test_an_instruction_reads_the_same_beside_a_longer_one():
    encoder = WordEncoder(16, buckets=64, heads=2, longest=8).eval()
    encoder.init_weights(0)
    alone, _ = encode_texts(encoder, ["go to red"])
    beside, real = encode_texts(encoder, ["go to red", "move to the blue block now please do it all"])
    assert beside.shape == (2, 8, 16) and real.sum(1).tolist() == [3, 8], "the longest is cut off"
    assert torch.allclose(alone[0], beside[0, :3], atol=1e-5)


def test_frozen_encoders_leave_no_graph_and_trained_ones_do():
    model = _atlas()
    images = torch.randint(0, 255, (1, 2, 32, 32, 3), dtype=torch.uint8)
    words, real = model.language.tokenize(["go to red"])
    batch = {"images": images, "words": words, "real": real}
    model(batch).sum().backward()
    assert model.vision.aggregator.frame_blocks[0].attn.qkv.weight.grad is not None
    assert model.language.words.weight.grad is not None
    model.zero_grad()
    model.vision.requires_grad_(False)
    model.language.requires_grad_(False)
    model(batch).sum().backward()
    assert model.vision.aggregator.frame_blocks[0].attn.qkv.weight.grad is None
    assert model.fusion.out.weight.grad is not None
