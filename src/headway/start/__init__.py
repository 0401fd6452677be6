"""A wish comes in, as words or a launch line; a written run goes out, and is supervised here or in the background.

`source` (words to a config), `decide` and `decide_resume` (a `Decision`), `write` (a run directory), `nursery`,
`supervise` or `detach`, at last `learn`. They are imported by file: a command that only plans does not load what
starts ranks.
"""
