import math

import pytest
import torch

from headway.errors import CheckError
from headway.recipes.layoutmaster.clip import load_clip
from headway.recipes.layoutmaster.diffusion import in_pixels, keep_shares, make_diffusion, normalized
from headway.recipes.layoutmaster.model import LayoutDiffusionTransformer, LayoutSize, spread
from headway.recipes.layoutmaster.section import QWEN, LayoutMasterSection
from headway.recipes.layoutmaster.visual import build_visual

PUBLISHED = {
    (512, 12, 768): 53_288_966,
    (2048, 32, 1280): 2_190_237_702,
    (64, 2, 64): 178_310,
    (128, 4, 64): 1_223_686,
    (256, 6, 64): 6_954_502,
}


def _count(module):
    return sum(param.numel() for param in module.parameters())


def _small(**changes):
    torch.manual_seed(0)
    size = {"visual_dim": 8, "hidden_dim": 16, "num_layers": 2, "num_heads": 4, "max_elements": 6, "dropout": 0.0}
    return LayoutDiffusionTransformer(LayoutSize(**{**size, **changes})).eval()


@pytest.mark.parametrize("is_fixed", [True, False])
@pytest.mark.parametrize(("shape", "count"), PUBLISHED.items())
def test_the_published_sizes_have_the_published_parameters_to_the_last_one(shape, count, is_fixed):
    hidden, layers, visual = shape
    with torch.device("meta"):
        model = LayoutDiffusionTransformer(
            LayoutSize(visual_dim=visual, hidden_dim=hidden, num_layers=layers, is_fixed=is_fixed)
        )
    assert _count(model) == count


def test_the_published_backbones_have_the_published_parameters():
    with torch.device("meta"):
        qwen = build_visual(LayoutMasterSection(visual_backbone=QWEN, visual_dim=1280))
        simple = build_visual(LayoutMasterSection(visual_backbone="simple-cnn"))
    assert _count(qwen) == 67_297_648
    assert simple.projection.weight.shape == (768, 512)
    assert not any(param.requires_grad for param in simple.parameters())


def test_padded_slots_change_nothing_when_fixed_and_something_in_the_original():
    visual, layout, times = torch.randn(1, 6, 8), torch.randn(1, 6, 6), torch.tensor([10])
    mask = torch.arange(6)[None] < 3
    whole = {True: _small(), False: _small(is_fixed=False)}
    for is_fixed, model in whole.items():
        with torch.no_grad():
            padded = model(visual, layout, times, mask)[:, :3]
            alone = model(visual[:, :3], layout[:, :3], times, mask[:, :3])
        assert torch.allclose(padded, alone, atol=1e-6) == is_fixed


def test_an_element_sees_its_own_image_only_when_fixed():
    visual, layout, times = torch.randn(1, 6, 8), torch.randn(1, 6, 6), torch.tensor([10])
    mask = torch.ones(1, 6, dtype=torch.bool)
    for is_fixed in (True, False):
        model = _small(is_fixed=is_fixed)
        with torch.no_grad():
            one, other = model(visual, layout, times, mask), model(visual.flip(1), layout, times, mask)
        # The original cannot tell which image belongs to which element, so dealing them out again changes nothing.
        assert torch.allclose(one, other, atol=1e-5) != is_fixed


def test_the_original_head_cannot_reach_noise_beyond_one():
    hidden = torch.randn(4, 6, 16) * 100
    bounded, free = _small(is_fixed=False).action_head(hidden), _small().action_head(hidden)
    assert bounded[..., :4].abs().max() <= 1 and bounded[..., 5].min() >= 0 and bounded[..., 5].max() <= 1
    assert free[..., :4].abs().max() > 1


def test_features_land_in_their_slots_and_nowhere_else():
    mask = torch.tensor([[True, True, False], [True, False, False]])
    features = torch.arange(6.0).view(3, 2).requires_grad_()
    out = spread(features, mask)
    assert out.tolist() == [[[0, 1], [2, 3], [0, 0]], [[4, 5], [0, 0], [0, 0]]]
    out.sum().backward()
    assert features.grad.tolist() == [[1, 1]] * 3


def test_the_linear_schedule_ends_where_the_fact_sheet_says():
    kept = keep_shares(LayoutMasterSection())
    assert float(kept[-1]) == pytest.approx(4.04e-5, rel=1e-2)
    assert float(kept[-1]) ** -0.5 == pytest.approx(157, abs=1)


def test_the_cosine_schedule_follows_the_squared_cosine_and_clips_the_last_beta():
    kept = keep_shares(LayoutMasterSection(schedule_type="cosine", num_timesteps=100))
    start = math.cos(0.008 / 1.008 * math.pi / 2) ** 2
    middle = math.cos((0.5 + 0.008) / 1.008 * math.pi / 2) ** 2
    assert float(kept[49]) == pytest.approx(middle / start, rel=1e-9)
    assert float(kept[-1] / kept[-2]) == pytest.approx(0.001)


def test_noise_taken_out_again_gives_the_clean_layout():
    diffusion = make_diffusion(LayoutMasterSection(), torch.device("cpu"))
    clean, noise, times = torch.rand(3, 4, 6), torch.randn(3, 4, 6), torch.tensor([0, 400, 700])
    noisy = diffusion.noised(clean, noise, times)
    assert torch.allclose(diffusion.clean_from_noise(noisy, noise, times), clean, atol=1e-3)


def test_ddim_arrives_at_what_a_perfect_network_says():
    diffusion = make_diffusion(LayoutMasterSection(), torch.device("cpu"))
    clean, asked = torch.rand(2, 4, 6) * 1.8 - 0.9, []

    def denoise(noisy, times):
        asked.append(int(times[0]))
        return clean + 0.01 * noisy.clamp(-1, 1) * (times[0] / 1000)

    made = diffusion.sample(denoise, torch.randn(2, 4, 6), 50)
    assert torch.allclose(made, clean, atol=1e-3)
    assert (len(asked), asked[0], asked[-1]) == (50, 999, 0) and asked == sorted(asked, reverse=True)


def test_pixels_and_the_networks_numbers_go_both_ways():
    section = LayoutMasterSection(canvas_size=(1000, 500), max_elements=20)
    layout = torch.tensor([[[0.0, 0, 1000, 500, 20, 1], [500.0, 250, 250, 125, 10, 0.5]]])
    seen = normalized(layout, section)
    assert seen[0, 0].tolist() == [-1, -1, 1, 1, 1, 1] and seen[0, 1].tolist() == [0, 0, -0.5, -0.5, 0, 0]
    assert torch.equal(in_pixels(seen, section), layout)


def _write_clip(folder, image_size=16):
    """Write a tiny random CLIP as transformers does, and return its image half."""
    from transformers import CLIPConfig, CLIPModel

    shape = {"hidden_size": 8, "patch_size": 8, "num_hidden_layers": 2, "num_attention_heads": 2}
    shape |= {"intermediate_size": 16, "image_size": image_size, "projection_dim": 6}
    words = {"hidden_size": 8, "num_hidden_layers": 1, "num_attention_heads": 2, "intermediate_size": 8}
    words |= {"vocab_size": 10, "projection_dim": 6, "bos_token_id": 0, "eos_token_id": 1}
    torch.manual_seed(3)
    model = CLIPModel(CLIPConfig(vision_config=shape, text_config=words, projection_dim=6)).eval()
    model.save_pretrained(folder)
    return model


def _clip_section(folder, **more):
    return LayoutMasterSection(
        visual_backbone="clip", backbone_path=str(folder), image_size=16, visual_dim=4, max_elements=4, **more
    )


def test_a_clip_model_on_disk_is_used_with_its_own_weights(tmp_path):
    written = _write_clip(tmp_path)
    visual = build_visual(_clip_section(tmp_path))
    pixels = torch.randn(2, 3, 16, 16)
    wanted = written.visual_projection(written.vision_model(pixel_values=pixels).pooler_output)
    assert torch.equal(visual.backbone(pixels), wanted)
    assert visual(torch.zeros(2, 3, 16, 16, dtype=torch.uint8)).shape == (2, 4)


def test_a_plan_asks_for_the_shapes_of_clip_alone(tmp_path):
    from torch._subclasses.fake_tensor import FakeTensorMode

    _write_clip(tmp_path)
    with FakeTensorMode():
        assert build_visual(_clip_section(tmp_path)).backbone.visual_projection.weight.shape == (6, 8)


def test_clip_sees_colours_as_its_own_folder_says(tmp_path):
    import json

    _write_clip(tmp_path)
    images = torch.randint(0, 256, (2, 3, 16, 16), dtype=torch.uint8)

    def seen(mean, std, **more):
        visual = build_visual(_clip_section(tmp_path, **more))
        pixels = (images.float() / 255 - torch.tensor(mean)[:, None, None]) / torch.tensor(std)[:, None, None]
        return torch.allclose(visual(images), visual.projection(visual.backbone(pixels)), atol=1e-6)

    assert seen((0.48145466, 0.4578275, 0.40821073), (0.26862954, 0.26130258, 0.27577711))
    told = {"image_mean": [0.5, 0.4, 0.3], "image_std": [0.1, 0.2, 0.3]}
    (tmp_path / "preprocessor_config.json").write_text(json.dumps(told))
    assert seen((0.5, 0.4, 0.3), (0.1, 0.2, 0.3))
    # The original gives every backbone ImageNet's.
    assert seen((0.485, 0.456, 0.406), (0.229, 0.224, 0.225), head_mode="original")


def test_a_clip_model_of_another_image_size_or_with_missing_weights_is_refused(tmp_path):
    _write_clip(tmp_path)
    with pytest.raises(CheckError) as refused:
        load_clip(str(tmp_path), 224)
    assert refused.value.code == "layoutmaster/clip-size" and "task.image_size=16" in refused.value.hint()
    (tmp_path / "model.safetensors").write_bytes(b"nothing")
    with pytest.raises(CheckError) as refused:
        load_clip(str(tmp_path), 16)
    assert refused.value.code == "layoutmaster/bad-clip"
