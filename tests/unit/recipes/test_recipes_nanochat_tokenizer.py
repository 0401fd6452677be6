from __future__ import annotations

import itertools
import pickle

import numpy as np
import pytest
import torch

from headway.errors import CheckError
from headway.recipes.nanochat.data import find_index, prepare, prepared_dir
from headway.recipes.nanochat.section import SPECIALS, NanochatSection
from headway.recipes.nanochat.tiktoken_file import (
    Ranks,
    find_merges,
    read_ranks,
    write_ranks,
    write_token_bytes,
)
from headway.recipes.nanochat.tokenizer import from_ranks, train_tokenizer

TEXTS = ["Hello hello world, 12345 and 67! I'm here.", "你好，世界 🌍 hello again", "a\n\n  b\tc naïve café"] * 20


def merge_lowest(tokens, piece):
    """Encode one piece as tiktoken does: join the pair whose bytes have the lowest rank, until none has one."""
    parts = [bytes([byte]) for byte in piece]
    while len(parts) > 1:
        ranks = [tokens.get(a + b, 1 << 30) for a, b in itertools.pairwise(parts)]
        at = min(range(len(ranks)), key=ranks.__getitem__)
        if ranks[at] == 1 << 30:
            break
        parts[at : at + 2] = [parts[at] + parts[at + 1]]
    return [tokens[part] for part in parts]


def test_a_trained_tokenizer_goes_through_their_pickle_and_reads_text_the_same(tmp_path):
    tokenizer = train_tokenizer(iter(TEXTS), vocab_size=320)
    write_ranks(tmp_path, tokenizer.ranks())
    again = from_ranks(read_ranks(tmp_path / "tokenizer.pkl"))
    assert (again.bos, again.size) == (tokenizer.bos, tokenizer.size)
    for text in (*TEXTS[:3], "unseen ünïcode 数字 2026 <|bos|>"):
        assert again.encode(text) == tokenizer.encode(text)
        assert again.decode(again.encode(text)) == text
    assert (again.token_bytes(320) == tokenizer.token_bytes(320)).all()


def test_text_is_merged_by_the_rank_of_the_bytes_as_tiktoken_does():
    tokens = {bytes([byte]): byte for byte in range(256)}
    for word in (b"ab", b"bc", b"cd", b"bcd", b"abcd", b"abc"):
        tokens[word] = len(tokens)
    tokenizer = from_ranks(Ranks(pattern=r"\S+|\s+", tokens=tokens))
    for text in ("abcd", "bcd", "xabc", "abcabcd", "cdab", "dcba"):
        assert tokenizer.encode(text)[1:] == merge_lowest(tokens, text.encode())
    assert find_merges(tokens)[:2] == [(b"a", b"b"), (b"b", b"c")]


def test_token_bytes_are_a_torch_file(tmp_path):
    write_token_bytes(tmp_path, np.array([1, 1, 3, 0], np.int32))
    found = torch.load(tmp_path / "token_bytes.pt", weights_only=True)
    assert found.dtype == torch.int32 and found.tolist() == [1, 1, 3, 0]


@pytest.mark.parametrize("change", ["hole", "special", "kind"])
def test_other_pickles_are_refused(tmp_path, change):
    tokens = {bytes([byte]): byte for byte in range(256)}
    specials = {name: 256 + place for place, name in enumerate(SPECIALS)}
    if change == "hole":
        tokens[b"ab"] = 300
    if change == "special":
        specials["<|bos|>"] = 5
    state = {"pat_str": "x", "mergeable_ranks": tokens, "special_tokens": specials}
    body = pickle.dumps({} if change == "kind" else state, 2)[2:-1]
    (tmp_path / "tokenizer.pkl").write_bytes(b"\x80\x02ctiktoken.core\nEncoding\n)\x81" + body + b"b.")
    with pytest.raises(CheckError) as refused:
        read_ranks(tmp_path / "tokenizer.pkl")
    assert refused.value.code == "nanochat/bad-tokenizer"


def test_data_is_prepared_with_a_tokenizer_that_was_brought(tmp_path):
    first = NanochatSection(data_dir=str(tmp_path), synthetic=True, vocab_size=400)
    prepare(first, lambda _: None)
    file = prepared_dir(first) / "tokenizer.pkl"
    assert len(torch.load(file.with_name("token_bytes.pt"), weights_only=True)) == 400
    brought = first.model_copy(update={"tokenizer_file": str(file)})
    assert find_index(brought) is None, "another tokenizer is other data"
    prepare(brought, lambda _: None)
    one, other = find_index(first), find_index(brought)
    assert one is not None and other is not None and one.content == other.content
    with pytest.raises(CheckError) as refused:
        prepare(brought.model_copy(update={"vocab_size": 500}), lambda _: None)
    assert refused.value.code == "nanochat/tokenizer-size" and refused.value.facts["have"] == 400


def test_shards_are_found_under_todays_name_too(tmp_path):
    first = NanochatSection(data_dir=str(tmp_path), synthetic=True, vocab_size=300)
    prepare(first, lambda _: None)
    (tmp_path / "base_data").rename(tmp_path / "base_data_climbmix")
    assert find_index(first) is not None
