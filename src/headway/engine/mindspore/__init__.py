"""The engine's MindSpore half: the same steps, files and words as the PyTorch half, for tasks made of MindSpore cells.

In: a job and a recipe's `task_mindspore`. Out: what headway.engine.rank leaves: metrics, events and checkpoints of
the same format, with the same names. Order, plan, telemetry and the commit of checkpoints are shared.
"""
