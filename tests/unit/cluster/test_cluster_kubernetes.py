"""Manifests of pods, held against the published schemas of Kubernetes and of Kubeflow Trainer."""

from __future__ import annotations

import subprocess
from dataclasses import replace

import pytest
from ruamel.yaml import YAML

from headway.cluster.kubernetes import PodRequest, make_manifests, pod_name, pod_script, refuse_pods, to_yaml
from headway.errors import UsageError

ASKED = PodRequest(
    name="tiny-12ab",
    words=("train", "nanochat", "task.text=a 中 $HOME 'b'\nno"),
    image="lab/train:1",
    claim="runs",
    mount="/data",
    kind="job",
    namespace="lab",
    runtime="torch-distributed",
    lang="en",
    grace_s=30.0,
    nodes=2,
    gpus_per_node=8,
    cpus_per_node=16,
    memory="64Gi",
    shm="8Gi",
    secret="s" * 64,
)


def parsed(request):
    return list(YAML(typ="safe").load_all(to_yaml(make_manifests(request))))


def test_the_text_is_the_manifests():
    assert parsed(ASKED) == make_manifests(ASKED)


@pytest.mark.parametrize("nodes", [1, 2])
def test_an_indexed_job_keeps_the_schema_of_kubernetes(nodes):
    validate = pytest.importorskip("kubernetes_validate", reason="NO PUBLISHED SCHEMA WAS TESTED: kubernetes-validate")
    for one in parsed(replace(ASKED, nodes=nodes)):
        validate.validate(one, "1.30", strict=True)


@pytest.mark.parametrize(
    ("kind", "model"), [("jobset", "JobsetV1alpha2JobSet"), ("trainjob", "TrainerV1alpha1TrainJob")]
)
def test_sets_and_train_jobs_keep_the_models_of_kubeflow(kind, model):
    models = pytest.importorskip(
        "kubeflow_trainer_api.models", reason="NO KUBEFLOW SCHEMA WAS TESTED: kubeflow-trainer-api"
    )
    found = parsed(replace(ASKED, kind=kind))[-1]
    read = getattr(models, model).from_dict(found).to_dict()
    # The models drop what they do not know: everything that was written must have been read.
    assert _within(found, read) == []


def _within(small, large, place=""):
    if isinstance(small, dict):
        missing = [f"{place}.{key}" for key in small if key not in (large or {})]
        return missing + [
            one for key in small if key in (large or {}) for one in _within(small[key], large[key], f"{place}.{key}")
        ]
    if isinstance(small, list):
        pairs = zip(small, large, strict=True)
        return [one for at, (a, b) in enumerate(pairs) for one in _within(a, b, f"{place}[{at}]")]
    return [] if str(small) == str(large) or large == {"actual_instance": small} else [f"{place}: {small} {large}"]


@pytest.mark.parametrize("kind", ["job", "jobset", "trainjob"])
@pytest.mark.parametrize("index", ["0", "1"])
def test_pod_0_leads_and_the_others_follow_it_by_its_name(kind, index, tmp_path):
    request = replace(ASKED, kind=kind, mount=str(tmp_path))
    script = pod_script(request).replace("python -P -m headway", "printf '%s\\n'")
    done = subprocess.run(
        ["bash", "-c", script],
        env={"JOB_COMPLETION_INDEX": index, "POD_IP": "10.0.0.5", "PATH": "/usr/bin:/bin", "PET_NNODES": "2"},
        capture_output=True,
        text=True,
        check=True,
    )
    said = done.stdout.split("\n")
    leader = "tiny-12ab-0.tiny-12ab" if kind == "job" else "tiny-12ab-node-0-0.tiny-12ab"
    if index == "0":
        folder = tmp_path / "runs/kubernetes/tiny-12ab"
        assert said[2:5] == ["train", "--run-file", str(folder / "run")] and said[-3:-1] == [
            "task.text=a 中 $HOME 'b'",
            "no",
        ]
        assert said[7:9] == ["--nodes-address", "10.0.0.5:29400"]
    else:
        assert said[2:7] == ["node", "--leader", f"{leader}:29400", "--index", "1"]


def test_a_pod_that_starts_again_resumes_its_run(tmp_path):
    folder = tmp_path / "runs/kubernetes/tiny-12ab"
    folder.mkdir(parents=True)
    (folder / "run").write_text("/data/runs/2026 a")
    script = pod_script(replace(ASKED, nodes=1, mount=str(tmp_path))).replace("python -P -m headway", "printf '%s\\n'")
    done = subprocess.run(["bash", "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout.split("\n")[2:6] == ["resume", "--run-file", str(folder / "run"), "/data/runs/2026 a"]


def test_exit_code_93_is_final_and_evictions_do_not_count():
    job = make_manifests(ASKED)[-1]["spec"]
    fail, ignore = job["podFailurePolicy"]["rules"]
    assert fail["onExitCodes"]["operator"] == "NotIn" and fail["onExitCodes"]["values"] == [6, 137, 143]
    assert ignore["action"] == "Ignore" and job["template"]["spec"]["terminationGracePeriodSeconds"] == 90


@pytest.mark.parametrize(
    ("changes", "code"),
    [
        ({"claim": None}, "cluster/no-volume"),
        ({"name": "A_b"}, "cluster/bad-pod-name"),
        ({"words": ("run", "x.py", "--api-key", "hf_abcdefghijklmnopqrstuv")}, "cluster/secret-pod"),
    ],
)
def test_what_cannot_work_is_refused(changes, code):
    with pytest.raises(UsageError) as refused:
        refuse_pods(replace(ASKED, **changes))
    assert refused.value.code == code and "hf_abc" not in str(refused.value)


def test_names_are_taken_by_kubernetes():
    for text in ("train.py", "中文", "9_LIVES", "-", "a" * 80):
        refuse_pods(replace(ASKED, name=pod_name(text)))
