"""Words of the board in the browser, and of the device pages it shares with the report."""

from headway.messages import Text

TEXTS: dict[str, Text] = {
    "board/plot-util": Text(en="GPU utilisation", zh="GPU 利用率"),
    "board/plot-gpu-memory": Text(en="GPU memory", zh="显存"),
    "board/plot-temp": Text(en="GPU temperature", zh="GPU 温度"),
    "board/plot-power": Text(en="GPU power", zh="GPU 功耗"),
    "board/plot-cores": Text(en="CPU cores in use per rank", zh="每个 rank 使用的 CPU 核数"),
    "board/plot-rank-memory": Text(en="Host memory per rank", zh="每个 rank 的内存"),
    "board/axis-time": Text(en="time", zh="时间"),
    "board/gpu": Text(en="GPU {rank}", zh="GPU {rank}"),
    "board/note-mean": Text(en="mean {mean}, highest {most}", zh="平均 {mean}，最高 {most}"),
    "board/devices": Text(en="Devices", zh="设备"),
    "board/heat": Text(en="How busy each device was", zh="各设备的繁忙程度"),
    "board/device": Text(en="device", zh="设备"),
    "board/busy": Text(en="busy (mean)", zh="利用率（平均）"),
    "board/memory-peak": Text(en="memory (peak)", zh="显存/内存（峰值）"),
    "board/temp-peak": Text(en="temperature (peak)", zh="温度（最高）"),
    "board/power-mean": Text(en="power (mean)", zh="功耗（平均）"),
    "board/throttle": Text(en="clock held down by", zh="降频原因"),
}
