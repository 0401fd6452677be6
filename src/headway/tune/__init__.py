"""What is fastest here: a config, a machine and a plan come in, short real runs are made, a `Tuned` goes out."""

from headway.tune.begin import make_place, probe_nursery
from headway.tune.find_best import Question, Watcher, probe_plan, read_budget, tune
from headway.tune.probe import ENTRY, MINDSPORE_ENTRY, Effort, Prober
from headway.tune.rates import RateAdvice, advise_rate
from headway.tune.record import KEYS, Probe, Settings, Skip, Tuned, Value, key_of, settings_of, write_value
from headway.tune.remember import remember_probe
from headway.tune.search import OutOfTime, search
from headway.tune.space import Space, make_space
from headway.tune.write import (
    compose,
    edit_file,
    find_differences,
    list_changes,
    refuse_unwritable,
    rehearse_changes,
    write_checked,
    written_beside,
)

__all__ = [
    "ENTRY",
    "KEYS",
    "MINDSPORE_ENTRY",
    "Effort",
    "OutOfTime",
    "Probe",
    "Prober",
    "Question",
    "RateAdvice",
    "Settings",
    "Skip",
    "Space",
    "Tuned",
    "Value",
    "Watcher",
    "advise_rate",
    "compose",
    "edit_file",
    "find_differences",
    "key_of",
    "list_changes",
    "make_place",
    "make_space",
    "probe_nursery",
    "probe_plan",
    "read_budget",
    "refuse_unwritable",
    "rehearse_changes",
    "remember_probe",
    "search",
    "settings_of",
    "tune",
    "write_checked",
    "write_value",
    "written_beside",
]
