"""Published models by name: their shapes give the published number of parameters."""

from __future__ import annotations

import pytest

from headway.planner.models.known import DECODERS, find_decoder

PUBLISHED = {
    "llama-30b": 32_528_943_616,
    "llama-2-7b": 6_738_415_616,
    "llama-2-70b": 68_976_648_192,
    "llama-3.1-405b": 405_853_388_800,
    "llama-3.2-1b": 1_235_814_400,
    "mistral-nemo-12b": 12_247_782_400,
    "smollm2-360m": 361_821_120,
    "qwen1.5-7b": 7_721_324_544,
    "qwen2.5-14b": 14_770_033_664,
    "qwen3-0.6b": 596_049_920,
    "qwen3-8b": 8_190_735_360,
    "yi-34b": 34_388_917_248,
    "baichuan2-13b": 13_896_668_160,
    "internlm2-20b": 19_861_149_696,
    "chatglm3-6b": 6_243_584_000,
    "glm-4-9b": 9_399_951_360,
    "deepseek-coder-6.7b": 6_740_512_768,
    "olmo-7b": 6_888_095_744,
    "gemma-2-9b": 9_241_705_984,
    "gemma-3-1b": 999_885_952,
    "phi-4": 14_659_507_200,
    "pythia-12b": 11_846_072_320,
    "gpt-neox-20b": 20_554_567_680,
    "gpt2-xl": 1_557_611_200,
    "opt-30b": 29_974_540_288,
    "bloom-7b1": 7_069_016_064,
    "gpt3-175b": 174_604_222_464,
}


@pytest.mark.parametrize("name", PUBLISHED)
def test_a_named_shape_has_the_published_size(name):
    # Biases, gains and position tables are left out: a fraction of a per cent.
    assert DECODERS[name].params == pytest.approx(PUBLISHED[name], rel=0.004)


@pytest.mark.parametrize(
    ("written", "meant"),
    [
        ("meta-llama/Meta-Llama-3-8B-Instruct", "llama-3-8b"),
        ("Llama 2 7 B", "llama-2-7b"),
        ("Llama2-13B", "llama-2-13b"),
        ("Qwen/Qwen2.5-7B-Instruct", "qwen2.5-7b"),
        ("Qwen-2.5 7B", "qwen2.5-7b"),
        ("Qwen3 8B", "qwen3-8b"),
        ("mistralai/Mistral-7B-v0.1", "mistral-7b"),
        ("EleutherAI/pythia-1.4b-deduped", "pythia-1.4b"),
        ("gemma2 9b it", "gemma-2-9b"),
        ("GPT-2", "gpt2"),
        ("GPT-3 13B", "gpt3-13b"),
        ("Phi-3-mini-4k-instruct", "phi-3-mini"),
    ],
)
def test_a_name_is_found_however_it_is_written(written, meant):
    assert find_decoder(written) is DECODERS[meant]


def test_an_unknown_name_is_not_guessed():
    assert find_decoder("llama-9-7b") is None
    assert find_decoder("gpt2-1.3b") is None
    assert find_decoder("phi-1.5 1.3 B") is DECODERS["phi-1.5"]
