"""The real encoders' code, on tiny random models built from configs: nothing is downloaded."""

from __future__ import annotations

import torch

from headway.recipes.rdt.encoders import encode_sentences, make_vision
from headway.recipes.rdt.section import RdtSection


def test_siglip_gives_the_patches_of_its_own_model(tmp_path):
    from transformers import SiglipVisionConfig, SiglipVisionModel

    torch.manual_seed(0)
    shape = {"hidden_size": 12, "intermediate_size": 16, "num_hidden_layers": 1, "num_attention_heads": 2}
    model = SiglipVisionModel(SiglipVisionConfig(image_size=16, patch_size=8, **shape)).eval()
    model.save_pretrained(tmp_path)
    section = RdtSection(vision_encoder=str(tmp_path), img_patches=4, img_token_dim=12)
    encoder = make_vision(section)
    images = torch.rand(2, 3, 16, 16) * 2 - 1
    assert torch.allclose(encoder(images), model(pixel_values=images).last_hidden_state, atol=1e-5)
    assert not any(param.requires_grad for param in encoder.parameters())


def test_t5_gives_the_tokens_of_its_own_model(tmp_path):
    from tokenizers import Tokenizer, models, pre_tokenizers
    from transformers import PreTrainedTokenizerFast, T5Config, T5EncoderModel

    torch.manual_seed(0)
    words = Tokenizer(models.WordLevel({"<pad>": 0, "<unk>": 1, "lift": 2, "the": 3, "cup": 4}, unk_token="<unk>"))
    words.pre_tokenizer = pre_tokenizers.Whitespace()
    PreTrainedTokenizerFast(tokenizer_object=words, pad_token="<pad>", unk_token="<unk>").save_pretrained(tmp_path)
    shape = {"vocab_size": 8, "d_model": 16, "d_kv": 4, "d_ff": 16, "num_layers": 1, "num_heads": 2}
    model = T5EncoderModel(T5Config(**shape)).to(torch.bfloat16).eval()
    model.save_pretrained(tmp_path)
    section = RdtSection(text_encoder=str(tmp_path), lang_token_dim=16)
    tokens, mask = encode_sentences(section, ["lift the cup", "lift cup"])
    wanted = model(input_ids=torch.tensor([[2, 3, 4]])).last_hidden_state[0].float()
    assert mask.sum(1).tolist() == [3, 2]
    assert torch.allclose(tokens[0, :3].float(), wanted, atol=1e-2)
