"""Readings of devices: taken from fakes and from this machine, kept bounded, and turned into findings."""

from __future__ import annotations

import itertools
import json
import os
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from fakes.fake_gpus import FakeNvml
from fakes.machines import FakeGpuDriver, busy, gpu, lost
from headway.machine import GpuReading
from headway.telemetry import DeviceLog, RunDir, read_devices, tail_devices
from headway.telemetry.device_findings import DeviceFindings
from headway.telemetry.devices import thin_readings
from headway.telemetry.sample_gpu import GpuReader, NvmlSource, ReadingSource
from headway.telemetry.sample_host import HostSampler
from headway.telemetry.sampler import Sampler, serve


def test_a_gpu_is_read_with_rates_activity_and_holders():
    nvml = FakeNvml({"util": 97, "temp": 71, "power": 410, "reasons": 0x4, "sm": 80.0})
    source = NvmlSource(nvml)
    source.read(10.0)
    nvml.traffic = 4 << 20
    (one,) = source.read(12.0)
    assert (one["util"], one["temp"], one["power"], one["throttle"]) == (97, 71, 410.0, ["SW Power Cap"])
    assert (one["pcie_tx"], one["nvlink_tx"]) == (2 << 20, 2 << 30)
    assert "pcie_rx" not in one  # this driver does not count it: absent, not 0
    assert (one["sm"], one["tensor"]) == (80.0, 40.0)
    assert one["procs"][0].startswith("1 ") and one["procs"][0].endswith(" 2048")
    assert source.about()[0]["mem"] == 96 << 30


@pytest.mark.parametrize("wanted", [["1"], ["GPU-00000001"], ["GPU-0000000"]])
def test_only_the_gpus_of_the_run_are_read(wanted):
    nvml = FakeNvml({}, {}, {})
    found = [one["i"] for one in NvmlSource(nvml, wanted).read(0.0)]
    assert found == ([0, 1, 2] if wanted == ["GPU-0000000"] else [1])


def test_a_lost_gpu_is_a_reading_and_a_finding_and_its_return_ends_it():
    nvml = FakeNvml({}, {})
    reader, findings = GpuReader(NvmlSource(nvml)), DeviceFindings()
    assert findings.take({"t": 0.0, "gpus": reader.read(0.0)}) == []
    nvml.gpus[1] = None
    (event,) = findings.take({"t": 2.0, "gpus": reader.read(2.0)})
    assert (event["kind"], event["code"], event["facts"]["gpu"]) == ("finding", "devices/gpu-silent", 1)
    assert findings.take({"t": 4.0, "gpus": reader.read(4.0)}) == []
    nvml.gpus[1] = {}
    (event,) = findings.take({"t": 6.0, "gpus": reader.read(6.0)})
    assert (event["kind"], event["seconds"]) == ("finding_over", 2.0)


def test_a_driver_that_hangs_is_silent_and_nobody_waits_for_it_twice():
    release = threading.Event()

    class Stuck(ReadingSource):
        def read(self, now):
            release.wait(10)
            return [{"i": 0}]

    reader = GpuReader(Stuck(lambda: [gpu(0)]), answer_s=0.2)
    assert reader.read(0.0) == [{"i": 0, "lost": True, "why": "no answer within 0.2 s"}]
    began = time.monotonic()
    assert reader.read(1.0)[0]["lost"]
    assert time.monotonic() - began < 0.19
    release.set()
    time.sleep(0.05)
    assert reader.read(2.0) == [{"i": 0}]


def test_a_recorded_machine_plays_the_gpus():
    driver = FakeGpuDriver(GpuReading(source="recorded", gpus=(busy(gpu(0)), lost(1))))
    first, second = ReadingSource(lambda: driver.read().gpus).read(0.0)
    assert (first["util"], first["mem"] >> 30) == (98, 60)
    assert second == {"i": 1, "lost": True}


def test_heat_is_said_once_and_its_cost_is_counted():
    findings = DeviceFindings({"gpus": [{"i": 0, "clock": 2000}]})
    hot = {"i": 0, "temp": 88, "clock": 1500, "throttle": ["SW Thermal Slowdown"]}
    events = [event for t in range(0, 60, 2) for event in findings.take({"t": float(t), "gpus": [hot]})]
    assert [(event["code"], event["facts"]["percent"]) for event in events] == [("devices/gpu-hot", "25")]
    events = findings.take({"t": 130.0, "gpus": [{"i": 0, "temp": 60, "clock": 2000, "throttle": []}]})
    assert [event["kind"] for event in events] == ["finding_over"]
    assert events[0]["cost_s"] == pytest.approx(58 * 0.25, abs=0.6)


def test_memory_errors_and_xids_and_a_full_disk_are_findings():
    nvml = FakeNvml({"ecc": 3})
    source, findings = NvmlSource(nvml), DeviceFindings()
    assert findings.take({"t": 0.0, "gpus": source.read(0.0)}) == []
    nvml.gpus[0] = {"ecc": 5}
    nvml.xids.append((0, 79))
    found = findings.take({"t": 2.0, "gpus": source.read(2.0), "host": {"disk_free": 1 << 20}})
    assert {event["code"] for event in found} == {"devices/ecc", "devices/xid", "devices/disk-low"}
    assert next(event for event in found if event["code"] == "devices/ecc")["facts"]["num"] == 2


def test_the_stream_stays_bounded_and_keeps_peaks_and_the_last_minutes(tmp_path):
    log = DeviceLog(tmp_path / "devices.jsonl", most_lines=300, kept_old=100, fresh_s=60.0)
    log.about({"cores": 2})
    for second in range(5000):
        temp = 91 if second == 1234 else 60
        log.add({"t": float(second), "gpus": [{"i": 0, "util": second % 100, "temp": temp, "throttle": []}]})
    log.close()
    lines = (tmp_path / "devices.jsonl").read_bytes().count(b"\n")
    history = read_devices(tmp_path / "devices.jsonl")
    assert lines <= 300 and history.about == {"cores": 2}
    assert sum(one["n"] for one in history.readings) == 5000
    assert max(history.column("gpus", "temp", 0)) == 91
    assert [one["t"] for one in history.readings[-60:]] == [float(t) for t in range(4940, 5000)]
    assert tail_devices(tmp_path / "devices.jsonl")["t"] == 4999.0


def test_merged_stretches_are_even_in_time_however_often_they_are_thinned():
    readings = [{"t": float(t), "n": 1, "host": {"cpu": float(t)}} for t in range(1000)]
    for _ in range(4):
        readings = thin_readings(readings, 50, 0.0)
    gaps = [b["t"] - a["t"] for a, b in itertools.pairwise(readings)]
    assert len(readings) == 50 and max(gaps) <= 2 * min(gaps)
    assert sum(one["n"] for one in readings) == 1000


def test_a_torn_or_foreign_stream_is_read_as_far_as_it_goes(tmp_path):
    path = tmp_path / "devices.jsonl"
    path.write_bytes(b'{"t":1,"gpus":[1,{"i":"x"},{"i":0,"util":5}]}\n{"about":3}\nnonsense\n{"t":"a"}\n{"t":2,"gp')
    history = read_devices(path)
    assert len(history.readings) == 1 and history.gpus() == [0]
    assert history.column("gpus", "util", 0)[0] == 5.0
    assert read_devices(tmp_path / "absent").readings == []


def test_ranks_and_job_are_read_from_this_machine(tmp_path):
    work = "import time\nt=time.time()\nwhile time.time()-t<20: sum(range(1000))"
    with subprocess.Popen([sys.executable, "-c", work]) as process:
        host = HostSampler(os.getpid(), tmp_path)
        host.read(time.monotonic(), [process.pid])
        time.sleep(0.6)
        found = host.read(time.monotonic(), [process.pid])
        process.kill()
    (rank,) = found["ranks"]
    assert 0.02 < rank["cpu"] <= 1.3 and rank["mem"] > 1 << 20
    assert found["job"]["num"] >= 2 and found["job"]["cpu"] >= rank["cpu"]
    assert 0 <= found["host"]["cpu"] <= 100 and found["host"]["disk_free"] > 0


def test_the_sampler_serves_until_its_orders_end_and_tells_what_it_finds(tmp_path):
    nvml = FakeNvml({}, None)
    orders, mouth = os.pipe()
    ear, answers = os.pipe()
    sampler = Sampler(RunDir(tmp_path), os.getpid(), NvmlSource(nvml))
    os.write(mouth, b'{"ranks":[%d]}\n' % os.getpid())
    os.close(mouth)
    serve(sampler, orders, answers)
    sampler.close()
    told = [json.loads(line) for line in os.read(ear, 1 << 16).splitlines()]
    for fd in (orders, ear, answers):
        os.close(fd)
    assert [one["code"] for one in told] == ["devices/gpu-silent"]
    assert len(read_devices(tmp_path / "devices.jsonl").readings) >= 1


def test_readings_are_as_far_apart_as_half_a_per_cent_of_a_core_allows(tmp_path):
    sampler = Sampler(RunDir(tmp_path), os.getpid(), None)
    sampler.close()
    for cost_s in (0.001, 0.05, 1.0):
        assert cost_s / sampler.wait_s(cost_s) <= 0.005


def test_the_process_dies_with_its_parent(tmp_path):
    start = (
        "import subprocess,sys,os,time\n"
        "p=subprocess.Popen([sys.executable,'-m','headway.diagnosis.live',str(os.getpid()),sys.argv[1]],stdin=subprocess.PIPE)\n"
        "print(p.pid,flush=True)\n"
        "while not os.path.exists(sys.argv[1]+'/devices.jsonl'): time.sleep(0.02)\n"
        "os.kill(os.getpid(),9)\n"
    )
    done = subprocess.run([sys.executable, "-c", start, str(tmp_path)], stdout=subprocess.PIPE, check=False, timeout=60)
    pid = int(done.stdout)
    deadline = time.monotonic() + 10
    while Path(f"/proc/{pid}").exists() and "Z" not in Path(f"/proc/{pid}/stat").read_text().split(")")[1][:3]:
        assert time.monotonic() < deadline, "the sampler outlives its supervisor"
        time.sleep(0.05)
