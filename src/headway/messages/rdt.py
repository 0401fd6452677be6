from headway.messages import Text
TEXTS: dict[str, Text] = {k: Text(en=k, zh=k) for k in ("rdt/making-demos","rdt/reading-demos","rdt/prepared","rdt/task-rate","rdt/all-rate","rdt/past-horizon","rdt/missing-library")}
