"""Show it: a line, a table, a screen, a page, files for other tools. Reads records, never changes a run.

In: a run directory or its records. Out: text. What is needed beside every run is here and light; the folders
`screen` (terminal), `report` (HTML) and `export` bring their own libraries.
"""

from headway.ui.progress import ProgressLine, clock_text, rate_text
from headway.ui.text import cell_width, clean_text, columns_of, fit_text

__all__ = ["ProgressLine", "cell_width", "clean_text", "clock_text", "columns_of", "fit_text", "rate_text"]
