import itertools
import shutil

import numpy as np
import pytest
from PIL import Image

from headway.config import load_config
from headway.errors import CheckError, ConfigError
from headway.recipes.tfnet.clips import ClipData, padded_length
from headway.recipes.tfnet.data import (
    Clip,
    _constant_answers,
    baseline,
    count_train_samples,
    least_frames,
    open_dataset,
    prepare,
)
from headway.recipes.tfnet.glosses import make_vocabulary
from headway.recipes.tfnet.labels import HEADER, read_labels
from headway.recipes.tfnet.preset import RECIPE
from headway.recipes.tfnet.section import TfnetSection


def _write_clip(folder, frames, side=20):
    folder.mkdir(parents=True)
    for number in range(frames):
        Image.fromarray(np.full((side, side, 3), number * 5, np.uint8)).save(folder / f"{number + 1:05d}.png")


@pytest.fixture
def cecsl(tmp_path):
    """Three clips a split of 16, 20 and 24 frames."""
    for split in ("train", "dev", "test"):
        rows = [",".join(HEADER)]
        for number, glosses in enumerate(("我/后2/。", "称赞（我）/哈/哈", "你/。")):
            name = f"{split}-{number + 1:05d}"
            _write_clip(tmp_path / "video" / split / "A" / name, 16 + 4 * number)
            rows.append(f"{name},A,句子,{glosses},")
        (tmp_path / "label").mkdir(exist_ok=True)
        (tmp_path / "label" / f"{split}.csv").write_text("\n".join(rows) + "\n", encoding="utf-8")
    return tmp_path


def _section(root, **changes):
    small = {"frame_size": 20, "crop_size": 16, "min_frames": 8, "max_frames": 40}
    return TfnetSection(**{**small, "data_dir": str(root), **changes})


def test_a_row_cut_short_is_reported_with_its_line_and_the_rest_is_kept(cecsl):
    path = cecsl / "label" / "train.csv"
    path.write_text(path.read_text(encoding="utf-8") + "train-00004,B,我", encoding="utf-8")
    labels = read_labels(path, "original")
    assert len(labels.rows) == 3 and labels.short_lines == (5,)
    told = []
    prepare(_section(cecsl), told.append)
    assert any("line" in text and "5" in text for text in told)


def test_a_file_with_another_header_is_refused(cecsl):
    (cecsl / "label" / "dev.csv").write_text("name,gloss\n", encoding="utf-8")
    with pytest.raises(CheckError) as refused:
        open_dataset(_section(cecsl))
    assert refused.value.code == "tfnet/bad-header"


def test_missing_clips_are_named(cecsl):
    shutil.rmtree(cecsl / "video" / "dev" / "A" / "dev-00002")
    with pytest.raises(CheckError) as refused:
        open_dataset(_section(cecsl))
    assert refused.value.code == "tfnet/missing-clips" and "A/dev-00002" in str(refused.value)


def test_a_video_without_a_decoder_says_what_to_install(cecsl):
    shutil.rmtree(cecsl / "video" / "dev" / "A" / "dev-00002")
    (cecsl / "video" / "dev" / "A" / "dev-00002.mp4").write_bytes(b"")
    with pytest.raises(CheckError) as refused:
        open_dataset(_section(cecsl))
    assert refused.value.code in ("tfnet/no-decoder", "tfnet/bad-frame")


def test_ctc_needs_four_frames_a_label_and_a_blank_between_repeats():
    assert [least_frames(words) for words in (("a",), ("a", "b"), ("a", "a"))] == [1, 5, 9]


def test_clips_too_short_for_their_labels_stop_the_run_or_are_left_out_by_name(cecsl):
    # 称赞/哈/哈 needs 13 frames; a limit of 12 leaves too few.
    with pytest.raises(CheckError) as refused:
        open_dataset(_section(cecsl, max_frames=12))
    assert refused.value.code == "tfnet/short-clips" and "train-00002" in str(refused.value)
    left = open_dataset(_section(cecsl, max_frames=12, short_clips="skip"))
    assert [clip.number for clip in left.clips["train"]] == ["train-00001", "train-00003"]
    assert len(left.clips["dev"]) == 3 and any("train-00002" in note for note in left.notes)


def test_variants_of_a_sign_share_a_word(cecsl):
    assert open_dataset(_section(cecsl)).vocabulary.words == ("。", "你", "后", "哈", "我", "称赞")
    assert open_dataset(_section(cecsl, text_cleanup="no_punct")).vocabulary.words == ("你", "后", "哈", "我", "称赞")
    assert count_train_samples(_section(cecsl)) == 3


def test_the_constant_floor_is_the_best_of_the_usual_answers(cecsl):
    assert 0 < baseline(_section(cecsl))["constant_wer"] <= 100


@pytest.mark.parametrize("frames", [1, 3, 4, 5, 17, 40])
def test_two_convolutions_and_poolings_leave_a_quarter_of_the_frames(frames):
    length = padded_length(frames)
    assert ((length - 4) // 2 - 4) // 2 == -(-frames // 4)


def _data(cecsl, *, is_train=True, seed=3, **changes):
    section = _section(cecsl, **changes)
    found = open_dataset(section)
    return ClipData(found.clips["train"], found.vocabulary, section, seed=seed, is_train=is_train)


def test_a_training_clip_is_a_pure_function_of_seed_index_and_epoch(cecsl):
    first, again = _data(cecsl), _data(cecsl, cache_bytes=0)
    one = first.arrays(np.array([1]), np.array([5]))
    first.arrays(np.array([0, 2]), np.array([1, 2]))
    assert all(np.array_equal(one[key], again.arrays(np.array([1]), np.array([5]))[key]) for key in one)
    epochs = [first.arrays(np.array([1]), np.array([epoch]))["frames"] for epoch in range(6)]
    assert any(a.shape != b.shape or not np.array_equal(a, b) for a, b in itertools.pairwise(epochs))


def test_no_augmentation_ever_makes_a_clip_too_short_for_its_labels(cecsl):
    data = _data(cecsl, time_rescale=0.9, min_frames=1)
    for epoch in range(20):
        batch = data.arrays(np.array([1]), np.array([epoch]))
        assert batch["lengths"][0] >= 4  # three labels and one repeat


def test_ends_are_padded_by_their_own_frame_and_batches_to_the_bucket(cecsl):
    data = _data(cecsl, is_train=False, bucket=24)
    batch = data.arrays(np.array([0, 2]), np.array([0, 0]))
    assert batch["frames"].shape == (2, 48, 3, 16, 16) and batch["lengths"].tolist() == [4, 6]
    clip = batch["frames"][0, :, 0, 0, 0]
    assert clip[:7].tolist() == [0] * 7 and set(clip[21:].tolist()) == {75}
    assert batch["label_lengths"].tolist() == [3, 2] and batch["labels"][1].tolist()[2:] == [0]


def test_a_clip_is_mirrored_as_a_whole(tmp_path):
    folder = tmp_path / "clip"
    folder.mkdir()
    picture = np.zeros((16, 16, 3), np.uint8)
    picture[:, 8:] = 200
    for number in range(8):
        Image.fromarray(picture).save(folder / f"{number}.png")
    section = _section(tmp_path, frame_size=16, time_rescale=0.0)
    clip = Clip(folder, "one", ("a",), 8)
    data = ClipData([clip], make_vocabulary([("a",)], "original"), section, seed=0, is_train=True)
    sides = [data.arrays(np.array([0]), np.array([epoch]))["frames"][0, :, 0, 0, 0] for epoch in range(12)]
    assert all(len(set(side.tolist())) == 1 for side in sides)
    assert {int(side[0]) for side in sides} == {0, 200}


def test_the_synthetic_set_has_cecsls_layout_and_its_oddities(tmp_path, monkeypatch):
    monkeypatch.setattr("headway.recipes.tfnet.synthetic.CLIPS", {"train": 8, "dev": 2, "test": 2})
    told = []
    section = _section(tmp_path / "made", synthetic=True)
    prepare(section, told.append)
    found = open_dataset(section)
    assert len(found.clips["train"]) == 8 and found.clips["train"][0].words == ("哈", "哈", "。")
    assert any("罕见" in note for note in found.notes) and any("122" in note or "10" in note for note in found.notes)
    with pytest.raises(CheckError) as refused:
        prepare(_section(tmp_path / "made"), told.append)
    assert refused.value.code == "tfnet/only-synthetic"


def test_labels_that_are_named_and_missing_are_an_error_whatever_synthetic_data_there_is(tmp_path, monkeypatch):
    monkeypatch.setattr("headway.recipes.tfnet.synthetic.CLIPS", {"train": 8, "dev": 2, "test": 2})
    prepare(_section(tmp_path, synthetic=True), lambda _: None)
    for key in ("train_label_path", "valid_label_path", "test_label_path"):
        with pytest.raises(CheckError) as refused:
            prepare(_section(tmp_path, synthetic=True, **{key: str(tmp_path / "own.csv")}), lambda _: None)
        assert (refused.value.code, refused.value.facts["file"]) == ("tfnet/no-named-labels", tmp_path / "own.csv")
        assert f"task.{key}" in refused.value.hint("zh") and "synthetic" not in refused.value.hint("en")


def test_named_labels_go_with_synthetic_clips_and_nobodys_file_is_removed(tmp_path, monkeypatch):
    monkeypatch.setattr("headway.recipes.tfnet.synthetic.CLIPS", {"train": 8, "dev": 2, "test": 2})
    prepare(_section(tmp_path / "d", synthetic=True), lambda _: None)
    own = tmp_path / "own.csv"
    shutil.copy(tmp_path / "d" / "label" / "dev.csv", own)
    shutil.rmtree(tmp_path / "d")
    prepare(_section(tmp_path / "d", synthetic=True, valid_label_path=str(own)), lambda _: None)
    kept = tmp_path / "d" / "label" / "mine.csv"
    (tmp_path / "d" / "label" / "train.csv").rename(kept)
    with pytest.raises(CheckError) as refused:
        prepare(_section(tmp_path / "d", synthetic=True, valid_label_path=str(own)), lambda _: None)
    assert refused.value.code == "tfnet/no-labels" and kept.is_file()


def test_an_unfinished_synthetic_set_is_made_again_and_clips_without_labels_are_never_replaced(tmp_path, monkeypatch):
    monkeypatch.setattr("headway.recipes.tfnet.synthetic.CLIPS", {"train": 8, "dev": 2, "test": 2})
    half, own = tmp_path / "half", tmp_path / "own"
    prepare(_section(half, synthetic=True), lambda _: None)
    shutil.rmtree(half / "label")
    prepare(_section(half, synthetic=True), lambda _: None)
    assert (half / "label" / "train.csv").exists()
    (own / "video" / "mine").mkdir(parents=True)
    with pytest.raises(CheckError) as refused:
        prepare(_section(own, synthetic=True), lambda _: None)
    assert refused.value.code == "tfnet/no-labels" and (own / "video" / "mine").is_dir()


def test_the_guides_own_config_is_read_and_what_has_no_effect_is_said(tmp_path):
    file = tmp_path / "gpu_config.json"
    file.write_text(
        """{"dataset": {"name": "CE-CSL", "crop_size": 160, "max_frames": 50},
        "model": {"hidden_size": 256, "device_target": "GPU", "enable_graph_kernel": true,
                  "enable_auto_mixed_precision": true},
        "training": {"batch_size": 8, "learning_rate": 1e-4, "num_epochs": 55, "gradient_clip_norm": 1.0,
                     "enable_data_sink": false, "early_stopping_patience": 10, "max_rowsize": 32,
                     "save_interval": 5, "eval_interval": 1},
        "gpu_optimization": {"enable_graph_mode": false, "enable_profiling": true, "max_device_memory": "8GB"},
        "loss": {"ctc_blank_id": 0, "kd_temperature": 8, "kd_weight": 25.0}}"""
    )
    loaded = load_config(file, recipe=RECIPE, overrides=["task.frame_size=256"])
    config = loaded.config
    assert (config.task.crop_size, config.task.hidden_size, config.batch.per_device) == (160, 256, 8)
    assert (config.train.epochs, config.train.steps, config.eval.patience) == (55, None, 10)
    assert (config.save.every_epochs, config.save.every, config.eval.every_epochs, config.eval.every) == (5, 0, 1, 0)
    assert config.task.amp_level == "O2" and not config.task.data_sink
    assert not config.task.graph_mode and config.task.profiling and config.task.max_device_memory == "8GB"
    assert {facts["key"] for code, facts in loaded.warnings if code == "config/ignored"} >= {
        "dataset.name",
        "training.max_rowsize",
        "loss.ctc_blank_id",
    }


def test_a_crop_larger_than_the_frame_is_refused():
    with pytest.raises(ConfigError) as refused:
        TfnetSection(crop_size=64, frame_size=32)
    assert refused.value.code == "tfnet/crop"


def test_a_queue_on_the_device_needs_batches_of_one_shape():
    with pytest.raises(ConfigError) as refused:
        TfnetSection(data_sink=True, max_frames=230, bucket=16)
    assert refused.value.code == "tfnet/sink-shape" and refused.value.facts["want"] == 244
    assert TfnetSection(data_sink=True, max_frames=230, bucket=244).data_sink


@pytest.mark.parametrize(("given", "level"), [(True, "O2"), (False, "O0"), ("O1", "O1"), ("O3", "O3")])
def test_the_guides_switch_for_mixed_precision_is_a_level(given, level):
    assert TfnetSection(amp_level=given).amp_level == level


def test_the_closed_form_gives_the_published_parameter_count():
    assert TfnetSection().num_params(3476) == 73_154_195
    assert TfnetSection().num_params(3515) == 73_274_003


def test_the_best_constant_answer_does_not_depend_on_the_order_of_sets():
    sentences = [("b", "a", "c", "."), ("c", "b", "a", "."), ("a", "c", "b", "?"), ("b", "c", "a", "?")]
    wanted = [["."], ["a", "."], ["a", "b", "."]]
    assert all(_constant_answers(list(order)) == wanted for order in itertools.permutations(sentences))
