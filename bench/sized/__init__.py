"""A recipe whose state has the size it is told: hardly any arithmetic, as many bytes as wanted."""
