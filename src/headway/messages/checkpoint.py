"""What the checkpoint stage says."""

from __future__ import annotations

from headway.messages import Text

_USE_OLDER_EN = "run headway ckpt verify to see which checkpoints are whole; resume takes the newest of them by itself"
_USE_OLDER_ZH = "运行 headway ckpt verify 查看哪些检查点完好；继续训练时会自动选用其中最新的一个"
_OWN_EN = "this is a fault in the training code or in headway; no file was harmed"
_OWN_ZH = "这是训练代码或 headway 自身的错误；没有文件受损"

TEXTS: dict[str, Text] = {
    # a checkpoint that cannot be trusted
    "checkpoint/missing-file": Text(
        en="{path} is missing",
        zh="缺少 {path}",
        en_hint=_USE_OLDER_EN,
        zh_hint=_USE_OLDER_ZH,
    ),
    "checkpoint/extra-file": Text(
        en="{path} does not belong to the checkpoint ({num} such files)",
        zh="{path} 不属于该检查点（此类文件共 {num} 个）",
        en_hint="move the file elsewhere, then verify again",
        zh_hint="把该文件移到别处，然后重新校验",
    ),
    "checkpoint/not-a-file": Text(
        en="{path} is a symlink, a pipe or a file in the wrong place; checkpoints are plain folders of plain files",
        zh="{path} 是符号链接、管道或位置不对的文件；检查点必须是普通目录和普通文件",
        en_hint=_USE_OLDER_EN,
        zh_hint=_USE_OLDER_ZH,
    ),
    "checkpoint/unreadable": Text(
        en="cannot read {path}: {why}",
        zh="无法读取 {path}：{why}",
        en_hint=_USE_OLDER_EN,
        zh_hint=_USE_OLDER_ZH,
    ),
    "checkpoint/wrong-size": Text(
        en="{path} has {have} bytes, but {want} were written",
        zh="{path} 有 {have} 字节，写入时为 {want} 字节",
        en_hint=_USE_OLDER_EN,
        zh_hint=_USE_OLDER_ZH,
    ),
    "checkpoint/wrong-hash": Text(
        en="{path} has changed since it was written: blake3 {have}…, but {want}… was recorded",
        zh="{path} 写入后发生了变化：blake3 为 {have}…，记录为 {want}…",
        en_hint=_USE_OLDER_EN,
        zh_hint=_USE_OLDER_ZH,
    ),
    "checkpoint/foreign-shard": Text(
        en="{path} is the shard of step {have_step}, rank {have_rank}, attempt {have_attempt}, "
        "but step {want_step}, rank {want_rank}, attempt {want_attempt} belongs there",
        zh="{path} 是第 {have_step} 步、rank {have_rank}、第 {have_attempt} 次启动的分片，"
        "此处应为第 {want_step} 步、rank {want_rank}、第 {want_attempt} 次启动的分片",
        en_hint="put the shards back under their own names, then verify again",
        zh_hint="把分片放回各自的文件名，然后重新校验",
    ),
    "checkpoint/hash-form": Text(
        en="{path} is not one line of 64 hex digits ({have} bytes, {want} expected)",
        zh="{path} 不是一行 64 位十六进制数（{have} 字节，应为 {want} 字节）",
        en_hint=_USE_OLDER_EN,
        zh_hint=_USE_OLDER_ZH,
    ),
    "checkpoint/manifest-large": Text(
        en="{path} has {have} bytes, more than the {cap} that are read",
        zh="{path} 有 {have} 字节，超过允许读取的 {cap} 字节",
        en_hint=_USE_OLDER_EN,
        zh_hint=_USE_OLDER_ZH,
    ),
    "checkpoint/not-json": Text(
        en="{path} is not plain JSON: {why}",
        zh="{path} 不是普通的 JSON：{why}",
        en_hint=_USE_OLDER_EN,
        zh_hint=_USE_OLDER_ZH,
    ),
    "checkpoint/form": Text(
        en="{path}: at {place} stands {found}, expected {wanted}",
        zh="{path}：{place} 处为 {found}，应为 {wanted}",
        en_hint=_USE_OLDER_EN,
        zh_hint=_USE_OLDER_ZH,
    ),
    "checkpoint/wrong-step": Text(
        en="{path} holds step {have}, but its name says {want}",
        zh="{path} 保存的是第 {have} 步，名称却写着第 {want} 步",
        en_hint="rename the folder back to the step it holds",
        zh_hint="把目录名改回它所保存的步数",
    ),
    "checkpoint/header-short": Text(
        en="{path} has {have} bytes, a header needs {want}",
        zh="{path} 只有 {have} 字节，文件头至少需要 {want} 字节",
        en_hint=_USE_OLDER_EN,
        zh_hint=_USE_OLDER_ZH,
    ),
    "checkpoint/header-large": Text(
        en="{path} announces a header of {have} bytes, at most {cap} are possible",
        zh="{path} 声明文件头有 {have} 字节，最多只能有 {cap} 字节",
        en_hint=_USE_OLDER_EN,
        zh_hint=_USE_OLDER_ZH,
    ),
    "checkpoint/header-offsets": Text(
        en="{path}: tensor {name} starts at byte {have}, but the one before it ends at {want}",
        zh="{path}：张量 {name} 从字节 {have} 开始，而前一个张量在 {want} 结束",
        en_hint=_USE_OLDER_EN,
        zh_hint=_USE_OLDER_ZH,
    ),
    "checkpoint/piece-file": Text(
        en="{path}: tensor {name} has a piece in {file}, which is not a file of this checkpoint",
        zh="{path}：张量 {name} 有一块位于 {file}，但该文件不属于此检查点",
        en_hint=_USE_OLDER_EN,
        zh_hint=_USE_OLDER_ZH,
    ),
    "checkpoint/piece-twice": Text(
        en="{path}: {key} of {file} is listed twice",
        zh="{path}：{file} 中的 {key} 被列出两次",
        en_hint=_USE_OLDER_EN,
        zh_hint=_USE_OLDER_ZH,
    ),
    "checkpoint/piece-outside": Text(
        en="{path}: a piece {have} at {offset} does not lie inside tensor {name} {want}",
        zh="{path}：位于 {offset}、形状 {have} 的块超出了张量 {name} {want}",
        en_hint=_USE_OLDER_EN,
        zh_hint=_USE_OLDER_ZH,
    ),
    "checkpoint/pieces-overlap": Text(
        en="{path}: pieces {first} and {second} of tensor {name} overlap",
        zh="{path}：张量 {name} 的块 {first} 与 {second} 重叠",
        en_hint="tensors that every rank holds are dealt out with split_replicated before they are saved",
        zh_hint="每个 rank 都持有的张量应先用 split_replicated 分配再保存",
    ),
    "checkpoint/not-covered": Text(
        en="{path}: the pieces of tensor {name} hold {have} of its {want} elements",
        zh="{path}：张量 {name} 共 {want} 个元素，各块合计 {have} 个",
        en_hint="every rank must hand over its pieces; tensors that every rank holds go through split_replicated",
        zh_hint="每个 rank 都要交出自己的块；每个 rank 都持有的张量应经 split_replicated 分配",
    ),
    "checkpoint/too-many-pieces": Text(
        en="{path}: tensor {name} is cut into {have} pieces, too many to compare",
        zh="{path}：张量 {name} 被切成 {have} 块，数量过多，无法比对",
        en_hint=_USE_OLDER_EN,
        zh_hint=_USE_OLDER_ZH,
    ),
    "checkpoint/piece-differs": Text(
        en="{path}: {key} is {have}, but the manifest says {want} for tensor {name}",
        zh="{path}：{key} 为 {have}，而清单中张量 {name} 记为 {want}",
        en_hint=_USE_OLDER_EN,
        zh_hint=_USE_OLDER_ZH,
    ),
    "checkpoint/unlisted": Text(
        en="{path} holds {have} tensors, but the manifest lists {want}",
        zh="{path} 含有 {have} 个张量，清单只列出 {want} 个",
        en_hint=_USE_OLDER_EN,
        zh_hint=_USE_OLDER_ZH,
    ),
    "checkpoint/none-resumable": Text(
        en="none of the {num} checkpoints in {path} passes verification; the newest, {newest}: {why}",
        zh="{path} 中的 {num} 个检查点均未通过校验；最新的 {newest}：{why}",
        en_hint="training does not start again from step 0 by itself\n"
        "headway ckpt verify {run}  # what is wrong with each; repair the disk or restore a copy, then resume\n"
        "headway resume {run} --from-scratch  # give up what was trained and begin at step 0",
        zh_hint="不会自动从第 0 步重新训练\n"
        "headway ckpt verify {run}  # 查看每个检查点的问题；修复磁盘或恢复备份后再继续训练\n"
        "headway resume {run} --from-scratch  # 放弃已训练的结果，从第 0 步开始",
    ),
    "checkpoint/all-gone": Text(
        en="the run has saved step {step}, but {path} holds no checkpoint",
        zh="该训练保存过第 {step} 步，但 {path} 中没有检查点",
        en_hint="training does not start again from step 0 by itself; is the disk mounted?\n"
        "headway resume {run} --from-scratch  # begin at step 0",
        zh_hint="不会自动从第 0 步重新训练；磁盘是否已挂载？\nheadway resume {run} --from-scratch  # 从第 0 步开始",
    ),
    # a checkpoint that does not fit the run
    "checkpoint/tensor-missing": Text(
        en="{path} has no tensor {name} ({num} such names); the nearest is {near}",
        zh="{path} 中没有张量 {name}（此类名称共 {num} 个）；最接近的是 {near}",
        en_hint="resume with the config the checkpoint was made with: headway resume RUN",
        zh_hint="用生成该检查点时的配置继续：headway resume RUN",
    ),
    "checkpoint/tensor-extra": Text(
        en="{path} holds tensor {name}, which this run does not use ({num} such names); the nearest is {near}",
        zh="{path} 含有本次训练不使用的张量 {name}（此类名称共 {num} 个）；最接近的是 {near}",
        en_hint="resume with the config the checkpoint was made with: headway resume RUN",
        zh_hint="用生成该检查点时的配置继续：headway resume RUN",
    ),
    "checkpoint/tensor-shape": Text(
        en="tensor {name} is {have} in {path}, but {want} in this run",
        zh="张量 {name} 在 {path} 中为 {have}，在本次训练中为 {want}",
        en_hint="resume with the config the checkpoint was made with: headway resume RUN",
        zh_hint="用生成该检查点时的配置继续：headway resume RUN",
    ),
    "checkpoint/tensor-dtype": Text(
        en="tensor {name} is {have} in {path}, but {want} in this run",
        zh="张量 {name} 在 {path} 中的类型为 {have}，在本次训练中为 {want}",
        en_hint="resume with the train.precision the checkpoint was made with",
        zh_hint="用生成该检查点时的 train.precision 继续训练",
    ),
    # a save that failed
    "checkpoint/disk-full": Text(
        en="no space for a checkpoint in {path}: needs {need}, {free} free ({why})",
        zh="{path} 空间不足，无法保存检查点：需要 {need}，剩余 {free}（{why}）",
        en_hint="free some space, or keep fewer: headway ckpt prune RUN, save.keep_last=1",
        zh_hint="腾出空间，或减少保留数量：headway ckpt prune RUN、save.keep_last=1",
    ),
    "checkpoint/no-inodes": Text(
        en="no free inodes for a checkpoint in {path}: needs {need}, {free} free ({why})",
        zh="{path} 的 inode 已用尽，无法保存检查点：需要 {need}，剩余 {free}（{why}）",
        en_hint="remove small files on that disk; df -i shows the count",
        zh_hint="删除该磁盘上的小文件；用 df -i 查看数量",
    ),
    "checkpoint/quota": Text(
        en="quota reached while saving to {path}: needs {need}, {free} free on the disk ({why})",
        zh="保存到 {path} 时超出配额：需要 {need}，磁盘剩余 {free}（{why}）",
        en_hint="ask for more quota, or keep fewer: headway ckpt prune RUN",
        zh_hint="申请更多配额，或减少保留数量：headway ckpt prune RUN",
    ),
    "checkpoint/file-limit": Text(
        en="{path} would pass the largest file size allowed: needs {need}, {free} free on the disk ({why})",
        zh="{path} 将超过允许的最大文件大小：需要 {need}，磁盘剩余 {free}（{why}）",
        en_hint="raise it with ulimit -f unlimited, or use more ranks so that each shard is smaller",
        zh_hint="用 ulimit -f unlimited 放宽限制，或使用更多 rank 以减小每个分片",
    ),
    "checkpoint/read-only": Text(
        en="{path} is on a read-only file system: needs {need}, {free} free ({why})",
        zh="{path} 所在文件系统为只读：需要 {need}，剩余 {free}（{why}）",
        en_hint="a disk with errors is often remounted read-only; dmesg says why",
        zh_hint="磁盘出错时常被重新挂载为只读；用 dmesg 查看原因",
    ),
    "checkpoint/not-allowed": Text(
        en="not allowed to write {path}: needs {need}, {free} free ({why})",
        zh="没有写入 {path} 的权限：需要 {need}，剩余 {free}（{why}）",
        en_hint="check who owns the folder: ls -ld",
        zh_hint="检查目录的所有者：ls -ld",
    ),
    "checkpoint/write-failed": Text(
        en="cannot save to {path}: {why} (needs {need}, {free} free)",
        zh="无法保存到 {path}：{why}（需要 {need}，剩余 {free}）",
        en_hint="training goes on and the older checkpoints are untouched; look at the disk",
        zh_hint="训练继续进行，旧检查点不受影响；检查磁盘",
    ),
    "checkpoint/saves-keep-failing": Text(
        en="{num} saves in a row failed although the disk took them: {why}",
        zh="连续 {num} 次保存失败，而磁盘写入正常：{why}",
        en_hint="the run was stopped, because it would have ended with nothing saved; older checkpoints are untouched\n"
        "memory or a disk that changes what it is given does this; so would a fault in headway",
        zh_hint="已停止训练，否则结束时将没有任何检查点；旧检查点不受影响\n"
        "内存或磁盘改变了写入的内容时会这样；headway 自身的错误也可能如此",
    ),
    "checkpoint/rank-failed": Text(
        en="rank {rank} could not write its shard: {why}",
        zh="rank {rank} 无法写入其分片：{why}",
        en_hint="training goes on and the older checkpoints are untouched",
        zh_hint="训练继续进行，旧检查点不受影响",
    ),
    "checkpoint/parts-missing": Text(
        en="no shard from rank {ranks} within {seconds} s in {path}",
        zh="{seconds} 秒内未在 {path} 收到 rank {ranks} 的分片",
        en_hint="every rank must see the same folder; check that the disk is shared and not hanging",
        zh_hint="每个 rank 必须看到同一个目录；检查磁盘是否共享、是否卡住",
    ),
    "checkpoint/ranks-disagree": Text(
        en="ranks disagree about tensor {name}: {first} and {second}",
        zh="各 rank 对张量 {name} 的描述不一致：{first} 与 {second}",
        en_hint=_OWN_EN,
        zh_hint=_OWN_ZH,
    ),
    "checkpoint/saved-twice": Text(
        en="tensor {name} at {offset} was handed over twice",
        zh="张量 {name} 在 {offset} 处被重复提交",
        en_hint=_OWN_EN,
        zh_hint=_OWN_ZH,
    ),
    "checkpoint/odd-dtype": Text(
        en="tensor {name} has type {dtype}, which the checkpoint format does not know",
        zh="张量 {name} 的类型 {dtype} 不在检查点格式支持的范围内",
        en_hint="store it as one of the types of the safetensors format",
        zh_hint="改用 safetensors 格式支持的类型保存",
    ),
    "checkpoint/partial-tensor": Text(
        en="tensor {name} is a pending sum ({placements}) and cannot be saved",
        zh="张量 {name} 是尚未归约的部分和（{placements}），无法保存",
        en_hint="reduce it before it is saved",
        zh_hint="保存前先归约",
    ),
    "checkpoint/tidy-failed": Text(
        en="could not tidy the checkpoints folder: {text}",
        zh="无法整理检查点目录：{text}",
        en_hint="no checkpoint is harmed; headway ckpt prune RUN tries again",
        zh_hint="检查点不受影响；可用 headway ckpt prune RUN 重试",
    ),
    # export
    "checkpoint/nothing-to-export": Text(
        en="none of the {num} tensors of {path} is named {prefix}…",
        zh="{path} 的 {num} 个张量中没有以 {prefix} 开头的",
        en_hint="weights are under model/, their moving average under ema/ when ema.decay is set",
        zh_hint="权重位于 model/ 下；设置了 ema.decay 时，滑动平均位于 ema/ 下",
    ),
    "checkpoint/export-exists": Text(
        en="{path} exists already and is not overwritten",
        zh="{path} 已存在，不会覆盖",
        en_hint="give another name with --to, or remove it first",
        zh_hint="用 --to 指定其他名称，或先将其删除",
    ),
    "checkpoint/export-failed": Text(
        en="cannot export to {path}: {why}",
        zh="无法导出到 {path}：{why}",
        en_hint="choose another place with --to",
        zh_hint="用 --to 换一个位置",
    ),
    "checkpoint/export-type": Text(
        en="the tensor {name} has type {kind}, and a MindSpore checkpoint holds {known}",
        zh="张量 {name} 的类型为 {kind}，而 MindSpore 检查点支持 {known}",
        en_hint="type: headway ckpt export --format safetensors",
        zh_hint="运行：headway ckpt export --format safetensors",
    ),
    "checkpoint/export-child": Text(
        en="writing {path} ended with code {code}: {why}",
        zh="写入 {path} 的进程异常结束，退出码 {code}：{why}",
        en_hint="a .pt file needs torch in this environment; safetensors does not: --format safetensors",
        zh_hint="导出 .pt 需要当前环境装有 torch；safetensors 不需要：--format safetensors",
    ),
    # the command
    "checkpoint/help": Text(
        en="List, verify, export and prune a run's checkpoints.\n\nExample:\n  headway ckpt verify",
        zh="列出、校验、导出和清理检查点。\n\n示例：\n  headway ckpt verify",
    ),
    "checkpoint/help-list": Text(
        en="List checkpoints, newest last.\n\nExample:\n  headway ckpt list runs/NAME --json",
        zh="列出检查点，最新的在最后。\n\n示例：\n  headway ckpt list runs/NAME --json",
    ),
    "checkpoint/help-verify": Text(
        en="Read every byte of every checkpoint and say which are whole."
        "\n\nExample:\n  headway ckpt verify --step 1000",
        zh="读取每个检查点的每个字节，报告哪些完好。\n\n示例：\n  headway ckpt verify --step 1000",
    ),
    "checkpoint/help-export": Text(
        en="Write the weights alone as safetensors or .pt."
        "\n\nExample:\n  headway ckpt export --format pt --to exported",
        zh="只导出权重，格式为 safetensors 或 .pt。\n\n示例：\n  headway ckpt export --format pt --to exported",
    ),
    "checkpoint/help-prune": Text(
        en="Remove what retention does not keep, and leftovers of dead attempts."
        "\n\nExample:\n  headway ckpt prune --keep-last 1 --dry-run",
        zh="删除不在保留范围内的检查点，以及中断的保存留下的残余。"
        "\n\n示例：\n  headway ckpt prune --keep-last 1 --dry-run",
    ),
    "checkpoint/option-json": Text(en="print one JSON object", zh="输出一个 JSON 对象"),
    "checkpoint/option-dry-run": Text(
        en="say what would happen and change nothing", zh="只说明将要做什么，不做任何改动"
    ),
    "checkpoint/option-yes": Text(en="do not ask", zh="不再询问"),
    "checkpoint/option-step": Text(
        en="step of the checkpoint; default: the newest that verifies, for verify all",
        zh="检查点的步数；默认为通过校验的最新一个，verify 默认为全部",
    ),
    "checkpoint/option-format": Text(
        en="form of the weights; folder: checkpoint-N/ with config.json and, where there is one, ema/;"
        " ckpt: for MindSpore",
        zh="权重的格式；folder：checkpoint-N/，内有 config.json，有滑动平均时还有 ema/；ckpt：供 MindSpore 读取",
    ),
    "checkpoint/option-out": Text(
        en="file for safetensors, folder for pt and folder; default: export/ in the run directory",
        zh="safetensors 为文件，pt 和 folder 为目录；默认位于训练目录的 export/",
    ),
    "checkpoint/option-select": Text(en="weights, or their moving average", zh="权重，或其滑动平均"),
    "checkpoint/option-keep-last": Text(
        en="newest checkpoints to keep; default: the run's save.keep_last",
        zh="保留最新的几个；默认取该训练的 save.keep_last",
    ),
    "checkpoint/option-keep-every": Text(
        en="keep multiples of this step; default: the run's save.keep_every",
        zh="保留步数为该值倍数的检查点；默认取该训练的 save.keep_every",
    ),
    "checkpoint/none": Text(
        en="no checkpoint in {path}",
        zh="{path} 中没有检查点",
        en_hint="set save.every=N to keep one every N steps",
        zh_hint="设置 save.every=N，每 N 步保存一次",
    ),
    "checkpoint/none-whole": Text(
        en="none of the {num} checkpoints in {path} verifies",
        zh="{path} 中的 {num} 个检查点均未通过校验",
        en_hint="see what is wrong with each: headway ckpt verify",
        zh_hint="查看每一个的问题：headway ckpt verify",
    ),
    "checkpoint/no-such-step": Text(
        en="no checkpoint of step {step} in {path}; there are {steps}",
        zh="{path} 中没有第 {step} 步的检查点；现有 {steps}",
        en_hint="see them: headway ckpt list",
        zh_hint="查看：headway ckpt list",
    ),
    "checkpoint/some-broken": Text(
        en="{num} of {total} checkpoints in {path} are broken",
        zh="{path} 中的 {total} 个检查点有 {num} 个已损坏",
        en_hint="resume takes the newest whole one; headway ckpt prune removes older broken ones",
        zh_hint="继续训练时会选用最新的完好检查点；headway ckpt prune 会删除较旧的损坏检查点",
    ),
    "checkpoint/note-best": Text(en="best", zh="最佳"),
    "checkpoint/note-suspect": Text(en="suspect", zh="可疑"),
    "checkpoint/note-broken": Text(en="broken: {why}", zh="已损坏：{why}"),
    "checkpoint/row-whole": Text(en="{name}  whole, {size}", zh="{name}  完好，{size}"),
    "checkpoint/row-broken": Text(en="{name}  broken: {why}", zh="{name}  已损坏：{why}"),
    "checkpoint/would-export": Text(
        en="would write {files}: {num} tensors, {size}", zh="将写入 {files}：{num} 个张量，{size}"
    ),
    "checkpoint/exported": Text(
        en="wrote {files}: {num} tensors of step {step}, {size}",
        zh="已写入 {files}：第 {step} 步的 {num} 个张量，{size}",
    ),
    # weights from a file
    "checkpoint/help-import": Text(
        en="Begin a run with weights from a file: step 0 of a new run holds them, and eval, predict and resume take it "
        "from there. FILE is what headway ckpt export writes: .safetensors, .pt (also .pth and .bin), or a folder. "
        "A torch file is read without running its pickle."
        "\n\nExample:\n  headway ckpt import nanochat exported/model_000200.pt lr.base=1e-4",
        zh="用文件中的权重开始一次训练：新训练的第 0 步保存这些权重，eval、predict 和 resume 由此继续。"
        "FILE 是 headway ckpt export 的输出：.safetensors、.pt（以及 .pth、.bin）或目录。"
        "读取 torch 文件时不会执行其中的 pickle。"
        "\n\n示例：\n  headway ckpt import nanochat exported/model_000200.pt lr.base=1e-4",
    ),
    "checkpoint/option-import-to": Text(
        en="folder of the new run, which must not exist; default: a new name in the folder of the runs",
        zh="新训练的目录，必须尚不存在；默认在训练目录的上级目录中新建",
    ),
    "checkpoint/import-words": Text(
        en="import needs a recipe and a file, in this order",
        zh="import 需要先给出 recipe，再给出文件",
        en_hint="for example: headway ckpt import nanochat weights.safetensors",
        zh_hint="例如：headway ckpt import nanochat weights.safetensors",
    ),
    "checkpoint/import-exists": Text(
        en="{path} exists already; imported weights begin a new run and never replace the state of another",
        zh="{path} 已存在；导入的权重用于开始新的训练，不会替换其他训练的状态",
        en_hint="give a new folder with --to, or leave --to out",
        zh_hint="用 --to 指定新的目录，或不使用 --to",
    ),
    "checkpoint/import-absent": Text(
        en="{path} does not exist",
        zh="{path} 不存在",
        en_hint="headway ckpt export writes such a file",
        zh_hint="headway ckpt export 可以生成这样的文件",
    ),
    "checkpoint/import-form": Text(
        en="the ending of {path} is not one of {known}",
        zh="{path} 的扩展名不是 {known} 之一",
        en_hint="headway ckpt export --format safetensors writes a file that can be imported",
        zh_hint="headway ckpt export --format safetensors 生成的文件可以导入",
    ),
    "checkpoint/import-folder": Text(
        en="{path} holds {num} files of weights ({names}), but exactly one is needed",
        zh="{path} 中有 {num} 个权重文件（{names}），应恰好有一个",
        en_hint="name the file itself",
        zh_hint="直接给出文件",
    ),
    "checkpoint/import-torch": Text(
        en="cannot take weights from {path}: {why}",
        zh="无法从 {path} 读取权重：{why}",
        en_hint="only a plain dict of tensors, as headway ckpt export --format pt writes it, is read; "
        "no code in the file was run",
        zh_hint="只读取由张量组成的字典，即 headway ckpt export --format pt 的输出；文件中的代码没有执行",
    ),
    "checkpoint/import-framework": Text(
        en="{recipe} trains with MindSpore here, but weights are imported for PyTorch only",
        zh="{recipe} 在此使用 MindSpore 训练，目前只支持为 PyTorch 导入权重",
        en_hint="add task.framework=torch where the recipe has it",
        zh_hint="若该 recipe 支持，可加上 task.framework=torch",
    ),
    "checkpoint/import-missing": Text(
        en="{path} lacks {name} ({num} such tensors); the nearest name in it is {near}",
        zh="{path} 缺少 {name}（此类张量共 {num} 个）；其中最接近的名称是 {near}",
        en_hint="give the settings the weights were trained with, such as the size of the model",
        zh_hint="使用训练这些权重时的设置，例如模型大小",
    ),
    "checkpoint/import-extra": Text(
        en="{path} holds {name} ({num} such tensors), which the model does not have; its nearest name is {near}",
        zh="{path} 中的 {name}（此类张量共 {num} 个）在模型中不存在；模型中最接近的名称是 {near}",
        en_hint="give the settings the weights were trained with, such as the size of the model",
        zh_hint="使用训练这些权重时的设置，例如模型大小",
    ),
    "checkpoint/import-shape": Text(
        en="{name} in {path} is {have}, but the model has {want}",
        zh="{path} 中的 {name} 为 {have}，模型中为 {want}",
        en_hint="give the settings the weights were trained with, such as the size of the model",
        zh_hint="使用训练这些权重时的设置，例如模型大小",
    ),
    "checkpoint/import-ready": Text(en="weights are imported; training has not begun", zh="权重已导入；训练尚未开始"),
    "checkpoint/would-import": Text(
        en="would begin a new run with {file}: {num} tensors, {size}",
        zh="将用 {file} 开始新的训练：{num} 个张量，{size}",
    ),
    "checkpoint/imported": Text(
        en="{run} begins with {file}: {num} tensors, {size}",
        zh="{run} 以 {file} 的权重开始：{num} 个张量，{size}",
    ),
    "checkpoint/would-prune": Text(en="would remove {name}, {size}", zh="将删除 {name}，{size}"),
    "checkpoint/pruned": Text(en="removed {name}, {size}", zh="已删除 {name}，{size}"),
    "checkpoint/nothing-to-prune": Text(
        en="nothing to remove: {num} checkpoints, all kept", zh="无需删除：共 {num} 个检查点，全部保留"
    ),
    "checkpoint/ask-prune": Text(en="remove {num} checkpoints?", zh="确认删除 {num} 个检查点？"),
    "checkpoint/run-is-live": Text(
        en="{run} is running and prunes its checkpoints by itself",
        zh="{run} 正在训练，会自行清理检查点",
        en_hint="stop it first: headway stop {run}",
        zh_hint="先停止它：headway stop {run}",
    ),
    "checkpoint/option-runs": Text(en="folder that holds the run directories", zh="存放训练目录的位置"),
    "checkpoint/head-step": Text(en="step", zh="步数"),
    "checkpoint/head-size": Text(en="size", zh="大小"),
    "checkpoint/head-ranks": Text(en="ranks", zh="rank 数"),
    "checkpoint/head-saved": Text(en="saved", zh="保存时间"),
    "checkpoint/head-note": Text(en="note", zh="备注"),
    "checkpoint/next-resume": Text(en="go on with: headway resume {run}", zh="继续训练：headway resume {run}"),
}
