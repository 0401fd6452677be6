"""Words of alerts and trackers: what is sent, and what is wrong with where it is to go."""

from __future__ import annotations

from headway.messages import Text

_ADDRESS_EN = "put the address of the channel into an environment variable:\n  export HEADWAY_ALERT_TO='ADDRESS'"
_ADDRESS_ZH = "把渠道的地址放进环境变量：\n  export HEADWAY_ALERT_TO='ADDRESS'"

TEXTS: dict[str, Text] = {
    # The config.
    "alert/address-secret": Text(
        en="{key} contains the address that alerts are sent to; it is a secret and does not belong in a config",
        zh="{key} 里是发送通知的地址；地址等于密钥，不能写进配置",
        en_hint=_ADDRESS_EN,
        zh_hint=_ADDRESS_ZH,
    ),
    "alert/address-unknown": Text(
        en="{got!r} is neither the name of an environment variable nor an address like `json://host/path`",
        zh="{got!r} 既不是环境变量名，也不是 `json://host/path` 这样的地址",
        en_hint=_ADDRESS_EN,
        zh_hint=_ADDRESS_ZH,
    ),
    "alert/variable-unset": Text(
        en="the environment variable {name} should contain the address for alerts, but it is not set",
        zh="通知要发往环境变量 {name} 中的地址，但该变量没有设置",
        en_hint="set it, then start again:\n  export {name}='ADDRESS'",
        zh_hint="设置后重新运行：\n  export {name}='ADDRESS'",
    ),
    "alert/not-an-address": Text(
        en="the environment variable {name} does not contain an address such as `feishu://TOKEN` or `https://…`",
        zh="环境变量 {name} 中没有 `feishu://TOKEN` 或 `https://…` 这样的地址",
        en_hint="see how addresses look:\n  headway alert --help",
        zh_hint="查看地址写法：\n  headway alert --help",
    ),
    "alert/no-channel": Text(
        en="no channel is set, so there is nowhere to send messages",
        zh="没有设置通知渠道，消息无处可发",
        en_hint=_ADDRESS_EN,
        zh_hint=_ADDRESS_ZH,
    ),
    "alert/quiet-unknown": Text(
        en="quiet hours look like `23:00-07:00`, not like {got!r}",
        zh="免打扰时段的写法是 `23:00-07:00`，而不是 {got!r}",
    ),
    "alert/condition-syntax": Text(
        en="the condition `{text}` cannot be read: {why:said}",
        zh="无法读懂条件 `{text}`：{why:said}",
        en_hint="a condition compares numbers of the run: `val.bpb > 1.2 and step > 1000`",
        zh_hint="条件是对训练数值的比较：`val.bpb > 1.2 and step > 1000`",
    ),
    "alert/condition-part": Text(
        en="`{part}` is not allowed in the condition `{text}`",
        zh="条件 `{text}` 中不能有 `{part}`",
        en_hint="use numbers, names, + - * /, comparisons, and, or, not, as in `val.bpb > 1.2 and step > 1000`",
        zh_hint="可以用数字、名字、+ - * /、比较、and、or、not，例如 `val.bpb > 1.2 and step > 1000`",
    ),
    "alert/condition-name": Text(
        en="a condition cannot use `{name}`, because no number has this name; available: {known:list}",
        zh="条件里没有名为 `{name}` 的数值；可用的有 {known:list}",
        en_hint="write `{near}`",
        zh_hint="写成 `{near}`",
    ),
    "alert/condition-constant": Text(
        en="the condition `{text}` does not use any number of the run, so its result never changes",
        zh="条件 `{text}` 没有用到训练中的任何数值，结果永远不变",
    ),
    "alert/condition-long": Text(en="a condition has at most {most} characters", zh="条件最多 {most} 个字符"),
    # What is sent.
    "alert/title": Text(en="[headway] {run}: {what}", zh="[headway] 训练 {run}：{what}"),
    "alert/word-finished": Text(en="finished", zh="训练完成"),
    "alert/word-failed": Text(en="failed", zh="训练失败"),
    "alert/word-stopped": Text(en="stopped", zh="训练已停止"),
    "alert/word-restarted": Text(en="restarted after a failure", zh="故障后已重启"),
    "alert/word-lost": Text(en="its supervisor is gone", zh="监控进程已消失"),
    "alert/word-hang": Text(en="hangs", zh="卡死"),
    "alert/word-no-progress": Text(en="makes no progress", zh="没有进展"),
    "alert/word-disk": Text(en="disk nearly full", zh="磁盘空间不足"),
    "alert/word-heat": Text(en="GPU slowed down", zh="GPU 降频"),
    "alert/word-gpu": Text(en="GPU fault", zh="GPU 故障"),
    "alert/word-memory": Text(en="host memory nearly full", zh="主机内存不足"),
    "alert/word-finding": Text(en="finding", zh="发现问题"),
    "alert/word-metric": Text(en="condition met", zh="条件成立"),
    "alert/word-test": Text(en="test message", zh="测试消息"),
    "alert/finished": Text(en="finished after {steps:,} steps", zh="已完成，共 {steps:,} 步"),
    "alert/best": Text(en="best {name}: {value} at step {step:,}", zh="最佳 {name}：{value}（第 {step:,} 步）"),
    "alert/last": Text(en="last {name}: {value} at step {step:,}", zh="最近一次 {name}：{value}（第 {step:,} 步）"),
    "alert/lost": Text(
        en="the supervisor process was killed or its machine is shutting down; its ranks have ended too; "
        "saved checkpoints are safe",
        zh="监控进程被强制终止，或机器正在关机；各 rank 已随之结束；已保存的检查点不受影响",
    ),
    "alert/no-progress": Text(en="no new step for {seconds} s", zh="已有 {seconds} 秒没有完成新的步"),
    "alert/metric": Text(
        en="the alert condition {condition} is met at step {step:,} ({values})",
        zh="第 {step:,} 步满足通知条件 {condition}（{values}）",
    ),
    "alert/test": Text(
        en="this is a test message from Headway; the channel works", zh="这是 Headway 的测试消息；此渠道可用"
    ),
    "alert/what-to-do": Text(en="what to do:", zh="对策："),
    "alert/held": Text(en="earlier messages that were not sent: {num}", zh="此前未发送的消息：{num} 条"),
    "alert/place": Text(en="step {step}, host {host}", zh="第 {step} 步，主机 {host}"),
    "alert/place-of": Text(en="step {step:,} of {total:,}, host {host}", zh="第 {step:,} / {total:,} 步，主机 {host}"),
    # The channels.
    "alert/refused": Text(
        en="{channel} refused the message: {why:said}",
        zh="{channel} 拒绝了消息：{why:said}",
        en_hint="check the address, the signature secret and the keywords of the robot, then:\n  headway alert test",
        zh_hint="检查地址、签名密钥和机器人的关键词，然后：\n  headway alert test",
    ),
    "alert/unreachable": Text(
        en="{channel} could not be reached: {why:said}",
        zh="无法连接 {channel}：{why:said}",
        en_hint="check the network and the proxy of this machine, then:\n  headway alert test",
        zh_hint="检查本机的网络和代理，然后：\n  headway alert test",
    ),
    "alert/timeout": Text(
        en="{channel} did not answer within {seconds} s",
        zh="{channel} 在 {seconds} 秒内没有应答",
        en_hint="check the network and the proxy of this machine, then:\n  headway alert test",
        zh_hint="检查本机的网络和代理，然后：\n  headway alert test",
    ),
    "alert/bad-address": Text(
        en="the address for {channel} is incomplete or of an unknown kind",
        zh="{channel} 的地址不完整，或类型未知",
        en_hint="see how addresses look:\n  headway alert --help",
        zh_hint="查看地址写法：\n  headway alert --help",
    ),
    "alert/not-started": Text(
        en="the process that sends alerts and feeds trackers did not start ({why}); training continues without it",
        zh="无法启动发送通知和向实验跟踪平台写数据的进程（{why}）；训练继续，但没有这些功能",
    ),
    "alert/not-sent": Text(en="alert not sent: {why}", zh="通知未发出：{why}"),
    # The command.
    "alert/line": Text(
        en="send messages to chat, e-mail or a webhook; test them", zh="聊天、邮件、webhook 通知：发送测试"
    ),
    "alert/help": Text(
        en="Send messages about runs to chat, e-mail or a webhook.\n\n"
        "A run sends to the addresses in HEADWAY_ALERT_TO and in the variables that alert.to names. Addresses:\n"
        "https://open.feishu.cn/open-apis/bot/v2/hook/TOKEN?secret=SECRET (Feishu)\n"
        "https://oapi.dingtalk.com/robot/send?access_token=TOKEN&secret=SECRET (DingTalk)\n"
        "https://qyapi.weixin.qq.com/cgi-bin/webhook/send?key=KEY (WeCom)\n"
        "https://hooks.slack.com/services/A/B/C (Slack)\n"
        "https://discord.com/api/webhooks/ID/TOKEN (Discord)\n"
        "mailtos://USER:PASSWORD@smtp.example.com?to=you@example.com (e-mail)\n"
        "https://example.com/any/path (webhook, receives JSON), and every other address that apprise knows.\n\n"
        "The variable is set with: export HEADWAY_ALERT_TO='ADDRESS'; several are separated by spaces.\n\n"
        "Example:\n  headway alert test",
        zh="把训练消息发到聊天工具、邮箱或 webhook。\n\n"
        "训练会发往 HEADWAY_ALERT_TO 和 alert.to 所列变量中的地址。地址写法：\n"
        "https://open.feishu.cn/open-apis/bot/v2/hook/TOKEN?secret=SECRET（飞书）\n"
        "https://oapi.dingtalk.com/robot/send?access_token=TOKEN&secret=SECRET（钉钉）\n"
        "https://qyapi.weixin.qq.com/cgi-bin/webhook/send?key=KEY（企业微信）\n"
        "https://hooks.slack.com/services/A/B/C（Slack）\n"
        "https://discord.com/api/webhooks/ID/TOKEN（Discord）\n"
        "mailtos://USER:PASSWORD@smtp.example.com?to=you@example.com（邮件）\n"
        "https://example.com/any/path（webhook，收到 JSON），以及 apprise 支持的其他地址。\n\n"
        "设置变量：export HEADWAY_ALERT_TO='ADDRESS'；多个地址用空格隔开。\n\n"
        "示例：\n  headway alert test",
    ),
    "alert/test-help": Text(
        en="Send a test message to every channel and say what each answered.\n\nExample:\n  headway alert test",
        zh="向每个渠道发送一条测试消息，并给出各自的应答。\n\n示例：\n  headway alert test",
    ),
    "alert/option-to": Text(
        en="an address, or the variable that holds it; may be repeated (default: HEADWAY_ALERT_TO)",
        zh="地址，或保存地址的环境变量名；可重复（默认 HEADWAY_ALERT_TO）",
    ),
    "alert/option-when": Text(
        en="also send a message when this condition becomes true, such as 'loss > 5'; may be repeated",
        zh="条件成立时也发消息，如 'loss > 5'；可重复",
    ),
    "alert/option-track": Text(
        en="tracker that receives the metrics: wandb, swanlab, tensorboard, mlflow, trackio; may be repeated",
        zh="接收指标的实验跟踪平台：wandb、swanlab、tensorboard、mlflow、trackio；可重复",
    ),
    "alert/sent": Text(en="{channel}: sent in {seconds} s", zh="{channel}：已发送，用时 {seconds} 秒"),
    "alert/test-failed": Text(
        en="{failed} of {num} channels did not accept the message", zh="{num} 个渠道中有 {failed} 个没有接受消息"
    ),
    # Trackers.
    "alert/tracker-missing": Text(
        en="{tracker} is not installed in {python}, so it receives nothing",
        zh="{python} 中没有安装 {tracker}，因此它收不到数据",
        en_hint="install it there:\n  {python} -m pip install {tracker}",
        zh_hint="在该环境中安装：\n  {python} -m pip install {tracker}",
    ),
    "alert/tracker-failed": Text(
        en="{tracker} did not accept the metrics: {why:said}; training is not affected",
        zh="{tracker} 没有接受指标数据：{why:said}；训练不受影响",
        en_hint="its own output is in {log}",
        zh_hint="它自己的输出在 {log}",
    ),
    "alert/tracker-slow": Text(
        en="{tracker} was stopped {seconds} s after the run ended: it has received the metrics only up to step {step}",
        zh="训练结束 {seconds} 秒后 {tracker} 仍未收完指标数据，已停止等待；它只收到第 {step} 步为止的数据",
        en_hint="its own output is in {log}",
        zh_hint="它自己的输出在 {log}",
    ),
}
