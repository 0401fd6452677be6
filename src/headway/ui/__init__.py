"""Show it: a line, a table, a screen, a page, files for other tools. Reads records, never changes a run.

In: a run directory or its records. Out: text. The folders `terminal`, `report` (HTML) and `export` bring their own
libraries, so everything is imported by file: help must not load what draws a table.
"""
