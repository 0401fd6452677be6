"""A guide's own command in, a run out: what the commands of all guides share.

In: the words behind one of a guide's scripts. Out: its lines on the screen and in its log, checkpoints under its own
names, and a run directory behind them. What is particular to one guide is in `recipes/<name>/guide.py`.
"""

from headway.checkpoint import find_resumable, read_manifest
from headway.config import LoadedConfig, load_config
from headway.guide.checkpoints import Held, Made, NamedCheckpoints, Source, held_below, keep_earlier
from headway.guide.command import RUNS, Resumed, Training, is_stopped, level_of, newest_run, show_best, train, with_log
from headway.guide.flags import FULL_SIZE, Asked, read_count, read_flags, read_seconds, settings_of
from headway.guide.follow import Listener, Step, copy_output, follow, headway
from headway.guide.help import run_command
from headway.guide.launched import lead_or_follow
from headway.guide.lines import Shape, Story, Voice
from headway.guide.log import GuideLog, write
from headway.guide.monitor import monitor
from headway.guide.numbers import judge
from headway.guide.project import make_project, plan_project
from headway.guide.resources import check_devices, check_port, check_variables
from headway.guide.rollcall import call_roll, is_by_hand
from headway.guide.size import (
    Choice,
    Sized,
    asks_for_steps,
    changed_words,
    choose,
    has_gpu,
    layers_text,
    load,
    size_line,
    words_of,
)
from headway.guide.sources import best_of, find_source, read_note
from headway.guide.trouble import facts_of, find_trouble, trouble_of, write_trouble
from headway.guide.typed import launcher_of
from headway.guide.writers import CkptWriter, FolderWriter, StepWriter, TorchWriter
from headway.machine import inspect_machine, other_python, read_mindspore
from headway.telemetry import RunDir, list_runs, run_state, write_json

__all__ = [
    "FULL_SIZE",
    "RUNS",
    "Asked",
    "Choice",
    "CkptWriter",
    "FolderWriter",
    "GuideLog",
    "Held",
    "Listener",
    "LoadedConfig",
    "Made",
    "NamedCheckpoints",
    "Resumed",
    "RunDir",
    "Shape",
    "Sized",
    "Source",
    "Step",
    "StepWriter",
    "Story",
    "TorchWriter",
    "Training",
    "Voice",
    "asks_for_steps",
    "best_of",
    "call_roll",
    "changed_words",
    "check_devices",
    "check_port",
    "check_variables",
    "choose",
    "copy_output",
    "facts_of",
    "find_resumable",
    "find_source",
    "find_trouble",
    "follow",
    "has_gpu",
    "headway",
    "held_below",
    "inspect_machine",
    "is_by_hand",
    "is_stopped",
    "judge",
    "keep_earlier",
    "launcher_of",
    "layers_text",
    "lead_or_follow",
    "level_of",
    "list_runs",
    "load",
    "load_config",
    "make_project",
    "monitor",
    "newest_run",
    "other_python",
    "plan_project",
    "read_count",
    "read_flags",
    "read_manifest",
    "read_mindspore",
    "read_note",
    "read_seconds",
    "run_command",
    "run_state",
    "settings_of",
    "show_best",
    "size_line",
    "train",
    "trouble_of",
    "with_log",
    "words_of",
    "write",
    "write_json",
    "write_trouble",
]
