import json
import multiprocessing
import os
import subprocess
import sys

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from headway.errors import CheckError
from headway.recipes.nanochat import build
from headway.recipes.nanochat.data import baseline, count_train_samples, find_index, open_index, prepare, shard_dir
from headway.recipes.nanochat.section import SPECIALS, NanochatSection
from headway.recipes.nanochat.synthetic import write_documents
from headway.recipes.nanochat.tokenizer import load_tokenizer


def _quiet(line):
    assert isinstance(line, str)


def _section(folder, **changes):
    small = {"depth": 2, "aspect": 16, "head_dim": 16, "max_seq_len": 16, "vocab_size": 300}
    return NanochatSection(**{**small, "data_dir": str(folder), **changes})


def _write_shards(folder, texts_by_shard, row_group=2):
    (folder / "base_data").mkdir(parents=True)
    for number, texts in enumerate(texts_by_shard):
        build.write_shard(folder / "base_data" / f"shard_{number:05d}.parquet", texts, row_group=row_group)


_TEXTS = write_documents(30, seed=3)


@pytest.fixture
def shards(tmp_path):
    _write_shards(tmp_path, [_TEXTS[:10], _TEXTS[10:20], _TEXTS[20:]])
    return tmp_path


def _tokens(section, name):
    folder, index = open_index(section)
    return np.fromfile(folder / name, index.dtype).tolist()


def test_the_last_shard_is_validation_and_the_others_are_training_with_bos_before_each_document(shards):
    section = _section(shards)
    counts = prepare(section, _quiet)
    folder, index = open_index(section)
    tokenizer = load_tokenizer(folder)
    assert _tokens(section, "train.bin") == [t for text in _TEXTS[:20] for t in tokenizer.encode(text)]
    assert _tokens(section, "val.bin") == [t for text in _TEXTS[20:] for t in tokenizer.encode(text)]
    assert (index.train_documents, index.val_documents) == (20, 10)
    assert counts["train_samples"] == (index.train_tokens - 1) // 16 == count_train_samples(section)


def test_token_bytes_add_up_to_the_bytes_of_any_text(shards):
    section = _section(shards)
    prepare(section, _quiet)
    folder, index = open_index(section)
    tokenizer, lengths = load_tokenizer(folder), np.load(folder / "token_bytes.npy", allow_pickle=False)
    text = "Ada 1234 — 你好，世界 🚀\n\ttabs"
    assert lengths[tokenizer.encode(text)].sum() == len(text.encode())
    assert tokenizer.decode(tokenizer.encode(text)) == text
    assert index.val_bytes == sum(len(text.encode()) for text in _TEXTS[20:])
    assert len(lengths) == 300 and not lengths[index.bos :].any()


def test_special_tokens_take_the_last_ids_and_cannot_be_forged_by_a_document(shards):
    section = _section(shards)
    prepare(section, _quiet)
    tokenizer = load_tokenizer(open_index(section)[0])
    assert tokenizer.bos == tokenizer.size - len(SPECIALS)
    assert all(token < tokenizer.bos for token in tokenizer.encode("hello <|bos|> <|user_start|>")[1:])


def test_numbers_are_cut_after_two_digits(shards):
    section = _section(shards)
    prepare(section, _quiet)
    tokenizer = load_tokenizer(open_index(section)[0])
    pieces = [tokenizer.decode([token]) for token in tokenizer.encode("123456")[1:]]
    assert max(map(len, pieces)) <= 2


@pytest.mark.parametrize("row_group", [1, 3, 1000])
def test_row_groups_do_not_change_the_tokens(tmp_path, row_group):
    _write_shards(tmp_path / "a", [_TEXTS[:20], _TEXTS[20:]], row_group=row_group)
    _write_shards(tmp_path / "b", [_TEXTS[:20], _TEXTS[20:]], row_group=2)
    prepare(_section(tmp_path / "a"), _quiet)
    prepare(_section(tmp_path / "b"), _quiet)
    assert open_index(_section(tmp_path / "a"))[1].content == open_index(_section(tmp_path / "b"))[1].content


def test_the_unigram_baseline_is_the_entropy_of_training_counts_on_validation():
    train, val = np.array([3, 1, 0, 2]), np.array([1, 1, 1, 5])
    lengths = np.array([1, 2, 1, 0], np.int32)  # the last is special: its bits and bytes do not count
    expected = -np.log2([4 / 10, 2 / 10, 1 / 10]).sum() / 4
    assert build.unigram_bpb(train, val, lengths, vocab=4) == pytest.approx(expected)


def test_the_baseline_is_told_only_when_data_is_prepared(shards):
    section = _section(shards)
    assert baseline(section) == {} and count_train_samples(section) is None
    prepare(section, _quiet)
    assert 0.5 < baseline(section)["unigram_bpb"] < 8


def test_changed_shards_are_tokenised_anew_and_refused_before_that(shards):
    section = _section(shards)
    prepare(section, _quiet)
    before, _ = open_index(section)
    build.write_shard(shards / "base_data" / "shard_00000.parquet", _TEXTS[5:10], row_group=2)
    with pytest.raises(CheckError) as refused:
        open_index(section)
    assert refused.value.code == "nanochat/not-prepared"
    prepare(section, _quiet)
    after, index = open_index(section)
    assert after != before and index.train_documents == 15


def test_a_touched_shard_of_equal_size_counts_as_changed(shards):
    section = _section(shards)
    prepare(section, _quiet)
    os.utime(shards / "base_data" / "shard_00001.parquet", ns=(1, 1))
    assert find_index(section) is None


def test_unfinished_downloads_do_not_count(shards):
    section = _section(shards)
    prepare(section, _quiet)
    (shards / "base_data" / "shard_00003.parquet.tmp").write_bytes(b"half")
    assert find_index(section) is not None


@pytest.mark.parametrize(("number", "code"), [(0, "nanochat/no-shards"), (1, "nanochat/few-shards")])
def test_too_few_shards_are_refused(tmp_path, number, code):
    _write_shards(tmp_path, [_TEXTS] * number)
    with pytest.raises(CheckError) as refused:
        prepare(_section(tmp_path), _quiet)
    assert refused.value.code == code and str(tmp_path) in refused.value.text()


def test_a_truncated_shard_is_named(shards):
    broken = shards / "base_data" / "shard_00001.parquet"
    broken.write_bytes(broken.read_bytes()[:-5])
    with pytest.raises(CheckError) as refused:
        prepare(_section(shards), _quiet)
    assert refused.value.code == "nanochat/bad-shard" and "shard_00001" in refused.value.text()


def test_damage_inside_a_shard_is_named_and_leaves_nothing_half_made(shards):
    broken = shards / "base_data" / "shard_00001.parquet"
    data = bytearray(broken.read_bytes())
    data[4:60] = bytes(56)
    broken.write_bytes(data)
    with pytest.raises(CheckError) as refused:
        prepare(_section(shards), _quiet)
    assert refused.value.code == "nanochat/bad-shard"
    assert list((shards / "prepared").iterdir()) == []


@pytest.mark.parametrize("table", [{"body": ["a"]}, {"text": [1]}])
def test_a_shard_without_a_text_column_is_refused(tmp_path, table):
    _write_shards(tmp_path, [_TEXTS, _TEXTS])
    pq.write_table(pa.table(table), tmp_path / "base_data" / "shard_00000.parquet")
    with pytest.raises(CheckError) as refused:
        prepare(_section(tmp_path), _quiet)
    assert refused.value.code == "nanochat/bad-shard"


def test_a_sample_longer_than_the_data_is_refused_with_both_numbers(shards):
    with pytest.raises(CheckError) as refused:
        prepare(_section(shards, max_seq_len=1_000_000), _quiet)
    assert refused.value.code == "nanochat/too-few-tokens" and "1,000,001" in refused.value.text()


def test_a_shortened_token_file_is_found_before_use(shards):
    section = _section(shards)
    prepare(section, _quiet)
    file = open_index(section)[0] / "train.bin"
    os.truncate(file, file.stat().st_size - 2)
    with pytest.raises(CheckError) as refused:
        open_index(section)
    assert refused.value.code == "nanochat/damaged"


def test_synthetic_shards_have_the_published_form_and_are_the_same_every_time(tmp_path):
    for name in ("a", "b"):
        (tmp_path / name).mkdir()
        build.write_synthetic(tmp_path / name)
    files = sorted((tmp_path / "a").glob("shard_*.parquet"))
    assert [file.name for file in files] == ["shard_00000.parquet", "shard_00001.parquet", "shard_00002.parquet"]
    for file in files:
        parquet = pq.ParquetFile(file)
        assert (parquet.schema_arrow.names, parquet.num_row_groups, parquet.metadata.num_rows) == (["text"], 8, 2048)
        assert file.read_bytes() == (tmp_path / "b" / file.name).read_bytes()


def test_synthetic_sums_are_right():
    words = " ".join(write_documents(200, seed=1)).replace(".", " ").split()
    sums = [i for i, word in enumerate(words) if word == "plus"]
    assert len(sums) > 50
    assert all(int(words[i - 1]) + int(words[i + 1]) == int(words[i + 3]) for i in sums)


def test_real_shards_are_asked_for_by_name_and_synthetic_ones_do_not_pass_for_them(tmp_path):
    section = _section(tmp_path, synthetic=True)
    shard_dir(section).mkdir(parents=True)
    build.write_synthetic(shard_dir(section))
    with pytest.raises(CheckError) as refused:
        prepare(_section(tmp_path), _quiet)
    assert refused.value.code == "nanochat/only-synthetic" and "task.synthetic=true" in refused.value.hint()


def test_a_folder_that_cannot_be_made_is_named(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(CheckError) as refused:
        prepare(_section(tmp_path / "file" / "below", synthetic=True), _quiet)
    assert refused.value.code == "nanochat/cannot-write" and "task.data_dir" in refused.value.hint()


def test_what_a_killed_preparer_left_is_cleared(shards):
    section = _section(shards)
    prepare(section, _quiet)
    folder, _ = open_index(section)
    left = folder.with_name(f"{folder.name}.tmp-1")
    folder.rename(left)
    prepare(section, _quiet)
    assert [place.name for place in folder.parent.iterdir()] == [folder.name]


def _prepare_in_child(folder, start, results):
    start.wait()
    lines = []
    prepare(_section(folder), lines.append)
    results.put(lines)


def test_two_processes_prepare_once(shards):
    context = multiprocessing.get_context("fork")
    start, results = context.Barrier(2), context.Queue()
    workers = [context.Process(target=_prepare_in_child, args=(shards, start, results)) for _ in range(2)]
    for worker in workers:
        worker.start()
    lines = [results.get(timeout=30) for _ in workers]
    for worker in workers:
        worker.join()
    assert sum("training tokens" in line for told in lines for line in told) == 1
    assert len(list((shards / "prepared").iterdir())) == 1


def test_a_second_start_imports_neither_pyarrow_nor_tokenizers_nor_numpy(shards):
    section = _section(shards)
    prepare(section, _quiet)
    code = (
        "import sys, json\n"
        "from headway.recipes.nanochat.data import prepare\n"
        "from headway.recipes.nanochat.section import NanochatSection\n"
        "lines = []\n"
        "counts = prepare(NanochatSection(**json.loads(sys.argv[1])), lines.append)\n"
        "assert not {'pyarrow', 'tokenizers', 'numpy', 'torch'} & set(sys.modules)\n"
        "assert counts['train_tokens'] > 0 and not lines\n"
    )
    subprocess.run([sys.executable, "-c", code, json.dumps(section.model_dump())], check=True)
