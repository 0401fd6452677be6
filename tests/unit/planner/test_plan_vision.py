"""Vision networks: what a layer keeps, published sizes, and published peaks."""

import pytest

from headway.planner.models.convnet import Map, Tape, fresh, weigh_convnet
from headway.planner.models.vision import (
    CONVNEXT,
    MIT,
    REGNETX,
    SWIN,
    VITS,
    YOLOX,
    HRNet,
    ResNet,
    add_yolo_v3,
    detect,
    segment,
    walk_darknet,
    walk_mobile_v3,
    walk_unet,
    walk_vgg,
)
from headway.planner.models.vision.mobile import walk_efficient, walk_efficient_v2
from headway.planner.step import Work

GIB = 1 << 30
SGD = Work(micro_batch=2, compute_bytes=4, state_bytes=4, bucket_bytes=4)
ADAMW = Work(micro_batch=2, compute_bytes=4, state_bytes=8, bucket_bytes=4)


def peak(tape, work=SGD):
    return weigh_convnet(tape, work).allocated_bytes / GIB


def test_a_tensor_is_kept_once_however_many_layers_need_it():
    tape, x = Tape(), Map(8, 4, 4)
    tape.conv(x, 8, norm="none", act="none")
    tape.conv(x, 8, norm="none", act="none")
    assert tape.kept == x.size


def test_a_norm_keeps_its_input_and_relu_its_output():
    tape, x = Tape(), Map(8, 4, 4)
    tape.conv(x, 8)
    assert tape.kept == 3 * x.size
    grouped = Tape()
    grouped.conv(Map(8, 4, 4), 8, norm="group")
    assert grouped.kept == 4 * x.size


def test_frozen_layers_keep_nothing_and_do_not_train():
    tape = Tape(frozen=True)
    tape.conv(Map(8, 4, 4), 8)
    assert (tape.kept, tape.trained, tape.moments) == (0, 0, [])
    assert tape.params > 0


def test_the_peak_is_the_largest_moment_not_the_sum_of_all():
    tape = Tape()
    tape.passing(100)
    tape.hold(1000)
    tape.passing(10)
    parts = weigh_convnet(tape, Work(micro_batch=1, compute_bytes=4)).parts
    assert parts["activations"] == 4000
    assert parts["temporaries"] == 40


def test_what_comes_once_a_batch_does_not_grow_with_it():
    tape = Tape()
    tape.passing(0, once=1000)
    sizes = [weigh_convnet(tape, Work(micro_batch=batch)).parts["temporaries"] for batch in (1, 8)]
    assert sizes[0] == sizes[1]


def test_a_softmax_keeps_more_under_autocast_and_in_old_releases():
    kept = {}
    for name, tape in {"old": Tape(), "new": Tape(softmax=1.0), "autocast": Tape(wide=2.0)}.items():
        tape.score(100)
        kept[name] = tape.kept
    assert kept == {"old": 200, "new": 100, "autocast": 500}


@pytest.mark.parametrize(
    ("walk", "millions"),
    [
        (lambda tape: ResNet(depth=50).walk(tape, 224, 224), 23.5),
        (lambda tape: ResNet(depth=101, groups=64, group_width=4).walk(tape, 224, 224), 81.4),
        (lambda tape: ResNet(depth=101, splits=2, stem=(64, 64, 128), avg_down=True).walk(tape, 224, 224), 46.2),
        (lambda tape: HRNet(width=18).walk(tape, 224, 224), 9.6),
        (lambda tape: REGNETX["3.2GF"].walk(tape, 224, 224), 14.3),
        (lambda tape: SWIN["t"].walk(tape, 224, 224), 27.5),
        (lambda tape: CONVNEXT["b"].walk(tape, 224, 224), 87.6),
        (lambda tape: VITS["l"].walk(tape, 224, 224), 303.1),
        (lambda tape: MIT["b5"].walk(tape, 512, 512), 81.4),
        (lambda tape: walk_unet(tape, 128, 128), 28.9),
        (lambda tape: walk_vgg(tape, 224, 224, depth=16), 14.7),
        (lambda tape: ResNet(depth=50, squeeze=True).walk(tape, 224, 224), 26.0),
        (lambda tape: ResNet(depth=50, group_width=128).walk(tape, 224, 224), 66.8),
        (lambda tape: walk_efficient(tape, 224, 224), 4.0),
        (lambda tape: walk_efficient_v2(tape, 300, 300, size="s"), 20.2),
        (lambda tape: walk_mobile_v3(tape, 224, 224), 3.0),
        (lambda tape: YOLOX["s"].walk(tape, 640, 640), 8.97),
        (lambda tape: add_yolo_v3(tape, walk_darknet(tape, 416, 416)), 61.9),
    ],
)
def test_networks_have_their_published_number_of_weights(walk, millions):
    tape = Tape()
    walk(tape)
    assert tape.params / 1e6 == pytest.approx(millions, rel=0.03)


# Published peaks of OpenMMLab, fp32 on V100s: the model, its images, what was measured in GiB.


@pytest.mark.parametrize(("depth", "measured"), [(50, 3.8), (101, 5.8)])
def test_a_proposal_network_peaks_where_anchors_meet_boxes(depth, measured):
    tape = Tape()
    outs = ResNet(depth=depth, frozen=1).walk(tape, 800, 1344)
    detect.add_proposals(tape, detect.add_pyramid(tape, outs))
    assert peak(tape) == pytest.approx(measured, rel=0.05)
    assert tape.moments[-1][2] > 0


@pytest.mark.parametrize(("bitmaps", "measured"), [(True, 4.4), (False, 4.1)])
def test_true_masks_are_a_peak_of_their_own(bitmaps, measured):
    tape = Tape()
    outs = ResNet(depth=50, frozen=1).walk(tape, 800, 1344)
    detect.add_proposals(tape, detect.add_pyramid(tape, outs))
    detect.add_boxes(tape)
    detect.add_masks(tape, image=Map(3, 800, 1344) if bitmaps else None)
    assert peak(tape) == pytest.approx(measured, rel=0.03)


def test_a_dense_detector_is_near_its_measured_peak():
    tape = Tape()
    outs = ResNet(depth=101, frozen=1).walk(tape, 800, 1344)
    detect.add_dense(tape, detect.add_pyramid(tape, outs, first=1, extra=True), anchors=9, sides=4)
    assert peak(tape) == pytest.approx(5.7, rel=0.03)


def pspnet(classes):
    tape, image = Tape(), Map(3, 512, 512)
    outs = ResNet(depth=50, strides=(1, 2, 1, 1), stem=(32, 32, 64)).walk(tape, 512, 512)
    segment.classify(tape, segment.pyramid_pool(tape, outs[-1]), classes, image)
    segment.auxiliary(tape, outs[-2], width=256, classes=classes, image=image)
    return peak(tape, Work(micro_batch=4, compute_bytes=4, state_bytes=4, bucket_bytes=4))


@pytest.mark.parametrize(("classes", "measured"), [(7, 6.14), (21, 6.1), (150, 8.5)])
def test_many_classes_move_a_segmenters_peak_from_a_convolution_to_its_loss(classes, measured):
    assert pspnet(classes) == pytest.approx(measured, rel=0.04)


def test_a_windowed_transformer_under_a_pyramid_is_near_its_measured_peak():
    tape, image = Tape(), Map(3, 512, 512)
    outs = SWIN["t"].walk(tape, 512, 512)
    segment.classify(tape, segment.united(tape, outs), 150, image)
    segment.auxiliary(tape, outs[-2], width=256, classes=150, image=image)
    assert peak(tape, ADAMW) == pytest.approx(5.02, rel=0.03)


def test_a_transformer_with_pooled_keys_is_near_its_measured_peak():
    tape, image = Tape(), Map(3, 512, 512)
    segment.classify(tape, segment.mixed(tape, MIT["b5"].walk(tape, 512, 512)), 150, image)
    assert peak(tape, ADAMW) == pytest.approx(7.2, rel=0.03)


def test_deformable_convolutions_pass_columns():
    plain, bent = Tape(), Tape()
    x = Map(256, 50, 84)
    plain.conv(x, 256)
    bent.deform(fresh(x), 256)
    assert bent.kept == plain.kept
    assert max(one[1] for one in bent.moments) > max(one[1] for one in plain.moments)
