"""What the checkpoint stage says."""

from __future__ import annotations

from headway.messages import Text

_USE_OLDER_EN = (
    "resume takes the newest intact checkpoint by itself; see which are intact:\n  headway ckpt verify {run}"
)
_USE_OLDER_ZH = "继续训练时会自动选用最新的完好检查点；查看哪些完好：\n  headway ckpt verify {run}"
_OWN_EN = "this is a bug in the training code or in headway; no file was damaged"
_OWN_ZH = "这是训练代码或 headway 自身的错误；没有文件受损"

TEXTS: dict[str, Text] = {
    # a checkpoint that cannot be trusted
    "checkpoint/missing-file": Text(
        en="{path} is missing", zh="缺少 {path}", en_hint=_USE_OLDER_EN, zh_hint=_USE_OLDER_ZH
    ),
    "checkpoint/extra-file": Text(
        en="{path} does not belong to the checkpoint ({num} such files)",
        zh="{path} 不属于该检查点（此类文件共 {num} 个）",
        en_hint="move the file elsewhere, then verify again",
        zh_hint="把该文件移到别处，然后重新校验",
    ),
    "checkpoint/not-a-file": Text(
        en="{path} is a symlink, a pipe or a misplaced file; a checkpoint consists of regular folders and files",
        zh="{path} 是符号链接、管道或位置不对的文件；检查点只能由普通目录和普通文件组成",
        en_hint=_USE_OLDER_EN,
        zh_hint=_USE_OLDER_ZH,
    ),
    "checkpoint/unreadable": Text(
        en="cannot read {path}: {why:said}",
        zh="无法读取 {path}：{why:said}",
        en_hint=_USE_OLDER_EN,
        zh_hint=_USE_OLDER_ZH,
    ),
    "checkpoint/wrong-size": Text(
        en="{path} has {have:,} bytes, but {want:,} bytes were written",
        zh="{path} 有 {have:,} 字节，写入时为 {want:,} 字节",
        en_hint=_USE_OLDER_EN,
        zh_hint=_USE_OLDER_ZH,
    ),
    "checkpoint/wrong-hash": Text(
        en="{path} has changed since it was written: its blake3 hash is {have}…, but {want}… was recorded",
        zh="{path} 写入后发生了变化：blake3 校验值为 {have}…，记录为 {want}…",
        en_hint=_USE_OLDER_EN,
        zh_hint=_USE_OLDER_ZH,
    ),
    "checkpoint/foreign-shard": Text(
        en="{path} is the shard of step {have_step}, rank {have_rank}, attempt {have_attempt}, but the shard of step "
        "{want_step}, rank {want_rank}, attempt {want_attempt} belongs there",
        zh=(
            "{path} 是第 {have_step} 步、rank {have_rank}、第 {have_attempt} 次启动的分片，"
            "此处应为第 {want_step} 步、rank {want_rank}、第 {want_attempt} 次启动的分片"
        ),
        en_hint="rename the shards back to their own names, then verify again",
        zh_hint="把分片放回各自的文件名，然后重新校验",
    ),
    "checkpoint/hash-form": Text(
        en="{path} is not one line of 64 hex digits ({have:,} bytes, {want:,} expected)",
        zh="{path} 不是一行 64 位十六进制数（{have:,} 字节，应为 {want:,} 字节）",
        en_hint=_USE_OLDER_EN,
        zh_hint=_USE_OLDER_ZH,
    ),
    "checkpoint/manifest-large": Text(
        en="{path} has {have:,} bytes, but at most {cap:,} are read",
        zh="{path} 有 {have:,} 字节，超过允许读取的 {cap:,} 字节",
        en_hint=_USE_OLDER_EN,
        zh_hint=_USE_OLDER_ZH,
    ),
    "checkpoint/not-json": Text(
        en="{path} is not plain JSON: {why:said}",
        zh="{path} 不是普通的 JSON：{why:said}",
        en_hint=_USE_OLDER_EN,
        zh_hint=_USE_OLDER_ZH,
    ),
    "checkpoint/form": Text(
        en="{path} is damaged: {place} is {found}, but should be {wanted:list}",
        zh="{path} 已损坏：{place} 为 {found}，应为 {wanted:list}",
        en_hint=_USE_OLDER_EN,
        zh_hint=_USE_OLDER_ZH,
    ),
    "checkpoint/wrong-step": Text(
        en="{path} contains step {have}, but its name says step {want}",
        zh="{path} 保存的是第 {have} 步，名称却写着第 {want} 步",
        en_hint="rename the folder back to the step it contains",
        zh_hint="把目录名改回它所保存的步数",
    ),
    "checkpoint/header-short": Text(
        en="{path} has only {have:,} bytes, but a header needs at least {want:,}",
        zh="{path} 只有 {have:,} 字节，文件头至少需要 {want:,} 字节",
        en_hint=_USE_OLDER_EN,
        zh_hint=_USE_OLDER_ZH,
    ),
    "checkpoint/header-large": Text(
        en="{path} declares a header of {have:,} bytes, but at most {cap:,} are possible",
        zh="{path} 声明文件头有 {have:,} 字节，最多只能有 {cap:,} 字节",
        en_hint=_USE_OLDER_EN,
        zh_hint=_USE_OLDER_ZH,
    ),
    "checkpoint/header-offsets": Text(
        en="{path}: tensor {name} starts at byte {have}, but the tensor before it ends at byte {want}",
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
        en="{path}: the piece of shape {have} at {offset} is not inside tensor {name} of shape {want}",
        zh="{path}：位于 {offset}、形状 {have} 的块超出了形状为 {want} 的张量 {name}",
        en_hint=_USE_OLDER_EN,
        zh_hint=_USE_OLDER_ZH,
    ),
    "checkpoint/pieces-overlap": Text(
        en="{path}: pieces {first} and {second} of tensor {name} overlap",
        zh="{path}：张量 {name} 的块 {first} 与 {second} 重叠",
        en_hint="if each rank holds the full tensor, call split_replicated (headway.checkpoint) before the save",
        zh_hint="每个 rank 都持有的张量应先用 split_replicated 分配再保存",
    ),
    "checkpoint/not-covered": Text(
        en="{path}: the pieces of tensor {name} contain {have:,} of its {want:,} elements",
        zh="{path}：张量 {name} 共 {want:,} 个元素，各块合计 {have:,} 个",
        en_hint="every rank must save its own pieces; divide tensors that every rank holds with split_replicated",
        zh_hint="每个 rank 都要交出自己的块；每个 rank 都持有的张量应经 split_replicated 分配",
    ),
    "checkpoint/too-many-pieces": Text(
        en="{path}: tensor {name} is split into {have} pieces, too many to compare",
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
        en="{path} contains {have:,} tensors, but the manifest lists {want:,}",
        zh="{path} 含有 {have:,} 个张量，清单只列出 {want:,} 个",
        en_hint=_USE_OLDER_EN,
        zh_hint=_USE_OLDER_ZH,
    ),
    "checkpoint/none-resumable": Text(
        en="none of the {num} checkpoints in {path} passes verification; the newest, {newest}: {why:said}",
        zh="{path} 中的 {num} 个检查点均未通过校验；最新的 {newest}：{why:said}",
        en_hint=(
            "training does not start again from step 0 by itself; look at what is wrong with each, repair the "
            "disk or restore a copy, and resume, or give up what was trained:\n"
            "  headway ckpt verify {run}\n"
            "  headway resume {run} --from-scratch  # begins at step 0"
        ),
        zh_hint=(
            "不会自动从第 0 步重新训练；先查看每个检查点的问题，修复磁盘或恢复备份后继续训练，"
            "或放弃已训练的结果：\n"
            "  headway ckpt verify {run}\n"
            "  headway resume {run} --from-scratch  # 从第 0 步开始"
        ),
    ),
    "checkpoint/all-gone": Text(
        en="the run saved step {step}, but {path} contains no checkpoint",
        zh="该训练保存过第 {step} 步，但 {path} 中没有检查点",
        en_hint=(
            "training does not start again from step 0 by itself; check that the disk is mounted, or begin at "
            "step 0:\n"
            "  headway resume {run} --from-scratch"
        ),
        zh_hint=(
            "不会自动从第 0 步重新训练；检查磁盘是否已挂载，或从第 0 步开始：\n  headway resume {run} --from-scratch"
        ),
    ),
    # a checkpoint that does not fit the run
    "checkpoint/tensor-missing": Text(
        en="{path} has no tensor {name} ({num} such names); the nearest is {near}",
        zh="{path} 中没有张量 {name}（此类名称共 {num} 个）；最接近的是 {near}",
        en_hint=("resume with the config that the checkpoint was made with:\n  headway resume {run}"),
        zh_hint=("用生成该检查点时的配置继续训练：\n  headway resume {run}"),
    ),
    "checkpoint/tensor-extra": Text(
        en="{path} contains tensor {name}, which this run does not use ({num} such names); the nearest is {near}",
        zh="{path} 含有本次训练不使用的张量 {name}（此类名称共 {num} 个）；最接近的是 {near}",
        en_hint=("resume with the config that the checkpoint was made with:\n  headway resume {run}"),
        zh_hint=("用生成该检查点时的配置继续训练：\n  headway resume {run}"),
    ),
    "checkpoint/tensor-shape": Text(
        en="tensor {name} has shape {have} in {path}, but {want} in this run",
        zh="张量 {name} 在 {path} 中的形状为 {have}，在本次训练中为 {want}",
        en_hint=("resume with the config that the checkpoint was made with:\n  headway resume {run}"),
        zh_hint=("用生成该检查点时的配置继续训练：\n  headway resume {run}"),
    ),
    "checkpoint/tensor-dtype": Text(
        en="tensor {name} has type {have} in {path}, but {want} in this run",
        zh="张量 {name} 在 {path} 中的类型为 {have}，在本次训练中为 {want}",
        en_hint=("resume with the train.precision that the checkpoint was made with:\n  headway resume {run}"),
        zh_hint=("用生成该检查点时的 train.precision 继续训练：\n  headway resume {run}"),
    ),
    # a save that failed
    "checkpoint/disk-full": Text(
        en="not enough space for a checkpoint in {path}: {need} needed, {free} free ({why:said})",
        zh="{path} 空间不足，无法保存检查点：需要 {need}，剩余 {free}（{why:said}）",
        en_hint=(
            "free some space; this removes checkpoints that are not needed to resume:\n  headway ckpt prune {run}"
        ),
        zh_hint=("腾出空间；下面的命令删除继续训练用不到的检查点：\n  headway ckpt prune {run}"),
    ),
    "checkpoint/no-inodes": Text(
        en="no free inodes for a checkpoint in {path}: {need} needed, {free} free ({why:said})",
        zh="{path} 的 inode 已用尽，无法保存检查点：需要 {need}，剩余 {free}（{why:said}）",
        en_hint=("remove small files on that disk; this shows how many there are:\n  df -i {path}"),
        zh_hint=("删除该磁盘上的小文件；查看数量：\n  df -i {path}"),
    ),
    "checkpoint/quota": Text(
        en="quota reached while saving to {path}: {need} needed, {free} free on the disk ({why:said})",
        zh="保存到 {path} 时超出配额：需要 {need}，磁盘剩余 {free}（{why:said}）",
        en_hint=(
            "ask for a larger quota, or remove checkpoints that are not needed to resume:\n  headway ckpt prune {run}"
        ),
        zh_hint=("申请更大的配额，或删除继续训练用不到的检查点：\n  headway ckpt prune {run}"),
    ),
    "checkpoint/file-limit": Text(
        en="{path} would exceed the largest file size allowed: {need} needed, {free} free on the disk ({why:said})",
        zh="{path} 将超过允许的最大文件大小：需要 {need}，磁盘剩余 {free}（{why:said}）",
        en_hint=(
            "raise the limit in the shell that starts the training, or use more ranks, so that each shard is "
            "smaller:\n"
            "  ulimit -f unlimited"
        ),
        zh_hint=("在启动训练的终端里放宽限制，或使用更多 rank 以减小每个分片：\n  ulimit -f unlimited"),
    ),
    "checkpoint/read-only": Text(
        en="{path} is on a read-only file system: {need} needed, {free} free ({why:said})",
        zh="{path} 所在文件系统为只读：需要 {need}，剩余 {free}（{why:said}）",
        en_hint=("a disk with errors is often remounted read-only; the kernel says why:\n  dmesg | tail"),
        zh_hint=("磁盘出错时常被重新挂载为只读；查看内核日志：\n  dmesg | tail"),
    ),
    "checkpoint/not-allowed": Text(
        en="no permission to write {path}: {need} needed, {free} free ({why:said})",
        zh="没有写入 {path} 的权限：需要 {need}，剩余 {free}（{why:said}）",
        en_hint=("see who owns it:\n  ls -ld {path}"),
        zh_hint=("查看所有者：\n  ls -ld {path}"),
    ),
    "checkpoint/write-failed": Text(
        en="cannot save to {path}: {why:said} ({need} needed, {free} free)",
        zh="无法保存到 {path}：{why:said}（需要 {need}，剩余 {free}）",
        en_hint="training continues and the older checkpoints are untouched; check the disk",
        zh_hint="训练继续，旧检查点不受影响；检查磁盘",
    ),
    "checkpoint/saves-keep-failing": Text(
        en="{num} saves in a row failed verification although the disk reported no error: {why:said}",
        zh="连续 {num} 次保存未通过校验，而磁盘没有报错：{why:said}",
        en_hint="the run was stopped, because it would have ended without a saved result; older checkpoints are "
        "untouched\n"
        "the usual cause is faulty memory or a disk that changes data; a bug in headway is also possible",
        zh_hint="已停止训练，否则结束时将没有任何可用的检查点；旧检查点不受影响\n"
        "常见原因是内存故障或磁盘改变了写入的数据；也可能是 headway 的缺陷",
    ),
    "checkpoint/rank-failed": Text(
        en="rank {rank} could not write its shard: {why:said}",
        zh="rank {rank} 无法写入其分片：{why:said}",
        en_hint="training continues and the older checkpoints are untouched",
        zh_hint="训练继续，旧检查点不受影响",
    ),
    "checkpoint/parts-missing": Text(
        en="no shard from rank {ranks:list} arrived within {seconds} s in {path}",
        zh="{seconds} 秒内未在 {path} 收到 rank {ranks:list} 的分片",
        en_hint="every rank must see the same folder; check that the disk is shared and does not hang",
        zh_hint="每个 rank 必须看到同一个目录；检查磁盘是否共享、是否卡死",
    ),
    "checkpoint/ranks-disagree": Text(
        en="the ranks give tensor {name} different shapes or types: {first} and {second}",
        zh="各 rank 给出的张量 {name} 形状或类型不一致：{first} 与 {second}",
        en_hint=_OWN_EN,
        zh_hint=_OWN_ZH,
    ),
    "checkpoint/memory-small-state": Text(
        en="the state of the run apart from its tensors takes {have:,} bytes, but a copy in memory holds only {cap:,}",
        zh="训练状态中张量以外的部分有 {have:,} 字节，超过内存副本可容纳的 {cap:,} 字节",
        en_hint="train without copies in memory:\n  save.in_memory=0",
        zh_hint="不在内存中保留副本：\n  save.in_memory=0",
    ),
    "checkpoint/memory-damaged": Text(
        en="the last step of rank {rank}, kept in memory, is damaged ({what})",
        zh="内存中保存的 rank {rank} 最后一步的状态已损坏（{what}）",
    ),
    "checkpoint/saved-twice": Text(
        en="tensor {name} at {offset} was saved twice",
        zh="张量 {name} 在 {offset} 处被重复提交",
        en_hint=_OWN_EN,
        zh_hint=_OWN_ZH,
    ),
    "checkpoint/odd-dtype": Text(
        en="tensor {name} has type {dtype}, which the checkpoint format does not support",
        zh="张量 {name} 的类型 {dtype} 不在检查点格式支持的范围内",
        en_hint="save it as one of the types of the safetensors format",
        zh_hint="改用 safetensors 格式支持的类型保存",
    ),
    "checkpoint/partial-tensor": Text(
        en="tensor {name} is a partial sum that has not been reduced ({placements}), so it cannot be saved",
        zh="张量 {name} 是尚未归约的部分和（{placements}），无法保存",
        en_hint="reduce it before saving",
        zh_hint="保存前先归约",
    ),
    "checkpoint/tidy-failed": Text(
        en="the checkpoint folder could not be cleaned up: {text}",
        zh="无法清理检查点目录：{text}",
        en_hint=("no checkpoint is damaged; try again:\n  headway ckpt prune {run}"),
        zh_hint=("检查点不受影响；重试：\n  headway ckpt prune {run}"),
    ),
    # export
    "checkpoint/nothing-to-export": Text(
        en="none of the {num} tensors in {path} has a name that begins with {prefix}",
        zh="{path} 的 {num} 个张量中没有以 {prefix} 开头的",
        en_hint="weights are under model/; their moving average (EMA) is under ema/ when ema.decay is set",
        zh_hint="权重位于 model/ 下；设置了 ema.decay 时，EMA（滑动平均）位于 ema/ 下",
    ),
    "checkpoint/export-exists": Text(
        en="{path} already exists and is not overwritten",
        zh="{path} 已存在，不会覆盖",
        en_hint="remove it first, or give another name with --to",
        zh_hint="先将其删除，或用 --to 指定其他名称",
    ),
    "checkpoint/export-failed": Text(
        en="cannot export to {path}: {why:said}",
        zh="无法导出到 {path}：{why:said}",
        en_hint="choose another place with --to",
        zh_hint="用 --to 换一个位置",
    ),
    "checkpoint/export-type": Text(
        en="tensor {name} has type {kind}, but a MindSpore checkpoint supports only {known:list}",
        zh="张量 {name} 的类型为 {kind}，而 MindSpore 检查点只支持 {known:list}",
        en_hint=("safetensors has this type:\n  --format safetensors"),
        zh_hint=("safetensors 支持这种类型：\n  --format safetensors"),
    ),
    "checkpoint/export-child": Text(
        en="the process that writes {path} ended with exit code {code}: {why:said}",
        zh="写入 {path} 的进程异常结束，退出码 {code}：{why:said}",
        en_hint=("a .pt file needs torch in this environment, safetensors does not:\n  --format safetensors"),
        zh_hint=("导出 .pt 需要当前环境装有 torch，safetensors 不需要：\n  --format safetensors"),
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
        en="Read every byte of every checkpoint and report which are intact.\n\n"
        "Example:\n"
        "  headway ckpt verify --step 1000",
        zh="读取每个检查点的每个字节，报告哪些完好。\n\n示例：\n  headway ckpt verify --step 1000",
    ),
    "checkpoint/help-export": Text(
        en="Write only the weights, as safetensors or .pt.\n\n"
        "Example:\n"
        "  headway ckpt export --format pt --to exported",
        zh="只导出权重，格式为 safetensors 或 .pt。\n\n示例：\n  headway ckpt export --format pt --to exported",
    ),
    "checkpoint/help-prune": Text(
        en="Remove checkpoints outside the retention rules, and leftovers of interrupted saves.\n\n"
        "Example:\n"
        "  headway ckpt prune --keep-last 1 --dry-run",
        zh="删除不在保留范围内的检查点，以及中断的保存留下的残留文件。\n\n"
        "示例：\n"
        "  headway ckpt prune --keep-last 1 --dry-run",
    ),
    "checkpoint/option-json": Text(en="print one JSON object", zh="输出一个 JSON 对象"),
    "checkpoint/option-dry-run": Text(en="show what would happen, change nothing", zh="只说明将要做什么，不做任何改动"),
    "checkpoint/option-yes": Text(en="do not ask", zh="不再询问"),
    "checkpoint/option-step": Text(
        en="step of the checkpoint; default: the newest intact one (verify: all)",
        zh="检查点的步数；默认为最新的完好检查点（verify 默认为全部）",
    ),
    "checkpoint/option-format": Text(
        en="format of the weights; folder: checkpoint-N/ with config.json and, if there is one, ema/; ckpt: for "
        "MindSpore; upstream: the file that the recipe's original system loads",
        zh="权重的格式；folder：checkpoint-N/，内有 config.json，有 EMA（滑动平均）时还有 ema/；ckpt：供 MindSpore "
        "读取；upstream：配方所对应的原系统可加载的文件",
    ),
    "checkpoint/option-out": Text(
        en="a file for safetensors, a folder for pt, folder and upstream; default: export/ in the run directory",
        zh="safetensors 为文件，pt、folder 和 upstream 为目录；默认位于训练目录的 export/",
    ),
    "checkpoint/option-select": Text(en="the weights, or their moving average (EMA)", zh="权重，或其 EMA（滑动平均）"),
    "checkpoint/option-keep-last": Text(
        en="how many of the newest checkpoints to keep; default: the run's save.keep_last",
        zh="保留最新的几个；默认取该训练的 save.keep_last",
    ),
    "checkpoint/option-keep-every": Text(
        en="keep multiples of this step; default: the run's save.keep_every",
        zh="保留步数为该值倍数的检查点；默认取该训练的 save.keep_every",
    ),
    "checkpoint/none": Text(
        en="no checkpoint in {path}",
        zh="{path} 中没有检查点",
        en_hint=("keep one every so many steps, for example:\n  headway train save.every=100"),
        zh_hint=("设置每隔若干步保存一次，例如：\n  headway train save.every=100"),
    ),
    "checkpoint/none-whole": Text(
        en="none of the {num} checkpoints in {path} passes verification",
        zh="{path} 中的 {num} 个检查点均未通过校验",
        en_hint=("see what is wrong with each:\n  headway ckpt verify {run}"),
        zh_hint=("查看每个检查点的问题：\n  headway ckpt verify {run}"),
    ),
    "checkpoint/no-such-step": Text(
        en="there is no checkpoint of step {step} in {path}; available: {steps:list}",
        zh="{path} 中没有第 {step} 步的检查点；现有：{steps:list}",
        en_hint=("see which there are:\n  headway ckpt list {run}"),
        zh_hint=("查看已有的检查点：\n  headway ckpt list {run}"),
    ),
    "checkpoint/some-broken": Text(
        en="{num} of {total} checkpoints in {path} are corrupt",
        zh="{path} 中的 {total} 个检查点有 {num} 个已损坏",
        en_hint=("resume takes the newest intact one; this removes the damaged ones:\n  headway ckpt prune {run}"),
        zh_hint=("继续训练时会选用最新的完好检查点；下面的命令删除已损坏的：\n  headway ckpt prune {run}"),
    ),
    "checkpoint/note-best": Text(en="best", zh="最佳"),
    "checkpoint/note-suspect": Text(en="suspect", zh="可疑"),
    "checkpoint/note-broken": Text(en="corrupt: {why:said}", zh="已损坏：{why:said}"),
    "checkpoint/row-whole": Text(en="{name}  intact, {size}", zh="{name}  完好，{size}"),
    "checkpoint/row-broken": Text(en="{name}  corrupt: {why:said}", zh="{name}  已损坏：{why:said}"),
    "checkpoint/would-export": Text(
        en="would write {files:list}: {num:,} tensors, {size}", zh="将写入 {files:list}：{num:,} 个张量，{size}"
    ),
    "checkpoint/exported": Text(
        en="wrote {files:list}: {num:,} tensors of step {step}, {size}",
        zh="已写入 {files:list}：第 {step} 步的 {num:,} 个张量，{size}",
    ),
    # weights from a file
    "checkpoint/help-import": Text(
        en="Start a run with weights from a file.\n\n"
        "Step 0 of the new run contains the weights; eval, predict and resume continue from there. FILE is what\n"
        "headway ckpt export writes, or a file of the system the recipe comes from: .safetensors, .pt, .pth, .bin,\n"
        ".ckpt, or a folder. The sizes that such a file tells are used. A torch file is read without running its\n"
        "pickle.\n\n"
        "Example:\n"
        "  headway ckpt import nanochat exported/model_000200.pt lr.base=1e-4\n"
        "  headway ckpt import tfnet module/bestMoudleNet.pth task.data_dir=data/CE-CSL",
        zh="用文件中的权重开始一次训练。\n\n"
        "新训练的第 0 步保存这些权重，eval、predict 和 resume 由此继续。FILE 是 headway ckpt export 的输出，\n"
        "或配方所对应的原系统的文件：.safetensors、.pt、.pth、.bin、.ckpt 或目录。文件中写明的模型大小会被采用。\n"
        "读取 torch 文件时不会执行其中的 pickle。\n\n"
        "示例：\n"
        "  headway ckpt import nanochat exported/model_000200.pt lr.base=1e-4\n"
        "  headway ckpt import tfnet module/bestMoudleNet.pth task.data_dir=data/CE-CSL",
    ),
    "checkpoint/option-import-to": Text(
        en="folder of the new run, which must not exist yet; default: a new name in the runs folder",
        zh="新训练的目录，必须尚不存在；默认在训练目录的上级目录中新建",
    ),
    "checkpoint/import-words": Text(
        en="import needs a recipe and a file, in this order",
        zh="import 需要先给出配方，再给出文件",
        en_hint=(
            "give a recipe and the file with its weights; this writes such a file from a finished run:\n"
            "  headway ckpt export --format safetensors"
        ),
        zh_hint=(
            "给出配方和权重文件；下面的命令由已完成的训练导出这样的文件：\n  headway ckpt export --format safetensors"
        ),
    ),
    "checkpoint/import-exists": Text(
        en="{path} already exists; imported weights always start a new run and never replace the state of another",
        zh="{path} 已存在；导入的权重只用于开始新的训练，不会替换其他训练的状态",
        en_hint="choose a new folder with --to, or omit --to",
        zh_hint="用 --to 指定新的目录，或不使用 --to",
    ),
    "checkpoint/import-absent": Text(
        en="{path} does not exist",
        zh="{path} 不存在",
        en_hint=(
            "check the path; this writes such a file from a finished run:\n  headway ckpt export --format safetensors"
        ),
        zh_hint=("检查路径；下面的命令由已完成的训练导出这样的文件：\n  headway ckpt export --format safetensors"),
    ),
    "checkpoint/import-form": Text(
        en="the extension of {path} is not one of {known:list}",
        zh="{path} 的扩展名不是 {known:list} 之一",
        en_hint=("this writes a file that can be imported:\n  headway ckpt export --format safetensors"),
        zh_hint=("下面的命令生成可以导入的文件：\n  headway ckpt export --format safetensors"),
    ),
    "checkpoint/import-folder": Text(
        en="{path} contains {num} weight files ({names:list}), but exactly one is needed",
        zh="{path} 中有 {num} 个权重文件（{names:list}），应恰好有一个",
        en_hint="give the path of the file itself",
        zh_hint="直接给出文件的路径",
    ),
    "checkpoint/import-torch": Text(
        en="cannot read weights from {path}: {why:said}",
        zh="无法从 {path} 读取权重：{why:said}",
        en_hint=(
            "only a plain dict of tensors is read, as `headway ckpt export --format pt` writes it; no code in "
            "the file was run"
        ),
        zh_hint="只读取由张量组成的字典，即 `headway ckpt export --format pt` 的输出；没有执行文件中的代码",
    ),
    "checkpoint/import-framework": Text(
        en="{recipe} trains with MindSpore here, but weights can be imported only for PyTorch",
        zh="{recipe} 在此使用 MindSpore 训练，而目前只支持为 PyTorch 导入权重",
        en_hint=("use the PyTorch side of the recipe, where it has one:\n  task.framework=torch"),
        zh_hint=("若该配方支持，改用 PyTorch：\n  task.framework=torch"),
    ),
    "checkpoint/import-missing": Text(
        en="{path} does not contain {name} ({num} such tensors); the nearest name in it is {near}",
        zh="{path} 缺少 {name}（此类张量共 {num} 个）；其中最接近的名称是 {near}",
        en_hint="use the settings the weights were trained with, such as the size of the model",
        zh_hint="使用训练这些权重时的设置，例如模型大小",
    ),
    "checkpoint/import-extra": Text(
        en="{path} contains {name} ({num} such tensors), which the model does not have; the model's nearest name is "
        "{near}",
        zh="{path} 中的 {name}（此类张量共 {num} 个）在模型中不存在；模型中最接近的名称是 {near}",
        en_hint="use the settings the weights were trained with, such as the size of the model",
        zh_hint="使用训练这些权重时的设置，例如模型大小",
    ),
    "checkpoint/import-shape": Text(
        en="{name} has shape {have} in {path}, but {want} in the model",
        zh="{path} 中 {name} 的形状为 {have}，模型中为 {want}",
        en_hint="use the settings the weights were trained with, such as the size of the model",
        zh_hint="使用训练这些权重时的设置，例如模型大小",
    ),
    "checkpoint/import-ready": Text(
        en="the weights are imported; training has not started", zh="权重已导入；训练尚未开始"
    ),
    "checkpoint/import-settings": Text(en="the file tells: {settings}", zh="文件中写明：{settings}"),
    "checkpoint/import-kept": Text(
        en="{num} tensors are not part of such a file and keep their initial values, such as {name}",
        zh="有 {num} 个张量不在这类文件中，保持初始值，例如 {name}",
    ),
    "checkpoint/no-upstream": Text(
        en="the recipe {recipe} does not say how another system keeps these weights",
        zh="配方 {recipe} 没有说明其他系统如何保存这些权重",
        en_hint="every run can be exported as safetensors:\n  headway ckpt export --format safetensors",
        zh_hint="任何训练都可以导出为 safetensors：\n  headway ckpt export --format safetensors",
    ),
    "checkpoint/would-import": Text(
        en="would start a new run with {file}: {num:,} tensors, {size}",
        zh="将用 {file} 开始新的训练：{num:,} 个张量，{size}",
    ),
    "checkpoint/imported": Text(
        en="{run} starts with the weights of {file}: {num:,} tensors, {size}",
        zh="{run} 以 {file} 的权重开始：{num:,} 个张量，{size}",
    ),
    "checkpoint/would-prune": Text(en="would remove {name}, {size}", zh="将删除 {name}，{size}"),
    "checkpoint/pruned": Text(en="removed {name}, {size}", zh="已删除 {name}，{size}"),
    "checkpoint/nothing-to-prune": Text(
        en="nothing to remove: {num} checkpoints, all kept", zh="无需删除：共 {num} 个检查点，全部保留"
    ),
    "checkpoint/ask-prune": Text(en="remove {num} checkpoints?", zh="确认删除 {num} 个检查点？"),
    "checkpoint/run-is-live": Text(
        en="{run} is running and prunes its checkpoints itself",
        zh="{run} 正在训练，会自行清理检查点",
        en_hint=("stop it first:\n  headway stop {run}"),
        zh_hint=("先停止它：\n  headway stop {run}"),
    ),
    "checkpoint/option-runs": Text(en="folder that contains the run directories", zh="存放训练目录的位置"),
    "checkpoint/head-step": Text(en="step", zh="步数"),
    "checkpoint/head-size": Text(en="size", zh="大小"),
    "checkpoint/head-ranks": Text(en="ranks", zh="rank 数"),
    "checkpoint/head-saved": Text(en="saved", zh="保存时间"),
    "checkpoint/head-note": Text(en="note", zh="备注"),
    "checkpoint/next-resume": Text(en="resume with: headway resume {run}", zh="继续训练：headway resume {run}"),
}
