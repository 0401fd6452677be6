"""`--gpus 4`, `--gpus 0,1`, UUIDs and `--when-free`, on machines that are not here."""

from __future__ import annotations

import json

import pytest

from fakes.machines import FakeGpuDriver, busy, eight_h100, four_4090, lost, mixed, reading
from headway.errors import CheckError, UsageError
from headway.launch import Claims
from headway.machine import gpus_of, read_dump
from headway.start.devices import choose_devices, wait_for_devices

RECORDED = """
+-----------------------------------------------------------------------------------------+
| NVIDIA-SMI 550.54.15              Driver Version: 550.54.15      CUDA Version: 12.4     |
|-----------------------------------------+------------------------+----------------------+
| GPU  Name                 Persistence-M | Bus-Id          Disp.A | Volatile Uncorr. ECC |
| Fan  Temp   Perf          Pwr:Usage/Cap |           Memory-Usage | GPU-Util  Compute M. |
|                                         |                        |               MIG M. |
|=========================================+========================+======================|
|   0  NVIDIA A100-SXM4-80GB          On  |   00000000:07:00.0 Off |                    0 |
| N/A   62C    P0             312W /  400W |   71020MiB /  81920MiB |     98%      Default |
|                                         |                        |             Disabled |
+-----------------------------------------+------------------------+----------------------+
|   1  NVIDIA A100-SXM4-80GB          On  |   00000000:0F:00.0 Off |                    0 |
| N/A   31C    P0              61W /  400W |       4MiB /  81920MiB |      0%      Default |
|                                         |                        |             Disabled |
+-----------------------------------------+------------------------+----------------------+
|   2  NVIDIA A100-SXM4-80GB          On  |   00000000:47:00.0 Off |                    0 |
| N/A   30C    P0              60W /  400W |       4MiB /  81920MiB |      0%      Default |
|                                         |                        |             Disabled |
+-----------------------------------------+------------------------+----------------------+
"""


@pytest.fixture(autouse=True)
def all_visible(monkeypatch):
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)


@pytest.fixture
def claims(tmp_path):
    return Claims("mine", tmp_path / "claims")


def driver(gpus):
    return FakeGpuDriver(reading(tuple(gpus)))


def with_busy(gpus, *indexes):
    return [busy(gpu) if gpu.index in indexes else gpu for gpu in gpus]


def test_a_number_takes_that_many_free_ones(claims):
    assert choose_devices("4", claims, driver(with_busy(eight_h100(), 0, 2))) == ("1", "3", "4", "5")


def test_a_recorded_machine_gives_its_idle_gpus(claims):
    gpus = gpus_of(read_dump(RECORDED))
    assert len(gpus) == 3
    assert choose_devices("2", claims, driver(gpus)) == ("1", "2")


def test_gpus_of_one_kind_go_first(claims):
    assert choose_devices("2", claims, driver(mixed())) == ("1", "2")
    claims.release()
    assert choose_devices("3", claims, driver(mixed())) == ("0", "1", "2")


def test_names_are_taken_as_they_are_even_when_busy(claims):
    assert choose_devices("3,1", claims, driver(with_busy(four_4090(), 1))) == ("3", "1")


def test_a_uuid_may_be_shortened_and_stays_as_written(claims):
    gpus = eight_h100()
    whole, short = gpus[5].uuid, gpus[2].uuid[:12]
    assert choose_devices(f"{whole},{short}", claims, driver(gpus)) == (whole, short)


@pytest.mark.parametrize("name", ["9", "GPU-ffff", "GPU-0000"])
def test_a_gpu_that_is_not_there_or_not_one_is_refused(claims, name):
    with pytest.raises(CheckError) as refused:
        choose_devices(name + ",", claims, driver(eight_h100()))
    assert refused.value.code == "run/no-such-gpu"


def test_a_lost_gpu_is_not_there(claims):
    with pytest.raises(CheckError) as refused:
        choose_devices("0,3", claims, driver([*four_4090()[:3], lost(3)]))
    assert refused.value.code == "run/no-such-gpu"


def test_the_same_gpu_under_two_names_is_refused(claims):
    gpus = four_4090()
    with pytest.raises(UsageError) as refused:
        choose_devices(f"1,{gpus[1].uuid}", claims, driver(gpus))
    assert refused.value.code == "run/gpu-twice"


def test_a_word_is_no_gpu(claims):
    with pytest.raises(UsageError) as refused:
        choose_devices("all", claims, driver(four_4090()))
    assert refused.value.code == "run/bad-gpus"


def test_a_slice_of_a_gpu_is_taken_at_its_word(claims):
    assert choose_devices("MIG-aa/1/0", claims, driver(four_4090())) == ("MIG-aa/1/0",)


def test_too_few_free_ones_name_their_holders_and_claim_nothing(claims, tmp_path):
    with pytest.raises(CheckError) as refused:
        choose_devices("3", claims, driver(with_busy(four_4090(), 0, 1)))
    assert refused.value.code == "run/too-few-free"
    assert "0: ann" in refused.value.facts["holders"]
    assert not list((tmp_path / "claims").iterdir())


def test_more_than_there_are_is_said_so(claims):
    with pytest.raises(CheckError) as refused:
        choose_devices("9", claims, driver(four_4090()))
    assert (refused.value.code, refused.value.facts["here"]) == ("run/too-few-gpus", 4)


def test_what_the_environment_has_hidden_is_not_taken(claims, monkeypatch):
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "6,7")
    assert choose_devices("2", claims, driver(eight_h100())) == ("6", "7")
    with pytest.raises(CheckError):
        choose_devices("3", claims, driver(eight_h100()))


def test_two_runs_never_take_the_same_gpu_and_the_holder_is_named(claims, tmp_path):
    other = Claims("other", tmp_path / "claims")
    assert choose_devices("2", claims, driver(four_4090())) == ("0", "1")
    assert choose_devices("2", other, driver(four_4090())) == ("2", "3")
    with pytest.raises(CheckError) as refused:
        choose_devices("0,", other, driver(four_4090()))  # the comma makes it a name
    assert refused.value.code == "run/gpu-claimed"
    assert "mine" in refused.value.facts["holder"]


def test_waiting_tells_who_holds_what_and_goes_on_when_it_is_free(claims, tmp_path):
    other = Claims("other", tmp_path / "claims")
    choose_devices("3", other, driver(four_4090()))
    told, slept = [], []

    def sleep(seconds):
        slept.append(seconds)
        if len(slept) == 3:
            other.release()

    found = wait_for_devices(2, claims, told.append, driver=driver(four_4090()), sleep=sleep)
    assert found == ("0", "1")
    assert len(slept) == 3 and len(told) == 1
    assert "other" in told[0]


def test_waiting_for_more_than_there_are_ends_at_once(claims):
    with pytest.raises(CheckError) as refused:
        wait_for_devices(5, claims, print, driver=driver(four_4090()))
    assert refused.value.code == "run/too-few-gpus"


def test_a_stale_claim_is_taken_over_only_with_proof(claims, tmp_path):
    folder = tmp_path / "claims"
    choose_devices("1", Claims("other", folder), driver(four_4090()))
    (claim,) = folder.iterdir()
    held = json.loads(claim.read_text())
    claim.write_text(json.dumps({**held, "pid": 2**22 - 1}))  # nobody has this pid
    assert choose_devices("1", claims, driver(four_4090())) == ("0",)
    claims.release()
    claim.write_text("torn")  # no proof of anything
    assert choose_devices("1", claims, driver(four_4090())) == ("1",)
