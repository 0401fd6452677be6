import json
import os
import shutil

import numpy as np
import pytest
from PIL import Image
from safetensors.numpy import load_file

from headway.errors import CheckError
from headway.recipes.layoutmaster.build import paired_iou
from headway.recipes.layoutmaster.data import (
    baselines,
    count_train_samples,
    find_index,
    open_index,
    prepare,
    prepared_dir,
)
from headway.recipes.layoutmaster.poster import list_posters, read_poster
from headway.recipes.layoutmaster.section import LEVELS, LayoutMasterSection
from headway.recipes.layoutmaster.synthetic import write_posters
from headway.recipes.layoutmaster.trajectory import FILE, make_trajectories, read_starts, target_layout


def _quiet(line):
    pass


def _section(folder, **changes):
    small = {"image_size": 8, "max_elements": 10, "trajectory_steps": 4}
    return LayoutMasterSection(**{**small, "data_dir": str(folder), **changes})


@pytest.fixture(scope="module")
def posters(tmp_path_factory):
    folder = tmp_path_factory.mktemp("layoutmaster")
    write_posters(folder, _section(folder), num=10)
    return folder


def _poster_folder(folder, layers, canvas=None):
    (folder / "json").mkdir(parents=True)
    (folder / "parse").mkdir()
    data = {"layers": layers} | ({"canvas_size": canvas} if canvas else {})
    (folder / "json" / "a_parse_data.json").write_text(json.dumps(data))
    return folder


def _layer(order=0, **changes):
    return {"x": 0, "y": 0, "w": 100, "h": 100, "order": order, "category": "body", "src": "a.png", **changes}


def test_boxes_are_scaled_to_the_canvas_sorted_by_layer_and_trimmed(tmp_path):
    layers = [_layer(2, x=-50, w=5), _layer(1, x=1240, y=1754, w=2480, h=9999)]
    folder = _poster_folder(tmp_path / "p", layers)
    poster = read_poster(folder, _section(tmp_path))
    assert [element.id for element in poster.elements] == ["element_1", "element_0"]
    assert poster.elements[0].box == (512, 512, 512, 512)
    assert poster.elements[1].box[0] == 0 and poster.elements[1].box[2] == 10


def test_of_too_many_elements_the_lowest_layers_are_kept_with_their_own_ids(tmp_path):
    layers = [_layer(9 - n, id=f"own-{n}") for n in range(10)]
    poster = read_poster(_poster_folder(tmp_path / "p", layers), _section(tmp_path, max_elements=3))
    assert [element.id for element in poster.elements] == ["own-9", "own-8", "own-7"]


def test_an_image_is_found_by_any_of_its_names_and_only_inside_parse(tmp_path):
    layers = [
        _layer(0, src="a b.png"),
        _layer(1, src="gone"),
        _layer(2, src="gone"),
        _layer(3, src="../../secret.png"),
    ]
    folder = _poster_folder(tmp_path / "p", layers)
    for name in ("a_b.png", "1.png", "layer_2.png"):
        Image.new("RGBA", (4, 4)).save(folder / "parse" / name)
    Image.new("RGBA", (4, 4)).save(tmp_path / "secret.png")
    found = [element.image for element in read_poster(folder, _section(tmp_path)).elements]
    assert [file and file.name for file in found] == ["a_b.png", "1.png", "layer_2.png", None]


def test_layers_without_a_file_are_dropped_as_the_original_drops_them(tmp_path):
    layers = [_layer(0), _layer(1, src="gone", files={"layer": "/elsewhere/real.png"}), _layer(2, files={})]
    folder = _poster_folder(tmp_path / "p", layers)
    Image.new("RGBA", (4, 4)).save(folder / "parse" / "real.png")
    (element,) = read_poster(folder, _section(tmp_path)).elements
    assert element.image is not None and element.image.name == "real.png" and element.id == "element_1"


def test_starts_of_elements_in_another_order_are_refused(posters):
    folder = list_posters(posters)[0]
    target, _ = target_layout(read_poster(folder, _section(posters)), 10)
    assert read_starts(folder, target).shape == (len(LEVELS), 10, 6)
    with pytest.raises(CheckError, match="its target is not the poster's"):
        read_starts(folder, target[::-1])


@pytest.mark.parametrize(
    "layers",
    [
        [],
        "text",
        [_layer(x="1")],
        [_layer(w=True)],
        [_layer(h=1e99)],
        [{"x": 1}],
        [_layer(id="same"), _layer(id="same")],
    ],
)
def test_a_json_that_is_no_poster_is_refused_by_name(tmp_path, layers):
    folder = _poster_folder(tmp_path / "p", layers)
    with pytest.raises(CheckError) as refused:
        read_poster(folder, _section(tmp_path))
    assert refused.value.code == "layoutmaster/bad-json" and "a_parse_data.json" in refused.value.text()


def test_trajectories_go_from_the_start_to_the_target_in_the_published_shapes(posters):
    section = _section(posters, trajectory_steps=50, max_elements=25)
    poster = read_poster(list_posters(posters)[0], section)
    made, (target, mask) = make_trajectories(poster, section), target_layout(poster, 25)
    assert len(made) == 5 * len(LEVELS)
    for level in ("noise_0.1", "noise_0.5"):
        for kind in ("linear", "smooth"):
            way = made[f"{level}/{kind}_trajectory"]
            assert way.shape == (50, 25, 6) and np.allclose(way[0], made[f"{level}/start_layout"], atol=1e-3)
            assert np.allclose(way[-1], target, atol=1e-3)
        assert not made[f"{level}/start_layout"][mask == 0].any()
    assert mask.sum() == len(poster.elements) and (target[mask == 1, 5] == 1).all()


def test_a_higher_level_disturbs_more(posters):
    gaps = []
    for level in (0, 4):
        targets = [target_layout(read_poster(folder, _section(posters)), 10)[0] for folder in list_posters(posters)]
        pairs = zip(list_posters(posters), targets, strict=True)
        starts = [read_starts(folder, target)[level] for folder, target in pairs]
        gaps.append(np.abs(np.stack(starts) - np.stack(targets))[..., :2].mean())
    assert gaps[1] > 2 * gaps[0]


def test_names_and_slots_of_the_synthetic_set_tell_no_layer(posters):
    ranks = []
    for folder in list_posters(posters):
        elements = read_poster(folder, _section(posters)).elements
        by_name = sorted(range(len(elements)), key=lambda place: elements[place].id)
        ranks.append(np.corrcoef(by_name, range(len(elements)))[0, 1])
    assert abs(np.mean(ranks)) < 0.5


def test_prepared_arrays_hold_every_element_once_and_split_by_poster(posters):
    section = _section(posters)
    counts = prepare(section, _quiet)
    folder, index = open_index(section)
    assert (counts, index.num_train) == ({"train_samples": 8, "val_samples": 2}, 8)
    assert index.names == sorted(index.names) and index.missing_images == 0
    arrays = load_file(folder / "layouts.safetensors")
    assert (folder / "images.bin").stat().st_size == arrays["counts"].sum() * 3 * 8 * 8
    assert arrays["start"].shape == (10, 5, 10, 6) and arrays["backdrop"].sum() == 10
    assert count_train_samples(section) == 8


def test_random_boxes_score_about_a_tenth_and_the_mean_box_more(posters):
    section = _section(posters)
    prepare(section, _quiet)
    found = baselines(section)
    assert 0.02 < found["random_mean_iou"] < 0.15
    assert found["random_mean_iou"] < found["constant_mean_iou"] < 0.4
    assert paired_iou(np.array([0.0, 0, 2, 2]), np.array([1.0, 0, 2, 2])) == pytest.approx(1 / 3)


def test_a_changed_poster_gets_a_new_folder_and_ranks_refuse_until_then(posters, tmp_path):
    shutil.copytree(posters, tmp_path / "data")
    section = _section(tmp_path / "data")
    prepare(section, _quiet)
    before = prepared_dir(section)
    image = next((list_posters(tmp_path / "data")[0] / "parse").glob("*.png"))
    Image.new("RGBA", (9, 9), (1, 2, 3, 255)).save(image)
    os.utime(image, ns=(1, 1))
    assert find_index(section) is None
    with pytest.raises(CheckError) as refused:
        open_index(section)
    assert refused.value.code == "layoutmaster/not-prepared"
    prepare(section, _quiet)
    assert open_index(section)[0] != before


def test_other_settings_do_not_meet_in_one_prepared_folder(posters):
    sections = [_section(posters), _section(posters, image_size=9), _section(posters, train_ratio=0.5)]
    assert len({prepared_dir(section) for section in sections}) == 3


def test_missing_posters_trajectories_and_pickles_say_what_to_type(tmp_path):
    with pytest.raises(CheckError) as refused:
        prepare(_section(tmp_path / "none"), _quiet)
    assert refused.value.code == "layoutmaster/no-posters"
    for name in ("a", "b"):
        folder = _poster_folder(tmp_path / "data" / name, [_layer()])
    with pytest.raises(CheckError) as refused:
        prepare(_section(tmp_path / "data", train_ratio=0.5), _quiet)
    assert "trajectory --data_root" in refused.value.hint()
    for name in ("a", "b"):
        (folder.parent / name / "trajectories.pkl").write_bytes(b"")
    with pytest.raises(CheckError) as refused:
        prepare(_section(tmp_path / "data", train_ratio=0.5), _quiet)
    assert refused.value.code == "layoutmaster/only-pickle" and "convert" in refused.value.hint("zh")


def test_a_broken_image_and_a_cut_off_trajectory_file_are_named(posters, tmp_path):
    shutil.copytree(posters, tmp_path / "data", ignore=shutil.ignore_patterns(".prepared"))
    first, second = list_posters(tmp_path / "data")[:2]
    image = sorted((first / "parse").glob("*.png"))[0]
    kept = image.read_bytes()
    image.write_bytes(b"\x89PNG broken")
    with pytest.raises(CheckError) as refused:
        prepare(_section(tmp_path / "data"), _quiet)
    assert refused.value.code == "layoutmaster/bad-image" and image.name in refused.value.text()
    image.write_bytes(kept)
    (second / FILE).write_bytes((second / FILE).read_bytes()[:100])
    with pytest.raises(CheckError) as refused:
        prepare(_section(tmp_path / "data"), _quiet)
    assert refused.value.code == "layoutmaster/bad-trajectories"
    assert not list((tmp_path / "data" / ".prepared").glob("*"))


def test_a_synthetic_set_is_marked_and_completed_when_it_was_cut_short(tmp_path, monkeypatch):
    from headway.recipes.layoutmaster import build

    monkeypatch.setattr(build, "NUM_POSTERS", 5)
    monkeypatch.setattr(build, "write_posters", lambda folder, section: write_posters(folder, section, num=5))
    section = _section(tmp_path, synthetic=True, train_ratio=0.6)
    lines = []
    prepare(section, lines.append)
    assert len(list_posters(tmp_path)) == 5 and any("5 synthetic posters" in line for line in lines)
    shutil.rmtree(list_posters(tmp_path)[2])
    prepare(section, _quiet)
    assert len(list_posters(tmp_path)) == 5
    with pytest.raises(CheckError) as refused:
        prepare(_section(tmp_path, train_ratio=0.6), _quiet)
    assert refused.value.code == "layoutmaster/only-synthetic"


def test_a_missing_image_is_black_and_said(posters, tmp_path):
    shutil.copytree(posters, tmp_path / "data", ignore=shutil.ignore_patterns(".prepared"))
    section, lines = _section(tmp_path / "data"), []
    first = list_posters(tmp_path / "data")[0]
    for image in (first / "parse").glob("*.png"):
        image.unlink()
    prepare(section, lines.append)
    assert "black" in lines[-1]
    num = len(read_poster(first, section).elements)
    images = np.fromfile(open_index(section)[0] / "images.bin", np.uint8).reshape(-1, 3, 8, 8)
    assert not images[:num].any() and images[num:].any()
