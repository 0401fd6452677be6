"""Words of the full-screen view in a terminal."""

from headway.messages import Text

TEXTS: dict[str, Text] = {
    "watch/healthy": Text(en="healthy", zh="正常"),
    "watch/healthy-plan": Text(
        en="healthy; time per step differs from the plan by {off}%", zh="正常；每步时间与计划相差 {off}%"
    ),
    "watch/findings": Text(en="open findings: {num}; key 6 shows them", zh="未解决的问题：{num} 个；按 6 查看"),
    "watch/late": Text(en="no heartbeat from rank {ranks:list} for {age}", zh="rank {ranks:list} 已 {age} 没有心跳"),
    "watch/no-checkpoint": Text(en="no checkpoint yet", zh="还没有检查点"),
    "watch/checkpoint": Text(
        en="checkpoint of step {step}, verified; {num} kept, {size}",
        zh="第 {step} 步的检查点，已校验；保留 {num} 个，共 {size}",
    ),
    "watch/disk": Text(en="{free} left on the disk", zh="磁盘剩余 {free}"),
    "watch/speed": Text(en="samples/s", zh="样本/秒"),
    "watch/no-curve": Text(en="no steps yet", zh="还没有训练步"),
    "watch/no-findings": Text(en="nothing was found", zh="没有发现问题"),
    "watch/over": Text(en="past", zh="已消失"),
    "watch/since": Text(en="since {time}", zh="始于 {time}"),
    "watch/cost": Text(en="cost {cost} of training", zh="损失训练时间 {cost}"),
    "watch/lost": Text(en="no answer", zh="没有响应"),
    "watch/verified": Text(en="verified", zh="已校验"),
    "watch/removed": Text(en="removed", zh="已删除"),
    "watch/col-gpu": Text(en="GPU", zh="GPU"),
    "watch/col-util": Text(en="busy", zh="利用率"),
    "watch/col-memory": Text(en="memory", zh="内存"),
    "watch/col-gpu-memory": Text(en="memory", zh="显存"),
    "watch/col-temp": Text(en="temp", zh="温度"),
    "watch/col-power": Text(en="power", zh="功耗"),
    "watch/col-activity": Text(en="activity", zh="活跃度"),
    "watch/col-rank": Text(en="rank", zh="rank"),
    "watch/col-phase": Text(en="phase", zh="阶段"),
    "watch/col-step": Text(en="step", zh="步"),
    "watch/col-age": Text(en="age", zh="距上次"),
    "watch/col-time": Text(en="time/step", zh="每步"),
    "watch/col-data": Text(en="data", zh="数据"),
    "watch/col-comm": Text(en="comm", zh="通信"),
    "watch/col-cores": Text(en="cores", zh="核数"),
    "watch/col-size": Text(en="size", zh="大小"),
    "watch/col-stall": Text(en="stall", zh="停顿"),
    "watch/col-state": Text(en="state", zh="状态"),
    "watch/col-command": Text(en="continue from here", zh="从这里继续训练"),
    "watch/page-run": Text(en="run", zh="训练"),
    "watch/page-ranks": Text(en="ranks", zh="各 rank"),
    "watch/page-devices": Text(en="devices", zh="设备"),
    "watch/page-log": Text(en="log", zh="日志"),
    "watch/page-checkpoints": Text(en="checkpoints", zh="检查点"),
    "watch/page-findings": Text(en="findings", zh="问题"),
    "watch/shelf": Text(
        en="{num} runs in {out}, {running} training", zh="{out} 中有 {num} 次训练，其中 {running} 次正在进行"
    ),
    "watch/no-runs": Text(
        en="no runs here yet; start one: headway train", zh="这里还没有训练；开始训练：headway train"
    ),
    "watch/no-gpus": Text(en="no GPU on this machine", zh="本机没有 GPU"),
    "watch/keys": Text(
        en="1-6 page  / filter  s stop  w save  d stacks  l 中文  t theme  ? help  q quit",
        zh="1-6 页面  / 过滤  s 停止  w 保存  d 调用栈  l English  t 主题  h 帮助  q 退出",
    ),
    "watch/keys-shelf": Text(
        en="up, down choose  Enter open  l 中文  t theme  q quit",
        zh="↑↓ 选择  Enter 打开  l English  t 主题  q 退出",
    ),
    "watch/sure-stop": Text(
        en="save a checkpoint and stop the run? y: yes, Esc: no", zh="保存检查点并停止训练？y 确认，Esc 取消"
    ),
    "watch/sure-save": Text(en="save a checkpoint now? y: yes, Esc: no", zh="现在保存检查点？y 确认，Esc 取消"),
    "watch/sent-stop": Text(en="asked the run to save and stop", zh="已请求保存并停止"),
    "watch/sent-save": Text(en="asked the run for a checkpoint; training continues", zh="已请求保存检查点；训练继续"),
    "watch/filter": Text(
        en="text, rank:1, level:error; empty: all lines", zh="文字、rank:1、level:error；留空显示全部"
    ),
    "watch/stacks-wait": Text(en="reading the stacks", zh="正在读取调用栈"),
    "watch/stack-of": Text(
        en="rank {rank}, which has made no progress for the longest time:", zh="rank {rank}（最久没有进展）："
    ),
    "watch/no-py-spy": Text(
        en="reading stacks needs py-spy, which is not installed; run pip install py-spy",
        zh="读取调用栈需要 py-spy，但尚未安装；运行 pip install py-spy",
    ),
    "watch/no-rank": Text(en="no rank has started yet", zh="还没有 rank 启动"),
    "watch/help-keys": Text(
        en="1 run, 2 ranks, 3 devices, 4 log, 5 checkpoints, 6 findings; Tab: next page; up, down: scroll\n"
        "/ filters the log by words, rank:1, level:error\n"
        "s saves a checkpoint and stops the run, w only saves a checkpoint; both ask first\n"
        "d shows the stack of the slowest rank; l changes the language, t the theme; Esc goes back; q leaves, "
        "and the run continues",
        zh="1 训练，2 各 rank，3 设备，4 日志，5 检查点，6 问题；Tab：下一页；↑↓：滚动\n"
        "/ 按文字、rank:1、level:error 过滤日志\n"
        "s 保存检查点并停止，w 只保存检查点；两者都会先确认\n"
        "d 显示最慢的 rank 的调用栈；l 切换语言，t 切换主题；Esc 返回；q 退出，训练继续",
    ),
}
