"""Detectors and segmenters are found by the names people write, and walked by their formulas."""

from __future__ import annotations

import json

import pytest
from click.testing import CliRunner

from headway.cli.plan import plan
from headway.errors import UsageError
from headway.planner.models.convnet import Tape
from headway.planner.models.public import list_models
from headway.planner.models.vision.networks import find_network


def ask(*words: str) -> dict:
    shown = CliRunner().invoke(plan, ["--model", *words, "--json"], catch_exceptions=False)
    return json.loads(shown.stdout)


@pytest.mark.parametrize(
    ("name", "kind", "millions"),
    [
        ("mask-rcnn-r50", "detector", 44.2),
        ("maskrcnn_resnet50_fpn", "detector", 44.2),
        ("Mask R-CNN R-50", "detector", 44.2),
        ("faster_rcnn_R_101_FPN_3x", "detector", 60.5),
        ("retinanet_resnet50_fpn", "detector", 34.0),
        ("yolox-s", "detector", 9.0),
        ("yolov3", "detector", 61.9),
        ("cascade-mask-rcnn-swin-t", "detector", 81.7),
        ("deeplabv3plus-r50", "segmenter", 43.7),
        ("upernet-swin-tiny", "segmenter", 59.9),
        ("segformer-b2", "segmenter", 24.8),
        ("segformer_mit_b0", "segmenter", 3.8),
        ("resnet50", "classifier", 25.6),
    ],
)
def test_a_network_is_found_by_its_names_with_its_published_weights(name, kind, millions):
    network = find_network(name)
    assert network is not None
    assert network.kind == kind
    tape = Tape()
    network.walk(tape, network.image, network.classes)
    assert tape.params == pytest.approx(millions * 1e6, rel=0.02)


@pytest.mark.parametrize("name", ["mask-rcnn-zz", "segformer-b9", "upernet-swin-q", "yolox-q", "", "rcnn", "mit"])
def test_a_name_with_a_part_nobody_knows_is_not_guessed(name):
    assert find_network(name) is None


def test_every_name_of_the_list_is_understood():
    for family in ("image", "detector", "segmenter"):
        for name in list_models()[family]:
            assert find_network(name) is not None, name


def test_a_detector_is_planned_by_a_command():
    told = ask("mask-rcnn-r50", "batch=2", "precision=fp32", "optimizer=sgd", "--on", "8xV100-32GB")
    assert (told["image"], told["classes"]) == (800, 80)
    assert told["allocated_bytes"] / 2**30 == pytest.approx(4.4, rel=0.1)  # mmdetection's zoo
    assert told["step_s"] is None  # no time was ever measured against these formulas


def test_classes_and_image_change_a_segmenter():
    few = ask("pspnet-r50", "classes=19", "image=512", "--on", "1x4090")
    many, large = ask("pspnet-r50", "--on", "1x4090"), ask("pspnet-r50", "image=768", "--on", "1x4090")
    assert few["allocated_bytes"] < many["allocated_bytes"] < large["allocated_bytes"]


def test_classes_mean_nothing_to_a_language_model():
    with pytest.raises(UsageError) as refused:
        CliRunner().invoke(plan, ["--model", "gpt2", "classes=3", "--on", "1x4090"], catch_exceptions=False)
    assert refused.value.code == "plan/model-odd-key"
