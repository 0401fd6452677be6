"""What the command line itself says."""

from __future__ import annotations

from headway.messages import Text

TEXTS = {
    "cli/help": Text(
        en="""One command takes a training job from a file to a finished model.

Example:
  headway train                      train the default recipe on built-in data
  headway train nanochat depth=4     a recipe with one value changed""",
        zh="""一条命令，把训练任务从一个文件变成训练好的模型。

示例：
  headway train                      用内置数据训练默认配方
  headway train nanochat depth=4     改一个参数训练某个配方""",
    ),
    "cli/commands": Text(en="Commands", zh="命令"),
    "cli/option-lang": Text(en="Language of all texts.", zh="所有文字的语言。"),
    "cli/option-color": Text(en="Colour on the terminal.", zh="终端颜色。"),
    "cli/option-json": Text(en="Print one JSON object.", zh="输出一个 JSON 对象。"),
    "cli/line-train": Text(en="check, plan, launch, train, report", zh="检查、规划、启动、训练、报告"),
    "cli/line-resume": Text(en="go on with a run from its newest good checkpoint", zh="从最新的完好检查点继续训练"),
    "cli/line-check": Text(en="look at this machine", zh="检查这台机器"),
    "cli/line-plan": Text(
        en="batch, learning rate, steps: before a second is spent", zh="开跑前算好批次、学习率、步数"
    ),
    "cli/line-eval": Text(en="measure a trained model", zh="评测训练好的模型"),
    "cli/line-predict": Text(en="let a trained model produce something", zh="用训练好的模型生成结果"),
    "cli/line-watch": Text(en="follow a run in the terminal", zh="在终端里跟踪一次训练"),
    "cli/line-attach": Text(
        en="follow a detached run; Ctrl-C saves and stops it", zh="接管后台训练；Ctrl-C 保存并停止"
    ),
    "cli/line-stop": Text(en="save and stop a run", zh="保存并停止一次训练"),
    "cli/line-runs": Text(en="list runs", zh="列出所有训练"),
    "cli/line-report": Text(en="one HTML file about a run", zh="生成一份单文件 HTML 报告"),
    "cli/line-export": Text(
        en="metrics as CSV, JSON or TensorBoard files", zh="把指标导出为 CSV、JSON 或 TensorBoard 文件"
    ),
    "cli/line-ckpt": Text(en="list, verify, export, prune checkpoints", zh="列出、校验、导出、清理检查点"),
    "cli/line-config": Text(en="show, explain and describe the config", zh="查看、解释配置"),
    "cli/line-completion": Text(en="shell completion for bash, zsh, fish", zh="bash、zsh、fish 的命令补全"),
    "cli/error": Text(en="error", zh="错误"),
    "cli/hint": Text(en="hint", zh="建议"),
    "cli/warning": Text(en="warning", zh="警告"),
    "cli/bug": Text(en="this is a bug in headway, not in your run", zh="这是 headway 自身的缺陷，不是你的训练有问题"),
    "cli/bug-hint": Text(
        en="report the text above with `headway --version` ({version})",
        zh="请连同 `headway --version`（{version}）和上面的文字一起报告",
    ),
    "cli/no-language": Text(en="there is no language {lang_name}", zh="没有 {lang_name} 这种语言"),
    "cli/train-help": Text(
        en="""Train a recipe or a config file: check, plan, launch, train, report.

WHAT is a recipe's name (nanochat) or a config file (.yaml .json .toml .py); without it the default
recipe trains on built-in data. Values are changed by key=value, in any number.

Example:
  headway train
  headway train nanochat preset=balanced gpus=2 steps=1000
  headway train run.yaml lr.base=3e-4 --detach""",
        zh="""训练一个配方或配置文件：检查、规划、启动、训练、报告。

WHAT 是配方名（nanochat）或配置文件（.yaml .json .toml .py）；省略时用内置数据训练默认配方。
用 key=value 改任意多个值。

示例：
  headway train
  headway train nanochat preset=balanced gpus=2 steps=1000
  headway train run.yaml lr.base=3e-4 --detach""",
    ),
    "cli/option-detach": Text(
        en="Train in the background; the run outlives this terminal.", zh="在后台训练；关闭终端不影响。"
    ),
    "cli/option-dry-run": Text(en="Check and plan, then stop.", zh="只检查和规划，不训练。"),
    "cli/option-set": Text(
        en="Change a value, a.b=c (same as writing it without --set).", zh="改一个值 a.b=c（与直接写相同）。"
    ),
    "cli/option-out": Text(en="Folder that holds the run directories.", zh="存放训练目录的文件夹。"),
    "cli/resume-help": Text(
        en="""Go on with a run from its newest checkpoint that verifies.

RUN is a run directory, its name or a part of it; without it the newest run. Values may be changed, and the
number of devices too: the data order and the batch stay the same.

Example:
  headway resume
  headway resume 20261115-180405_nanochat_ab12 steps=2000""",
        zh="""从最新的、通过校验的检查点继续训练。

RUN 是训练目录、名字或其一部分；省略时取最新的一次。可以改参数，也可以换设备数量：数据顺序和批次保持不变。

示例：
  headway resume
  headway resume 20261115-180405_nanochat_ab12 steps=2000""",
    ),
    "cli/resume-done": Text(
        en="run {run} is finished: {step} of {total} steps",
        zh="训练 {run} 已完成：{step}/{total} 步",
        en_hint="to train longer: headway resume {run} steps={more}",
        zh_hint="想继续训练：headway resume {run} steps={more}",
    ),
    "cli/eval-help": Text(
        en="""Measure a trained model on the validation data, from its newest or best checkpoint.

Example:
  headway eval
  headway eval RUN --step best --json""",
        zh="""用验证数据评测训练好的模型（最新或最好的检查点）。

示例：
  headway eval
  headway eval RUN --step best --json""",
    ),
    "cli/predict-help": Text(
        en="""Let a trained model produce something: for nanochat, text that goes on from a prompt.

Example:
  headway predict --prompt "The "
  headway predict RUN --prompt "3 plus 4 is" --max-tokens 20 --temperature 0""",
        zh="""用训练好的模型生成结果：nanochat 会续写给定的开头。

示例：
  headway predict --prompt "The "
  headway predict RUN --prompt "3 plus 4 is" --max-tokens 20 --temperature 0""",
    ),
    "cli/option-step": Text(en="Checkpoint: a step, `latest` or `best`.", zh="检查点：步数、`latest` 或 `best`。"),
    "cli/option-samples": Text(en="Validation samples to use.", zh="使用多少验证样本。"),
    "cli/option-prompt": Text(en="What the text begins with.", zh="文本的开头。"),
    "cli/option-max-tokens": Text(en="Most tokens to add.", zh="最多生成多少 token。"),
    "cli/option-temperature": Text(
        en="0 is the likeliest text, 1 the model's own variety.", zh="0 取最可能的文本，1 保留模型自身的多样性。"
    ),
    "cli/option-seed": Text(en="Seed of the draw.", zh="采样种子。"),
    "cli/no-best": Text(
        en="run {run} has no validation yet, so no best checkpoint",
        zh="训练 {run} 还没有验证结果，因此没有最好的检查点",
        en_hint="use --step latest",
        zh_hint="请用 --step latest",
    ),
    "cli/step-not-understood": Text(
        en="--step {step} is neither a number, `latest` nor `best`",
        zh="--step {step} 既不是数字，也不是 `latest` 或 `best`",
        en_hint="headway ckpt list {run} shows the steps",
        zh_hint="headway ckpt list {run} 可列出步数",
    ),
    "cli/child-failed": Text(
        en="the process that loads the model ended with {code}",
        zh="加载模型的进程以 {code} 结束",
        en_hint="its output stands above",
        zh_hint="它的输出见上文",
    ),
    "cli/attach-help": Text(
        en="""Follow a detached run. Ctrl-C saves and stops the run; q or closing the terminal leaves it alone.

Example:
  headway attach""",
        zh="""接管后台训练。Ctrl-C 会保存并停止训练；直接关闭终端不影响训练。

示例：
  headway attach""",
    ),
    "cli/stop-help": Text(
        en="""Save and stop a run; with --now it stops at once and the last checkpoint counts.

Example:
  headway stop
  headway stop RUN --now""",
        zh="""保存并停止一次训练；加 --now 立即停止，以最近的检查点为准。

示例：
  headway stop
  headway stop RUN --now""",
    ),
    "cli/option-now": Text(en="Do not save first.", zh="不先保存。"),
    "cli/option-wait": Text(en="Seconds to wait for the end.", zh="等待结束的秒数。"),
    "cli/stop-sent": Text(en="asked run {run} to save and stop", zh="已请训练 {run} 保存并停止"),
    "cli/stopped": Text(en="run {run} is {state}", zh="训练 {run} 状态：{state}"),
    "cli/stop-slow": Text(
        en="run {run} has not ended after {seconds} s",
        zh="{seconds} 秒后训练 {run} 仍未结束",
        en_hint="headway watch {run}, or headway stop {run} --now",
        zh_hint="headway watch {run}，或 headway stop {run} --now",
    ),
    "cli/detached": Text(en="run {run} trains in the background", zh="训练 {run} 正在后台运行"),
    "cli/detached-next": Text(en="next: headway watch {run}", zh="下一步：headway watch {run}"),
    "cli/completion-help": Text(
        en="""Print the completion script of a shell.

Example:
  headway completion bash >> ~/.bashrc""",
        zh="""输出某个 shell 的补全脚本。

示例：
  headway completion bash >> ~/.bashrc""",
    ),
}
