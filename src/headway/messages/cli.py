"""What the command line itself says."""

from __future__ import annotations

from headway.messages import Text

TEXTS: dict[str, Text] = {
    # the frame of help and of errors
    "cli/help": Text(
        en="""One command takes a training job from a file to a finished model.

Example:
  headway train                      train the default recipe on built-in data
  headway train nanochat depth=4     a recipe with one value changed""",
        zh="""一条命令，从一个文件到训练好的模型。

示例：
  headway train                      用内置数据训练默认配方
  headway train nanochat depth=4     训练某个配方，改一个参数""",
    ),
    "cli/head-usage": Text(en="Usage: ", zh="用法："),
    "cli/head-options": Text(en="Options:", zh="选项："),
    "cli/head-commands": Text(en="Commands:", zh="命令："),
    "cli/usage-options": Text(en="[OPTIONS]", zh="[选项]"),
    "cli/usage-command": Text(en="COMMAND …", zh="命令 …"),
    "cli/default": Text(en="[default: {value}]", zh="[默认：{value}]"),
    "cli/metavar-text": Text(en="TEXT", zh="文本"),
    "cli/metavar-integer": Text(en="N", zh="整数"),
    "cli/metavar-number": Text(en="NUMBER", zh="数值"),
    "cli/metavar-path": Text(en="PATH", zh="路径"),
    "cli/metavar-folder": Text(en="FOLDER", zh="目录"),
    "cli/error": Text(en="error: {text} [{code}]", zh="错误：{text} [{code}]"),
    "cli/hint": Text(en="hint: {text}", zh="提示：{text}"),
    "cli/hint-again": Text(en="the full command, corrected:", zh="改正后的完整命令："),
    "cli/path-missing": Text(
        en="{path}: there is no such file or folder",
        zh="{path}：文件或目录不存在",
        en_hint=("check the spelling; this shows what is there:\n  ls -l {folder}"),
        zh_hint=("检查拼写；查看那里有什么：\n  ls -l {folder}"),
    ),
    "cli/path-a-link": Text(
        en="{path} is a symbolic link or a loop of links; headway does not write through links in a run directory",
        zh="{path} 是符号链接（或循环链接）；headway 不会通过训练目录中的链接写入",
        en_hint=("look where it leads:\n  ls -ld {path}"),
        zh_hint=("查看它指向哪里：\n  ls -ld {path}"),
    ),
    "cli/path-no-file": Text(
        en="{path} is not a regular file",
        zh="{path} 不是普通文件",
        en_hint=("look at it:\n  ls -ld {path}"),
        zh_hint=("查看它：\n  ls -ld {path}"),
    ),
    "cli/path-denied": Text(
        en="{path}: permission denied",
        zh="{path}：没有访问权限",
        en_hint="choose a place you can write to, or ask its owner for permission",
        zh_hint="换一个有写入权限的位置，或由其所有者开放权限",
    ),
    "cli/path-not-folder": Text(
        en="{path}: a part of this path is a file, not a folder",
        zh="{path}：路径中有一段是文件，不是目录",
        en_hint="choose another path",
        zh_hint="换一个路径",
    ),
    "cli/path-a-folder": Text(
        en="{path}: this is a folder, but a file is needed",
        zh="{path}：这是目录，此处需要文件",
        en_hint="choose a file name inside it",
        zh_hint="写出其中某个文件的名称",
    ),
    "cli/path-exists": Text(
        en="{path}: a file with this name already exists",
        zh="{path}：已有同名文件",
        en_hint="choose another name, or remove it first",
        zh_hint="换一个名称，或先删除它",
    ),
    "cli/path-too-long": Text(
        en="{path}: the name is too long for this disk",
        zh="{path}：名称过长，磁盘不支持",
        en_hint="choose a shorter name",
        zh_hint="换一个更短的名称",
    ),
    "cli/disk-full": Text(
        en="the disk is full, or your disk quota is used up ({path})",
        zh="磁盘已满，或已超出配额（{path}）",
        en_hint=("free some space; this shows how much there is:\n  df -h ."),
        zh_hint=("腾出空间；查看剩余空间：\n  df -h ."),
    ),
    "cli/file-too-large": Text(
        en="{path}: the file would exceed the file size limit of this process",
        zh="{path}：文件将超过本进程允许写入的大小",
        en_hint=("look at the limit:\n  ulimit -f"),
        zh_hint=("查看该限制：\n  ulimit -f"),
    ),
    "cli/disk-read-only": Text(
        en="the disk is mounted read-only ({path})",
        zh="磁盘以只读方式挂载（{path}）",
        en_hint="choose a place on another disk",
        zh_hint="换到其他磁盘上的位置",
    ),
    "cli/disk-error": Text(
        en="the disk reports an error ({path})",
        zh="磁盘报告读写错误（{path}）",
        en_hint=("look at the kernel's messages:\n  dmesg | tail"),
        zh_hint=("查看内核日志：\n  dmesg | tail"),
    ),
    "cli/too-many-files": Text(
        en="too many files are open",
        zh="打开的文件过多",
        en_hint=("raise the limit in this shell, then type the same command again:\n  ulimit -n 65536"),
        zh_hint=("在当前终端提高上限，然后重新运行同一条命令：\n  ulimit -n 65536"),
    ),
    "cli/no-working-directory": Text(
        en="the current folder has been deleted or moved",
        zh="当前所在的目录已被删除或移走",
        en_hint=("go to one that exists:\n  cd ~"),
        zh_hint=("换到存在的目录：\n  cd ~"),
    ),
    "cli/no-memory": Text(
        en="the memory limit of this process is too low for the command",
        zh="此进程的内存上限过低，无法完成该命令",
        en_hint=(
            "raise the limits of this shell, then type the same command again:\n"
            "  ulimit -v unlimited\n"
            "  ulimit -d unlimited"
        ),
        zh_hint=("在当前终端放宽限制，然后重新运行同一条命令：\n  ulimit -v unlimited\n  ulimit -d unlimited"),
    ),
    "cli/package-missing": Text(
        en="the Python package {package} is needed, but it is not installed (module {module})",
        zh="需要 Python 软件包 {package}，但尚未安装（模块 {module}）",
        en_hint=("install it:\n  {python} -m pip install {package}"),
        zh_hint=("安装它：\n  {python} -m pip install {package}"),
    ),
    "cli/bug": Text(
        en="this is a bug in headway, not in your training",
        zh="这是 headway 自身的缺陷，不是你的训练有问题",
        en_hint="report the output above and the version, {version}",
        zh_hint="反馈时附上以上全部输出和版本号 {version}",
    ),
    # one line a command
    "cli/line-train": Text(en="check, plan, launch, train, report", zh="检查、规划、启动、训练、出报告"),
    "cli/line-run": Text(en="run any launch line or script under supervision", zh="监控运行任意启动命令或脚本"),
    "cli/line-resume": Text(en="resume a run from its newest intact checkpoint", zh="从最新的完好检查点继续训练"),
    "cli/line-check": Text(en="check this machine", zh="检查本机"),
    "cli/line-plan": Text(
        en="show batch size, learning rate, steps and memory before training", zh="训练前算好批大小、学习率、步数和显存"
    ),
    "cli/line-tune": Text(en="find the fastest settings with short real runs", zh="用短时间的真实训练找出最快的设置"),
    "cli/line-eval": Text(en="evaluate a trained model", zh="评测训练好的模型"),
    "cli/line-predict": Text(en="generate output with a trained model", zh="用训练好的模型生成结果"),
    "cli/line-watch": Text(en="follow a run in the terminal", zh="在终端实时查看训练"),
    "cli/line-attach": Text(
        en="follow a detached run; Ctrl-C saves and stops it", zh="接管后台训练；按 Ctrl-C 保存并停止"
    ),
    "cli/line-stop": Text(en="save and stop a run", zh="保存并停止训练"),
    "cli/line-runs": Text(en="list runs", zh="列出所有训练"),
    "cli/line-diagnose": Text(
        en="why a run or any log failed, and what to change", zh="分析训练或任意日志失败的原因与对策"
    ),
    "cli/line-explain": Text(en="what a code in brackets means", zh="解释方括号中的代码"),
    "cli/diagnose-help": Text(
        en=(
            "Say why a run, or the program behind any log, has failed: the root cause, the lines that prove it, what "
            "is only a consequence, how sure that is, and what to do, cheapest first.\n\n"
            "A log may be anybody's, of any size, and packed (gz, bz2, xz); a folder of logs is read file by file; "
            "`-` reads from a pipe. Without an argument: the newest run. "
            "Exit code 0: no failure found, 5: a failure was found.\n\n"
            "Example:\n  headway diagnose slurm-4711.out"
        ),
        zh=(
            "说明一次训练或任意日志背后的程序为什么失败：根本原因、能证明它的行、哪些只是后果、把握有多大、怎么处理（代价小的在前）。\n\n"
            "日志可以是任何人的、任意大小，也可以是压缩文件（gz、bz2、xz）；给出目录则逐个读取其中的日志；"
            "- 表示从管道读取。不带参数：最近一次训练。"
            "退出码 0：没有发现失败，5：发现失败。\n\n"
            "示例：\n  headway diagnose slurm-4711.out"
        ),
    ),
    "cli/explain-help": Text(
        en=(
            "Explain a code: what it means, whether trying again helps, and what to do. Without a code: all findings "
            "of `headway diagnose`, by category. A category explains all of its findings.\n\n"
            "Example:\n  headway explain device-out-of-memory"
        ),
        zh=(
            "解释一个代码：含义、重试是否有用、怎么处理。不带代码：按类别列出 headway diagnose 的全部结果。"
            "给出类别则解释该类别的全部结果。\n\n"
            "示例：\n  headway explain device-out-of-memory"
        ),
    ),
    "cli/option-apply": Text(
        en="write the cheapest fix that is a setting into the run's config file; shows the difference and asks first",
        zh="把代价最小、能用配置项实现的办法写入训练的配置文件；先显示差异并询问",
    ),
    "cli/option-apply-yes": Text(en="write it without asking", zh="不询问，直接写入"),
    "cli/option-rules": Text(
        en="folder of further rules; your own are in ~/.config/headway/rules",
        zh="更多规则所在的目录；自己的规则放在 ~/.config/headway/rules",
    ),
    "cli/nothing-to-apply": Text(
        en="no fix of this finding is a setting of a Headway config, so nothing was written",
        zh="该结果的处理办法都不是 Headway 配置项，没有写入任何文件",
        en_hint="carry out the first fix above by hand",
        zh_hint="按上面的第一条手动处理",
    ),
    "cli/no-file-to-apply": Text(
        en="the run was started without a config file, so there is no file to change",
        zh="这次训练不是用配置文件启动的，没有可修改的文件",
        en_hint="resume with the setting:\n  headway resume {run} {setting}",
        zh_hint="带上该配置项继续训练：\n  headway resume {run} {setting}",
    ),
    "cli/ask-apply": Text(en="write this into {path}?", zh="把以上修改写入 {path}？"),
    "cli/not-applied": Text(
        en="nothing was written into {path}",
        zh="没有写入 {path}",
        en_hint="add --yes to write it without a question",
        zh_hint="加 --yes 可不询问直接写入",
    ),
    "cli/applied": Text(en="written: {path}", zh="已写入：{path}"),
    "cli/unknown-code": Text(
        en="{code} is not a code that this version knows",
        zh="当前版本没有代码 {code}",
        en_hint="list all codes:\n  headway explain",
        zh_hint="列出全部代码：\n  headway explain",
    ),
    "cli/line-compare": Text(
        en="compare runs: settings that differ, difference in results", zh="比较多次训练：设置的差异与结果的差异"
    ),
    "cli/line-report": Text(en="write one HTML file about a run", zh="生成单文件 HTML 训练报告"),
    "cli/line-export": Text(
        en="export metrics as CSV, JSON or TensorBoard files", zh="把指标导出为 CSV、JSON 或 TensorBoard 文件"
    ),
    "cli/line-ckpt": Text(en="list, verify, export, prune checkpoints", zh="列出、校验、导出、清理检查点"),
    "cli/line-config": Text(en="show, explain and describe the config", zh="查看和解释配置"),
    "cli/line-new": Text(
        en="create a project in which a guide's commands work as written", zh="生成项目，指南里的命令可以原样运行"
    ),
    "cli/new-help": Text(
        en="""Create a project folder in which a guide's commands work as written.

With --recipe, create a recipe of your own instead: the smallest one that trains, with comments and a test.

Example:
  headway new nanochat mychat
  headway new --recipe mytask mytask""",
        zh="""生成一个项目目录，指南里的命令可以原样运行。

使用 --recipe 则改为生成你自己的配方：能训练的最小配方，带注释和测试。

示例：
  headway new nanochat mychat
  headway new --recipe mytask mytask""",
    ),
    "cli/option-dry-run-files": Text(en="list the files, write nothing", zh="只列出文件，不写入"),
    "cli/option-new-recipe": Text(en="create a recipe with this name in FOLDER", zh="在 FOLDER 中生成以此命名的配方"),
    "cli/new-recipe-made": Text(
        en="{folder} is ready; test and train it:\npytest {path}\nheadway train {path}",
        zh="{folder} 已就绪；测试并训练：\npytest {path}\nheadway train {path}",
    ),
    "cli/new-made": Text(
        en="{folder} is ready: the commands of the {recipe} guide work there; its README.md explains them:\n"
        "cd {path}\ncat README.md",
        zh="{folder} 已就绪：{recipe} 指南里的命令可以在其中原样运行，说明见其中的 README.md：\n"
        "cd {path}\ncat README.md",
    ),
    "cli/line-adopt": Text(en="read an old launch line, script or guide", zh="读懂旧的启动命令、脚本或指南"),
    "cli/line-completion": Text(en="shell completion for bash, zsh, fish", zh="bash、zsh、fish 的命令补全"),
    "cli/line-trust": Text(en="allow code named in a file to run", zh="允许运行文件中指定的代码"),
    "cli/trust-help": Text(
        en="""Allow code that a config file or a run directory names: a recipe folder or an interpreter.

A path you type (headway train ./folder) is trusted from then on. A path that only a file names is not trusted: reading
a config or a run that someone sent must not run their code. Without PATH, the trusted paths are listed; the list is
in ~/.config/headway/trusted, and HEADWAY_TRUST can add more.

Example:
  headway trust ./my_recipe""",
        zh="""允许运行配置文件或训练目录中指定的代码：配方目录或解释器。

命令行中写出的路径（headway train ./folder）自此受信任；只出现在文件中的路径则不然：读取他人发来的配置或训练目录，
不应运行其中的代码。不写 PATH 时列出受信任的路径；列表保存在 ~/.config/headway/trusted，也可用 HEADWAY_TRUST 追加。

示例：
  headway trust ./my_recipe""",
    ),
    "cli/option-forget": Text(en="remove the path from the list", zh="从列表中移除该路径"),
    "cli/option-trust-dry-run": Text(en="show what would be recorded, write nothing", zh="只说明将如何记录，不写入"),
    "cli/trust-none": Text(en="no path is trusted yet", zh="还没有受信任的路径"),
    "cli/trusted": Text(en="{path} is trusted: its code may run", zh="已信任 {path}：可以运行其中的代码"),
    "cli/trust-forgotten": Text(en="{path} is no longer trusted", zh="已不再信任 {path}"),
    "cli/not-trusted": Text(
        en="{path} is not on the list of trusted paths",
        zh="{path} 不在受信任的路径中",
        en_hint=("list them:\n  headway trust"),
        zh_hint=("查看列表：\n  headway trust"),
    ),
    "cli/ask-trust": Text(
        en="a file names {path}, and this command would run its code; trust it from now on?",
        zh="文件中指定了 {path}，该命令会运行其中的代码；今后信任它吗？",
    ),
    "cli/no-recipe": Text(
        en="{run} was started by headway run: it has no recipe that can load its model",
        zh="{run} 由 headway run 启动：没有可以加载其模型的配方",
        en_hint="evaluate it with your own script",
        zh_hint="用自己的脚本评测",
    ),
    "cli/untrusted": Text(
        en="a file names {path}, and this command would run its code; it is not trusted yet",
        zh="文件中指定了 {path}，该命令会运行其中的代码；它尚未受信任",
        en_hint=("look at it, then allow it once:\n  headway trust {path}"),
        zh_hint=("确认内容无误后，允许一次即可：\n  headway trust {path}"),
    ),
    # options that several commands have
    "cli/option-help": Text(en="show this help", zh="显示本帮助"),
    "cli/option-version": Text(en="show the version", zh="显示版本"),
    "cli/option-lang": Text(en="language of all output", zh="界面语言"),
    "cli/option-color": Text(en="colour on the terminal", zh="终端颜色"),
    "cli/option-json": Text(en="print one JSON object", zh="输出一个 JSON 对象"),
    "cli/option-out": Text(en="folder that contains the run directories", zh="存放训练目录的位置"),
    "cli/option-detach": Text(
        en="train in the background; the run continues when this terminal closes", zh="在后台训练，关闭终端不受影响"
    ),
    "cli/option-trace": Text(
        en="forecast memory by tracing the real model and step before the start (takes seconds, result is cached); "
        "the default on GPUs when the recipe has no formula",
        zh="开始前追踪真实的模型与训练步来预测显存（需数秒，结果会缓存）；在 GPU 上且配方没有公式时默认如此",
    ),
    "cli/tracing": Text(
        en="tracing one step to see whether it fits (takes some seconds, result is cached; --no-trace skips it)",
        zh="正在追踪一个训练步，看显存是否够用（需数秒，结果会缓存；--no-trace 可跳过）",
    ),
    "cli/option-dry-run": Text(en="check and plan, then stop", zh="只检查和规划，不训练"),
    "cli/option-step": Text(en="checkpoint: a step, `latest` or `best`", zh="检查点：步数、`latest` 或 `best`"),
    "cli/option-samples": Text(en="number of validation samples to use", zh="使用多少个验证样本"),
    "cli/option-to": Text(
        en="folder for the output; default: predictions/ in the run directory",
        zh="生成的文件放到哪个目录；默认是训练目录下的 predictions/",
    ),
    "cli/option-now": Text(en="stop immediately, without saving", zh="不保存，立即停止"),
    "cli/option-wait": Text(en="how many seconds to wait for the end", zh="最多等待多少秒"),
    # a line that makes no sense
    "cli/no-command": Text(
        en="{path} has no command {given}",
        zh="{path} 没有 {given} 这个命令",
        en_hint=("see the commands:\n  {command} --help"),
        zh_hint=("查看所有命令：\n  {command} --help"),
    ),
    "cli/no-command-near": Text(
        en="{path} has no command {given}; the nearest is {near}",
        zh="{path} 没有 {given} 这个命令；最接近的是 {near}",
        en_hint=("type:\n  {again}"),
        zh_hint=("改为：\n  {again}"),
    ),
    "cli/no-option": Text(
        en="{command} has no option {option}",
        zh="{command} 没有 {option} 这个选项",
        en_hint=("see the options:\n  {command} --help"),
        zh_hint=("查看所有选项：\n  {command} --help"),
    ),
    "cli/no-option-near": Text(
        en="{command} has no option {option}; the nearest is {near}",
        zh="{command} 没有 {option} 这个选项；最接近的是 {near}",
        en_hint=("type:\n  {again}"),
        zh_hint=("改为：\n  {again}"),
    ),
    "cli/option-needs-value": Text(
        en="{option} needs a value",
        zh="{option} 后面缺少值",
        en_hint=("see what it takes:\n  {command} --help"),
        zh_hint=("查看可用的值：\n  {command} --help"),
    ),
    "cli/option-is-flag": Text(
        en="{option} does not take a value",
        zh="{option} 不带值",
        en_hint=("type:\n  {again}"),
        zh_hint=("改为：\n  {again}"),
    ),
    "cli/missing": Text(
        en="{command} needs {name}, but it is missing",
        zh="{command} 缺少 {name}",
        en_hint=("see what it is:\n  {command} --help"),
        zh_hint=("查看说明：\n  {command} --help"),
    ),
    "cli/missing-choice": Text(
        en="{command} needs {name}: one of {choices:list}",
        zh="{command} 缺少 {name}，可选：{choices:list}",
        en_hint=("for example:\n  {command} {first}"),
        zh_hint=("例如：\n  {command} {first}"),
    ),
    "cli/not-a-choice": Text(
        en="{name} is {value}, but must be one of {choices:list}",
        zh="{name} 的值是 {value}，只能是 {choices:list} 之一",
        en_hint=("type:\n  {again}"),
        zh_hint=("改为：\n  {again}"),
    ),
    "cli/not-an-integer": Text(
        en="{name} is {value}, but must be a whole number{bounds}",
        zh="{name} 的值是 {value}，必须是整数{bounds}",
        en_hint="write the number in digits after {name}",
        zh_hint="在 {name} 后面用数字写出",
    ),
    "cli/not-a-number": Text(
        en="{name} is {value}, but must be a number{bounds}",
        zh="{name} 的值是 {value}，必须是数值{bounds}",
        en_hint="write the number in digits after {name}",
        zh_hint="在 {name} 后面用数字写出",
    ),
    "cli/no-path": Text(
        en="{name} is {path}, which does not exist",
        zh="{name} 为 {path}，但该路径不存在",
        en_hint=("look at what is there:\n  ls -l {folder}"),
        zh_hint=("查看那里有什么：\n  ls -l {folder}"),
    ),
    "cli/path-is-folder": Text(
        en="{name} is {path}, which is a folder; a file is needed",
        zh="{name} 为 {path}，这是目录，此处需要文件",
        en_hint="add the file name to {path}",
        zh_hint="在 {path} 后面写上文件名",
    ),
    "cli/path-is-file": Text(
        en="{name} is {path}, which is a file; a folder is needed",
        zh="{name} 为 {path}，这是文件，此处需要目录",
        en_hint="give a folder, or a path that does not exist yet",
        zh_hint="换成目录，或一个尚不存在的路径",
    ),
    "cli/extra-words": Text(
        en="{command} does not accept: {words:list}",
        zh="{command} 不接受多余的参数：{words:list}",
        en_hint=("leave it out:\n  {again}"),
        zh_hint=("去掉它：\n  {again}"),
    ),
    "cli/not-understood": Text(
        en="{text}",
        zh="{text}",
        en_hint=("see how it is used:\n  {command} --help"),
        zh_hint=("查看用法：\n  {command} --help"),
    ),
    # train, resume
    "cli/train-help": Text(
        en="""Train a recipe or a config file: check, plan, launch, train, report.

WHAT is the name of a recipe (nanochat) or a config file (.yaml .json .toml .py); without it, the default
recipe trains on built-in data. Change any number of values with key=value.

Ctrl-C or SIGTERM saves and stops; SIGUSR1 or SIGUSR2 saves a checkpoint, and training continues.

Example:
  headway train
  headway train nanochat preset=balanced gpus=2 steps=1000
  headway train run.yaml lr.base=3e-4 --detach""",
        zh="""训练一个配方或配置文件：检查、规划、启动、训练、出报告。

WHAT 是配方名（nanochat）或配置文件（.yaml .json .toml .py）；省略时用内置数据训练默认配方。
用 key=value 修改参数，个数不限。

Ctrl-C 或 SIGTERM 会保存并停止；SIGUSR1 或 SIGUSR2 只保存检查点，训练继续。

示例：
  headway train
  headway train nanochat preset=balanced gpus=2 steps=1000
  headway train run.yaml lr.base=3e-4 --detach""",
    ),
    "cli/option-fork-step": Text(
        en="start a new run from this step; the old run is not changed",
        zh="从这一步开始一次新的训练；原来的训练保持不变",
    ),
    "cli/no-such-step": Text(
        en="run {run} has no checkpoint of step {step}; available: {known:list}",
        zh="训练 {run} 没有第 {step} 步的检查点；现有：{known:list}",
        en_hint=("see which there are:\n  headway ckpt list {run}"),
        zh_hint=("查看已有的检查点：\n  headway ckpt list {run}"),
    ),
    "cli/option-from-scratch": Text(
        en="start at step 0 although the run has saved checkpoints: only allowed when none of them passes verification",
        zh="虽已保存过检查点，仍从第 0 步开始：仅当没有检查点通过校验时可用",
    ),
    "cli/option-add": Text(
        en="take lost ranks back: now, if the run is training on the others; a run that has ended resumes on all ranks",
        zh="接回丢失的 rank：训练仍在其余 rank 上进行时立即接回；已结束的训练则在全部 rank 上继续",
    ),
    "cli/scratch-or-step": Text(
        en="--step {step} and --from-scratch cannot be used together",
        zh="--step {step} 与 --from-scratch 不能同时使用",
        en_hint="remove one of them",
        zh_hint="去掉其中一个",
    ),
    "cli/all-gpus-held": Text(
        en="no free GPU ({holders}): the model is used on the CPU, which takes longer",
        zh="没有空闲的 GPU（{holders}）：改在 CPU 上使用模型，耗时更长",
    ),
    "cli/older-checkpoint": Text(
        en="using step {step}, because {name} does not pass verification: {why:said}",
        zh="改用第 {step} 步，因为 {name} 未通过校验：{why:said}",
    ),
    "cli/used-step": Text(en="using the checkpoint of step {step}", zh="使用第 {step} 步的检查点"),
    "cli/scratch-not-needed": Text(
        en="run {run} has an intact checkpoint of step {step}; --from-scratch would discard it",
        zh="训练 {run} 有完好的第 {step} 步检查点；--from-scratch 会将其放弃",
        en_hint=("continue from step {step}, or begin a new run with `headway train`:\n  headway resume {run}"),
        zh_hint=("从第 {step} 步继续训练，或用 `headway train` 开始新的训练：\n  headway resume {run}"),
    ),
    "cli/resume-help": Text(
        en="""Resume a run from its newest checkpoint that passes verification.

RUN is a run directory, its name or a part of the name; without it, the newest run. You can change values and the
number of devices: the data order stays the same, and so does the total batch unless batch.total is given.

Example:
  headway resume
  headway resume 20261115-180405_nanochat_ab12 steps=2000
  headway resume --add                               take a lost GPU back""",
        zh="""从通过校验的最新检查点继续训练。

RUN 是训练目录、训练名或名字的一部分；省略时取最新的训练。可以修改参数，也可以换设备数量：
数据顺序不变；总批大小也不变，除非给出 batch.total。

示例：
  headway resume
  headway resume 20261115-180405_nanochat_ab12 steps=2000
  headway resume --add                               接回丢失的 GPU""",
    ),
    "cli/resume-done": Text(
        en="run {run} is finished: {step} of {total} steps",
        zh="训练 {run} 已完成：{step}/{total} 步",
        en_hint=("train longer:\n  headway resume {run} steps={more}"),
        zh_hint=("训练更多步：\n  headway resume {run} steps={more}"),
    ),
    "cli/resume-fixed": Text(
        en="{key}={now} cannot be set on resume: run {run} started with {key}={before}, which determines its data "
        "order and weights",
        zh="继续训练时不能设置 {key}={now}：训练 {run} 开始时是 {key}={before}，数据顺序和权重由它决定",
        en_hint=("start a new run:\n  {typed}"),
        zh_hint=("开始新的训练：\n  {typed}"),
    ),
    "cli/detached": Text(en="run {run} is training in the background", zh="训练 {run} 已转入后台"),
    "cli/detached-starting": Text(en="run {run} was started in the background", zh="训练 {run} 已在后台启动"),
    "cli/detached-ended": Text(en="run {run} has already ended", zh="训练 {run} 已经结束"),
    "cli/next": Text(en="next: {command}", zh="下一步：{command}"),
    # eval, predict
    "cli/eval-help": Text(
        en="""Evaluate a trained model on the validation data, from its newest or best checkpoint.

RUN is a run directory, its name or a part of the name; without it, the newest run.

Example:
  headway eval
  headway eval RUN --step best --json""",
        zh="""用验证数据评测训练好的模型，取最新或最佳的检查点。

RUN 是训练目录、训练名或名字的一部分；省略时取最新的训练。

示例：
  headway eval
  headway eval RUN --step best --json""",
    ),
    "cli/predict-help": Text(
        en="""Generate output with a trained model: for nanochat, text that continues a prompt.

RUN is a run directory, its name or a part of the name; without it, the newest run. Options of the recipe are
written key=value or --key value.

Example:
  headway predict prompt="The "
  headway predict RUN prompt="3 plus 4 is" max_tokens=20 temperature=0""",
        zh="""用训练好的模型生成结果：nanochat 会续写给定的开头。

RUN 是训练目录、训练名或名字的一部分；省略时取最新的训练。配方自己的选项写作 key=value 或 --key value。

示例：
  headway predict prompt="The "
  headway predict RUN prompt="3 plus 4 is" max_tokens=20 temperature=0""",
    ),
    "cli/no-best": Text(
        en="run {run} has no validation result yet, so it has no best checkpoint",
        zh="训练 {run} 还没有验证结果，因此没有最佳检查点",
        en_hint=("take the newest one:\n  --step latest"),
        zh_hint=("改用最新的检查点：\n  --step latest"),
    ),
    "cli/step-not-understood": Text(
        en="--step {step} is not a number, `latest` or `best`",
        zh="--step {step} 既不是数字，也不是 `latest` 或 `best`",
        en_hint=("see the steps:\n  headway ckpt list {run}"),
        zh_hint=("查看已有的步数：\n  headway ckpt list {run}"),
    ),
    "cli/child-failed": Text(
        en="the process that loads the model ended with exit code {code}",
        zh="加载模型的进程异常结束，退出码 {code}",
        en_hint="its output above shows the reason",
        zh_hint="原因见上面的输出",
    ),
    "cli/measured": Text(en="{run}  step {step}  {measures}", zh="{run}  第 {step} 步  {measures}"),
    # attach, stop
    "cli/attach-help": Text(
        en="""Follow a detached run.

Ctrl-C saves and stops the run; closing the terminal does not affect it.

Example:
  headway attach""",
        zh="""接管后台训练。

按 Ctrl-C 会保存并停止训练；直接关闭终端不影响训练。

示例：
  headway attach""",
    ),
    "cli/stop-help": Text(
        en="""Save and stop a run; with --now it stops immediately and keeps the last checkpoint.

Example:
  headway stop
  headway stop RUN --now""",
        zh="""保存并停止训练；加 --now 则立即停止，保留最近的检查点。

示例：
  headway stop
  headway stop RUN --now""",
    ),
    "cli/stop-sent": Text(en="asked run {run} to save and stop", zh="已通知训练 {run} 保存并停止"),
    "cli/stopped": Text(en="run {run}: {state}", zh="训练 {run}：{state}"),
    "cli/stop-slow": Text(
        en="run {run} has not ended after {seconds} s",
        zh="等了 {seconds} 秒，训练 {run} 仍未结束",
        en_hint=("see what it is doing, or end it without saving:\n  headway watch {run}\n  headway stop {run} --now"),
        zh_hint=("查看它在做什么，或不保存直接结束：\n  headway watch {run}\n  headway stop {run} --now"),
    ),
    # completion
    "cli/completion-help": Text(
        en="""Print the completion script for a shell.

Example:
  headway completion bash >> ~/.bashrc""",
        zh="""输出某个 shell 的补全脚本。

示例：
  headway completion bash >> ~/.bashrc""",
    ),
}
