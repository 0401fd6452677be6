import pytest
import torch

from headway.config import EmaConfig, RunConfig
from headway.engine.ema import decay_at
from headway.errors import CheckError, ConfigError
from headway.recipes.rdt.encoders import PatchEncoder, encode_sentences, make_vision
from headway.recipes.rdt.model import RdtRunner, VarNorm
from headway.recipes.rdt.pretrained import load_pretrained
from headway.recipes.rdt.section import RdtSection
from headway.recipes.rdt.task import make_task

PUBLISHED = {"hidden_size": 2048, "depth": 28}
SMALL = {
    "hidden_size": 16,
    "depth": 2,
    "num_heads": 2,
    "action_chunk_size": 4,
    "num_cameras": 1,
    "img_history_size": 1,
    "img_patches": 4,
    "img_token_dim": 16,
    "tokenizer_max_length": 6,
    "lang_token_dim": 8,
    "rollout": {"exec_horizon": 4},
}


def _model(**changes):
    size = RdtSection(**{**SMALL, **changes})
    model = RdtRunner(size, PatchEncoder(size))
    model.init_weights()
    with torch.no_grad():  # the published last layer is zero, which hides every difference
        model.model.final_layer.ffn_final.fc2.weight.normal_()
    return model.eval()


def _inputs(num=2):
    return {
        "lang": torch.randn(num, 5, 8),
        "lang_mask": torch.ones(num, 5, dtype=torch.bool),
        "images": torch.randint(0, 256, (num, 1, 3, 16, 16), dtype=torch.uint8),
        "state": torch.randn(num, 128),
        "masks": (torch.ones(num, 128), torch.ones(num, 128)),
        "freq": torch.full((num,), 20.0),
    }


@pytest.mark.parametrize(
    ("size", "want"), [(PUBLISHED, 1_228_319_872), ({"hidden_size": 1024, "depth": 14}, 166_229_888)]
)
def test_published_sizes_have_exactly_the_published_parameters(size, want):
    section = RdtSection(**size)
    with torch.device("meta"):
        model = make_task(RunConfig(task=section)).build_model()
    trained = {name: param.numel() for name, param in model.named_parameters() if param.requires_grad}
    assert sum(trained.values()) == want == section.num_params
    if want == 1_228_319_872:
        assert sum(num for name, num in trained.items() if name.startswith("model.blocks.0.")) == 41_969_920


def test_the_closed_form_counts_a_small_model_too():
    model = _model(lang_adaptor="linear")
    trained = sum(param.numel() for param in model.parameters() if param.requires_grad)
    assert trained == RdtSection(**{**SMALL, "lang_adaptor": "linear"}).num_params


def test_modules_bear_the_published_names():
    names = set(dict(_model().named_parameters()))
    published = "model.x_pos_embed model.lang_cond_pos_embed model.img_cond_pos_embed model.t_embedder.mlp.0.weight "
    published += "model.blocks.1.cross_attn.kv.bias model.blocks.0.attn.q_norm.weight model.blocks.0.norm3.weight "
    published += "model.final_layer.ffn_final.fc2.bias lang_adaptor.2.weight img_adaptor.0.bias state_adaptor.4.weight"
    assert set(published.split()) <= names


def test_the_first_answer_is_zero_because_the_last_layer_is():
    size = RdtSection(**SMALL)
    model = RdtRunner(size, PatchEncoder(size))
    model.init_weights()
    assert torch.count_nonzero(model(torch.randn(2, 4, 128), torch.tensor([3, 900]), **_inputs())) == 0


def test_even_blocks_see_the_sentence_and_odd_blocks_the_pictures():
    given, noisy, t = _inputs(), torch.randn(2, 4, 128), torch.tensor([5, 5])
    other = {**given, "images": 255 - given["images"]}
    one, two = _model(depth=1), _model(depth=2)
    assert torch.equal(one(noisy, t, **given), one(noisy, t, **other))
    assert not torch.allclose(two(noisy, t, **given), two(noisy, t, **other))
    words = {**given, "lang": torch.randn(2, 5, 8)}
    assert not torch.allclose(one(noisy, t, **given), one(noisy, t, **words))


def test_masked_words_are_not_seen():
    model, given, noisy, t = _model(), _inputs(), torch.randn(2, 4, 128), torch.tensor([5, 5])
    given["lang_mask"][:, 3:] = False
    changed = {**given, "lang": given["lang"].clone()}
    changed["lang"][:, 3:] += 1.0
    assert torch.equal(model(noisy, t, **given), model(noisy, t, **changed))


def test_frequency_state_and_mask_each_change_the_answer():
    model, given, noisy, t = _model(), _inputs(), torch.randn(2, 4, 128), torch.tensor([5, 5])
    base = model(noisy, t, **given)
    hidden = (given["masks"][0] * 0, given["masks"][1] * 0)
    for change in ({"freq": given["freq"] * 0}, {"state": given["state"] * 0}, {"masks": hidden}):
        assert not torch.allclose(base, model(noisy, t, **{**given, **change}))


def test_the_built_in_encoder_is_frozen_and_tells_content_and_place():
    encoder = PatchEncoder(RdtSection(**SMALL))
    assert not any(param.requires_grad for param in encoder.parameters())
    blank, dot = torch.zeros(1, 3, 16, 16), torch.zeros(1, 3, 16, 16)
    dot[..., :4, :4] = 1
    tokens, seen = encoder(blank)[0], encoder(dot)[0]
    assert tokens.shape == (4, 16)
    assert len({tuple(row.tolist()) for row in tokens}) == 4, "equal patches differ by their place"
    assert not torch.equal(tokens[0], seen[0]) and torch.equal(tokens[1:], seen[1:])


def test_a_picture_count_that_is_no_square_is_refused():
    with pytest.raises(CheckError) as refused:
        make_vision(RdtSection(**{**SMALL, "img_patches": 5}))
    assert refused.value.code == "rdt/picture-size" and "task.img_patches=4" in refused.value.hint()


def test_every_sentence_has_a_token_even_the_empty_one():
    table, mask = encode_sentences(RdtSection(**SMALL), ["", "close the drawer"])
    assert mask.sum(1).tolist() == [1, 4] and table.shape == (2, 4, 8)
    again, _ = encode_sentences(RdtSection(**SMALL), ["close"])
    assert torch.equal(again[0, 0], table[1, 0])


def test_a_sentence_longer_than_the_model_takes_is_refused_with_both_numbers():
    with pytest.raises(CheckError) as refused:
        encode_sentences(RdtSection(**SMALL), ["one two three four five six"])
    assert "7" in refused.value.text() and "6" in refused.value.text()


def test_sentences_encoded_beforehand_are_read_from_safetensors(tmp_path):
    from safetensors.torch import save_file

    save_file({"": torch.ones(1, 8), "go": torch.zeros(3, 8)}, tmp_path / "lang.safetensors")
    section = RdtSection(**SMALL, lang_embed=str(tmp_path / "lang.safetensors"))
    table, mask = encode_sentences(section, ["", "go"])
    assert mask.sum(1).tolist() == [1, 3] and table[0, 0].sum() == 8
    with pytest.raises(CheckError) as refused:
        encode_sentences(section, ["", "stop"])
    assert refused.value.code == "rdt/no-sentence" and "stop" in refused.value.text()


def test_pretrained_weights_load_by_name_and_misfits_are_refused(tmp_path):
    from safetensors.torch import save_file

    model = _model()
    save_file({n: p.detach().clone() for n, p in model.named_parameters()}, tmp_path / "model.safetensors")
    other = _model()
    load_pretrained(other, tmp_path)
    pairs = zip(model.parameters(), other.parameters(), strict=True)
    assert all(torch.equal(mine, theirs) for mine, theirs in pairs)
    with pytest.raises(CheckError) as refused:
        load_pretrained(_model(hidden_size=32), tmp_path)
    assert refused.value.code == "rdt/pretrained-misfit"
    with pytest.raises(CheckError) as absent:
        load_pretrained(other, tmp_path / "model.pt")
    assert absent.value.code == "rdt/no-pretrained"


@pytest.mark.parametrize("ending", ["pytorch_model.bin", "pytorch_model/mp_rank_00_model_states.pt"])
def test_published_weights_are_read_from_their_own_files_and_bring_their_norm(tmp_path, ending):
    model = _model(norm="timm_var")
    state = {name: param.detach().clone() for name, param in model.named_parameters()}
    wrapped = {"module": state, "ds_version": "0.14", "param_shapes": [{"a": torch.Size([2])}], "optimizer": None}
    (tmp_path / ending).parent.mkdir(exist_ok=True)
    torch.save(wrapped if "mp_rank" in ending else state, tmp_path / ending)
    other = _model(pretrained=str(tmp_path))
    load_pretrained(other, tmp_path)
    assert all(torch.equal(param, state[name]) for name, param in other.named_parameters())
    assert type(other.model.blocks[0].norm1).__name__ == "VarNorm"
    assert type(_model(norm="rms", pretrained=str(tmp_path)).model.blocks[0].norm1).__name__ == "RMSNorm"


def test_the_published_norm_divides_by_the_spread_and_not_by_the_root_mean_square():
    x = torch.tensor([[1.0, 2.0, 3.0, 6.0]])
    assert torch.allclose(VarNorm(4, 0.0)(x), x / x.std(-1, keepdim=True))
    assert not torch.allclose(VarNorm(4, 0.0)(x), torch.nn.RMSNorm(4)(x), rtol=1e-2)


def test_heads_that_do_not_divide_are_refused_with_those_that_do():
    with pytest.raises(ConfigError) as refused:
        RdtSection(hidden_size=64, num_heads=5)
    assert refused.value.code == "rdt/heads" and "4, 8" in refused.value.hint()


@pytest.mark.parametrize(("step", "decay"), [(0, 0.0), (1, 0.0), (100, 0.968), (1000, 0.9944), (10_000, 0.9990)])
def test_the_average_rises_as_published(step, decay):
    config = EmaConfig(decay=0.9999, power=0.75)
    assert decay_at(step, config) == pytest.approx(decay, abs=5e-4)


def test_the_average_is_capped_floored_and_starts_late():
    assert decay_at(10**9, EmaConfig(decay=0.999, power=0.75)) == 0.999
    assert decay_at(50, EmaConfig(decay=0.999, power=0.75, update_after=49)) == 0.0
    assert decay_at(3, EmaConfig(decay=0.999, power=0.75, min=0.9)) == 0.9
    assert decay_at(0, EmaConfig(decay=0.999)) == pytest.approx(2 / 11)
