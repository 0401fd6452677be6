"""Train: a job comes in, steps, metrics and checkpoints go out. `loop.py` is the page to read first.

Only ranks import this stage; the launch stage starts it by name (`headway.engine.rank:main`).
"""
