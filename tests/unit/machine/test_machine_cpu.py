"""What the processor really computes, found by trying and kept."""

from __future__ import annotations

import os

import pytest

from headway.machine import cpu, cpu_child
from headway.machine.cpu_child import CASES, PRECISIONS
from headway.machine.rules.processor import judge_cpu, words

AMX = "model name : Xeon\nflags : avx512f amx_bf16 amx_tile hypervisor\n\nmodel name : the second\n"
PLAIN = "model name : EPYC\nflags : avx2 hypervisor\n"
ALL = [f"{precision} {operation}" for precision in PRECISIONS for operation in CASES["torch"]]


class Processor:
    """Answers for a child; `needs` says what each failing case needs to be computed."""

    def __init__(self, needs):
        self.needs, self.asked = needs, 0

    def ask(self, python, framework, environ, ladder):
        self.asked += 1
        tried = []
        for setting in ladder:
            answers = {case: self._answer(case, {**environ, **setting}) for case in ALL}
            tried.append(cpu._Tried(setting, answers))
            if "SIGILL" not in answers.values():
                break
        return tried

    def _answer(self, case, environ):
        name, allowed = self.needs.get(case, ("PATH", None))
        return "ok" if allowed is None or environ.get(name) in allowed else "SIGILL"


@pytest.fixture
def machine(monkeypatch, tmp_path):
    for name in cpu.LIMITS:
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setattr(cpu, "_tried", {})

    def make(needs=None, info=AMX):
        (tmp_path / "cpuinfo").write_text(info)
        monkeypatch.setattr(cpu, "CPUINFO", tmp_path / "cpuinfo")
        processor = Processor(needs or {})
        monkeypatch.setattr(cpu, "_ask", processor.ask)
        return processor

    return make


NO_AMX = {"bf16 linear": (cpu.ONEDNN, ("AVX512_CORE_FP16", "AVX512_CORE_BF16", "AVX2"))}


def test_the_highest_setting_with_which_all_is_computed_is_found(machine):
    machine(NO_AMX)
    found = cpu.find_cpu()
    assert found.settings == {cpu.ONEDNN: "AVX512_CORE_FP16"}
    assert found.failed == {"bf16 linear": "SIGILL"}
    assert (found.left, found.works) == ({}, ("fp32", "bf16", "fp16"))


def test_an_answer_is_kept_for_the_next_process(machine):
    processor = machine(NO_AMX)
    first = cpu.find_cpu()
    cpu._tried.clear()
    assert cpu.find_cpu() == first
    assert processor.asked == 1


@pytest.mark.parametrize("damage", [b"", b"{", b"[]", b'{"settings": {"A": 1}}', b"\xff\xfe", b'{"works": ["fp7"]}'])
def test_a_damaged_answer_is_found_anew(machine, tmp_path, damage):
    processor = machine(NO_AMX)
    first = cpu.find_cpu()
    (kept,) = (tmp_path / ".cache/headway/cpu").iterdir()
    kept.write_bytes(damage)
    cpu._tried.clear()
    assert cpu.find_cpu() == first
    assert processor.asked == 2


def test_a_processor_without_suspect_flags_is_left_alone(machine):
    processor = machine(NO_AMX, info=PLAIN)
    assert cpu.find_cpu() is None
    assert processor.asked == 0


def test_what_was_found_when_asked_for_is_used_on_every_processor(machine):
    machine(NO_AMX, info=PLAIN)
    assert cpu.find_cpu(is_asked=True).settings
    cpu._tried.clear()
    assert cpu.cpu_environment(is_on_cpu=True)[cpu.ONEDNN] == "AVX512_CORE_FP16"


def test_another_kernel_framework_or_value_is_another_question(machine, monkeypatch):
    processor = machine(NO_AMX)
    cpu.find_cpu()
    monkeypatch.setattr(cpu, "_version_text", lambda python, framework: "9.9")
    cpu.find_cpu()
    monkeypatch.setattr(cpu.platform, "uname", lambda: ("Linux", "host", "other kernel"))
    cpu.find_cpu()
    monkeypatch.setenv("MKL_ENABLE_INSTRUCTIONS", "AVX2")
    cpu.find_cpu()
    machine(NO_AMX, info=AMX.replace("Xeon", "Xeon, other model"))
    assert processor.asked == 4
    cpu.find_cpu()
    assert len(cpu._tried) == 5


@pytest.mark.parametrize("name", [cpu.ONEDNN, "DNNL_MAX_CPU_ISA"])
def test_values_below_the_suspect_instructions_end_the_suspicion(machine, monkeypatch, name):
    processor = machine(NO_AMX)
    monkeypatch.setenv(name, "avx512_core_fp16")
    monkeypatch.setenv(cpu.MKL, "avx512_e3")
    assert cpu.find_cpu() is None
    assert processor.asked == 0


BOTH = {**NO_AMX, "bf16 attention": (cpu.MKL, ("AVX512_E3", "AVX2"))}


def test_two_libraries_with_the_same_instructions_are_limited_together(machine):
    """oneDNN at AVX2, or all libraries at AVX2, would take AVX-512 away as well."""
    machine(BOTH)
    found = cpu.find_cpu()
    assert found.settings == {cpu.ONEDNN: "AVX512_CORE_FP16", cpu.MKL: "AVX512_E3"}
    assert found.left == {}


def test_what_another_library_needs_comes_beside_a_value_of_the_users_own(machine, monkeypatch):
    machine(BOTH)
    monkeypatch.setenv(cpu.ONEDNN, "AVX2")
    found = cpu.find_cpu()
    assert (found.settings, found.own) == ({cpu.MKL: "AVX512_E3"}, {})
    assert found.failed == {"bf16 attention": "SIGILL"}
    (finding,) = judge_cpu(found, "bf16")
    assert (finding.code, finding.level) == ("machine/cpu-limited", "note")


def test_a_value_of_the_user_that_fails_is_kept_and_told(machine, monkeypatch):
    machine(NO_AMX)
    monkeypatch.setenv(cpu.ONEDNN, "AVX512_CORE_AMX")
    found = cpu.find_cpu()
    assert found.settings == {}
    assert (found.own, found.advice) == ({cpu.ONEDNN: "AVX512_CORE_AMX"}, {cpu.ONEDNN: "AVX512_CORE_FP16"})
    (finding,) = judge_cpu(found, "bf16")
    assert (finding.code, finding.level) == ("machine/cpu-own-value", "stop")
    assert finding.facts["fix"] == "export ONEDNN_MAX_CPU_ISA=AVX512_CORE_FP16"
    assert next(judge_cpu(found, "auto")).level == "warn"


def test_the_old_name_of_the_variable_is_the_users_own_too(machine, monkeypatch):
    machine({"bf16 linear": (cpu.ONEDNN, ("AVX512_CORE_FP16",))})
    monkeypatch.setenv("DNNL_MAX_CPU_ISA", "AVX512_CORE_AMX")
    found = cpu.find_cpu()
    assert found.settings == {}
    fix = next(judge_cpu(found)).facts["fix"]
    assert fix == "unset DNNL_MAX_CPU_ISA && export ONEDNN_MAX_CPU_ISA=AVX512_CORE_FP16"


def test_another_variable_of_the_user_does_not_stand_in_the_way(machine, monkeypatch):
    machine(NO_AMX)
    monkeypatch.setenv("OPENBLAS_CORETYPE", "Zen")
    assert cpu.find_cpu().settings == {cpu.ONEDNN: "AVX512_CORE_FP16"}


def test_a_value_without_which_all_is_well_is_to_be_unset(machine, monkeypatch):
    machine({"fp32 linear": ("ATEN_CPU_CAPABILITY", (None, "default"))})
    monkeypatch.setenv("ATEN_CPU_CAPABILITY", "avx512")
    assert next(judge_cpu(cpu.find_cpu())).facts["fix"] == "unset ATEN_CPU_CAPABILITY"


def test_a_value_that_has_no_part_in_it_is_not_to_be_unset(machine, monkeypatch):
    monkeypatch.setenv("OPENBLAS_CORETYPE", "Haswell")
    machine({"bf16 linear": ("NOTHING", ())})
    found = cpu.find_cpu()
    assert (found.own, found.settings, found.works) == ({}, {}, ("fp32", "fp16"))
    assert [(one.code, one.level) for one in judge_cpu(found, "bf16")] == [("machine/cpu-no-precision", "stop")]


def test_a_precision_that_no_setting_helps_stops_only_runs_that_want_it(machine):
    machine({"bf16 linear": ("NOTHING", ()), "bf16 LSTM": ("NOTHING", ())})
    found = cpu.find_cpu()
    assert (found.settings, found.works) == ({}, ("fp32", "fp16"))
    (finding,) = judge_cpu(found, "bf16")
    assert (finding.code, finding.level) == ("machine/cpu-no-precision", "stop")
    assert finding.facts["cases"] == "bf16 linear, bf16 LSTM: SIGILL"
    assert next(judge_cpu(found, "auto")).level == "warn"


def test_the_setting_that_helps_most_is_taken_where_none_helps_in_all(machine):
    machine({**NO_AMX, "fp16 linear": ("NOTHING", ())})
    found = cpu.find_cpu()
    assert found.settings == {cpu.ONEDNN: "AVX512_CORE_FP16"}
    assert [(one.code, one.level) for one in judge_cpu(found, "bf16")] == [
        ("machine/cpu-limited", "note"),
        ("machine/cpu-no-precision", "warn"),
    ]


@pytest.mark.parametrize(
    ("name", "allowed", "setting"),
    [
        ("ATEN_CPU_CAPABILITY", ("avx2", "default"), {"ATEN_CPU_CAPABILITY": "avx2"}),
        ("MKL_ENABLE_INSTRUCTIONS", ("AVX512_E1", "SSE4_2"), {"MKL_ENABLE_INSTRUCTIONS": "SSE4_2"}),
        ("OPENBLAS_CORETYPE", ("Nehalem",), cpu._SSE4),
    ],
)
def test_other_libraries_are_limited_by_their_own_variables(machine, name, allowed, setting):
    machine({"fp32 linear": (name, allowed)})
    assert cpu.find_cpu().settings == setting


def test_an_import_that_is_refused_is_tried_with_limits_set_before_it(machine, monkeypatch):
    machine()

    def ask(python, framework, environ, ladder):
        is_limited = environ.get("NPY_DISABLE_CPU_FEATURES") == cpu._SSE4["NPY_DISABLE_CPU_FEATURES"]
        return [cpu._Tried(ladder[0], dict.fromkeys(ALL, "ok") if is_limited else {"import": "SIGILL"})]

    monkeypatch.setattr(cpu, "_ask", ask)
    found = cpu.find_cpu()
    assert (found.settings, found.failed, found.left) == (cpu._SSE4, {"import": "SIGILL"}, {})


def test_a_processor_that_can_run_nothing_is_told(machine, monkeypatch):
    machine()
    monkeypatch.setattr(cpu, "_ask", lambda *_: [cpu._Tried({}, {"import": "SIGILL"})])
    (finding,) = judge_cpu(cpu.find_cpu())
    assert (finding.code, finding.level) == ("machine/cpu-computes-nothing", "stop")


def test_an_interpreter_without_an_answer_is_not_remembered(machine, monkeypatch, tmp_path):
    machine()
    monkeypatch.setattr(cpu, "_ask", lambda *_: [])
    assert cpu.find_cpu() is None
    assert not (tmp_path / ".cache/headway/cpu").exists()


def test_a_home_that_cannot_be_written_costs_one_try_per_process(machine, monkeypatch, tmp_path):
    processor = machine(NO_AMX)
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("HOME", str(tmp_path / "file"))
    assert cpu.find_cpu() == cpu.find_cpu()
    assert processor.asked == 1


def test_a_kernel_that_a_framework_lacks_is_no_fault_of_the_processor(machine, monkeypatch):
    machine()
    answers = {**dict.fromkeys(ALL, "ok"), "fp16 linear": "RuntimeError: not implemented for 'Half'"}
    monkeypatch.setattr(cpu, "_ask", lambda *_: [cpu._Tried({}, answers)])
    found = cpu.find_cpu()
    assert (found.failed, found.works) == ({}, ("fp32", "bf16"))


def test_settings_are_words_a_shell_takes():
    assert words({"A": "1", "B": "x y"}) == "A=1 B='x y'"


def test_environment_of_children_is_ours_where_nothing_is_known(machine):
    machine(info=PLAIN)
    assert cpu.cpu_environment(is_on_cpu=True) == dict(os.environ)


def test_mindspores_processor_is_tried_as_its_ranks_use_it(machine, monkeypatch):
    processor = machine(NO_AMX)
    ladders = []
    ask = processor.ask
    monkeypatch.setattr(cpu, "_ask", lambda *words: ladders.append(words[-1]) or ask(*words))
    assert cpu.find_cpu("python", "mindspore") == cpu.CpuAnswers(works=tuple(PRECISIONS))
    assert ladders[0][0] == {cpu.ONEDNN: "AVX2"}


def test_what_works_is_tried_again_only_with_the_setting_that_cures_the_rest(monkeypatch):
    tried = []

    def try_setting(framework, lib, setting, cases):
        tried.append((setting.get(cpu.ONEDNN), len(cases)))
        is_cured = setting.get(cpu.ONEDNN) == "AVX2"
        return {case: "ok" if is_cured or case not in ("bf16 linear", "bf16 LSTM") else "SIGILL" for case in cases}

    monkeypatch.setattr(cpu_child, "try_setting", try_setting)
    ladder = [{}, {cpu.ONEDNN: "AVX512_CORE"}, {cpu.ONEDNN: "AVX2"}, {cpu.ONEDNN: "AVX"}]
    answers = [found for _, found in cpu_child.go_down("torch", None, ladder)]
    every = len(PRECISIONS) * len(CASES["torch"])
    assert tried == [(None, every), ("AVX512_CORE", 2), ("AVX2", 2), ("AVX2", every - 2)]
    assert [len(found) for found in answers] == [every] * 3
    assert [sum(answer != "ok" for answer in found.values()) for found in answers] == [2, 2, 0]
