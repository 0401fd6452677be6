"""The one-file HTML report of a run. In: a run directory. Out: `report.html`."""

from headway.ui.report.gather import Facts, gather
from headway.ui.report.page import render_report, write_facts, write_report
from headway.ui.report.verdict import Gain, find_gains

__all__ = ["Facts", "Gain", "find_gains", "gather", "render_report", "write_facts", "write_report"]
