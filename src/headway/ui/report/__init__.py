"""The one-file HTML report of a run. In: a run directory. Out: `report.html`, and drawings that the board shares."""

from headway.ui.report import tables
from headway.ui.report.both_languages import both, both_or_plain
from headway.ui.report.devices import draw_devices, draw_heat, host_line, list_devices
from headway.ui.report.figures import Figure, draw_figures, draw_shares, restarts_of
from headway.ui.report.gather import Facts, gather, is_long_run
from headway.ui.report.page import render, render_report, write_facts, write_report
from headway.ui.report.svg import Line, Plot, Stack, draw_plot
from headway.ui.report.timeline import draw_timeline
from headway.ui.report.verdict import Gain, find_gains, write_verdict

__all__ = [
    "Facts",
    "Figure",
    "Gain",
    "Line",
    "Plot",
    "Stack",
    "both",
    "both_or_plain",
    "draw_devices",
    "draw_figures",
    "draw_heat",
    "draw_plot",
    "draw_shares",
    "draw_timeline",
    "find_gains",
    "gather",
    "host_line",
    "is_long_run",
    "list_devices",
    "render",
    "render_report",
    "restarts_of",
    "tables",
    "write_facts",
    "write_report",
    "write_verdict",
]
