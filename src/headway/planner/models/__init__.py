"""Formulas of public models: a name or a shape comes in, parameters, kept activations and work go out."""
