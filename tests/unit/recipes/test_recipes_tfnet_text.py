import json

import numpy as np
import pytest

from fakes.tfnet_set import write_small
from headway.errors import CheckpointError
from headway.recipes.tfnet.glosses import BLANK, check_vocabulary, clean_gloss, make_vocabulary, split_glosses
from headway.recipes.tfnet.measure import count_edits, decode_beam, decode_greedy, rates, sum_errors
from headway.recipes.tfnet.parts import TfnetParts
from headway.recipes.tfnet.section import TfnetSection
from headway.task import RunConfig


@pytest.mark.parametrize(
    ("word", "clean"),
    [
        ("称赞（我）", "称赞"),
        ("a(b)c[d]{e}", "ac"),
        ("后2", "后"),
        ("退12", "退1"),
        ("007", "7"),
        ("12", "12"),
        ("?", "？"),
        (",好", "，好"),
        ("。", "。"),
        ("5", "5"),
    ],
)
def test_glosses_are_cleaned_as_the_original_does(word, clean):
    assert clean_gloss(word) == clean


def test_no_punct_drops_words_of_punctuation_and_original_keeps_them():
    assert split_glosses("我/好？/。", "original") == ("我", "好？", "。")
    assert split_glosses("我/好？/。", "no_punct") == ("我", "好")


def test_the_vocabulary_is_sorted_by_code_point_and_leaves_0_to_the_blank():
    words = make_vocabulary([("你", "我"), ("b", "我"), ("A",)], "original")
    assert words.words == ("A", "b", "你", "我")
    assert words.encode(["我", "A"]) == [4, 1] and words.decode([4, 1]) == ["我", "A"]
    assert words.to_json()["idx2word"][BLANK] == " " and words.to_json()["vocab_size"] == 4


def test_weights_with_another_vocabulary_are_refused_and_the_same_one_passes_through_json():
    words = make_vocabulary([("你", "我")], "original")
    check_vocabulary(json.loads(json.dumps(words.to_json())), words)
    with pytest.raises(CheckpointError) as refused:
        check_vocabulary(words.to_json(), make_vocabulary([("他", "我")], "original"))
    assert refused.value.code == "tfnet/vocabulary" and "他" in str(refused.value) and "你" in str(refused.value)


def test_edits_tell_substitutions_deletions_and_insertions_apart():
    found = count_edits("abcd", "axc")
    assert (found.sub, found.dele, found.ins, found.length) == (1, 1, 0, 4)
    assert count_edits("ab", "abc").ins == 1
    assert count_edits("", "abc").ins == 3 and count_edits("abc", "").dele == 3


def test_edits_do_not_overflow_past_255_words():
    assert count_edits(range(300), []).errors == 300


def test_macro_and_corpus_rates_differ_on_sentences_of_unequal_length():
    found = rates(sum_errors(["ab", "abcdefgh"], ["", "abcdefgh"]))
    assert found["wer"] == 50.0 and found["wer_corpus"] == 20.0 and found["del"] == 20.0


def _logits(path, words=4):
    out = np.full((len(path), words), -5, np.float32)
    out[np.arange(len(path)), path] = 5
    return out


def test_greedy_decoding_merges_repeats_and_drops_blanks():
    assert decode_greedy(_logits([0, 1, 1, 0, 1, 2, 2, 0])) == [1, 1, 2]
    assert decode_greedy(_logits([0, 0])) == []


def test_beam_search_agrees_with_greedy_where_frames_are_sure():
    path = [0, 1, 1, 0, 1, 2, 2, 0]
    assert decode_beam(_logits(path), 10) == [1, 1, 2]


def test_beam_search_adds_paths_up_where_greedy_takes_one():
    # Each frame prefers the blank, yet "one 1 somewhere" is likelier than "no word at all".
    logits = np.log(np.array([[0.6, 0.4], [0.6, 0.4]], np.float32))
    assert decode_greedy(logits) == [] and decode_beam(logits, 10) == [1]


def test_what_was_read_is_a_table_with_labels_and_errors_whose_columns_are_even(tmp_path):
    section = TfnetSection(data_dir=str(write_small(tmp_path)))
    parts = TfnetParts(RunConfig(task=section))
    clips = parts.dataset.clips["train"]
    own = parts.vocabulary.encode(clips[0].words)
    rows = parts.table(clips[:2], [own, []]).splitlines()
    assert rows[0].split() == ["clip", "prediction", "label", "errors"]
    words = " ".join(clips[0].words)
    assert rows[1].split("  ")[0] == clips[0].number and rows[1].count(words) == 2
    assert rows[1].endswith(f"0/{len(clips[0].words)}") and rows[2].endswith("{0}/{0}".format(len(clips[1].words)))
    assert len({len(row.encode("gbk")) for row in rows[1:]}) == 1, "a Chinese character takes two columns"
