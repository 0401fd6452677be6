"""The terminal: records come in; tables, lines and live views go out.

Each is imported by file and brings its own libraries.
"""
