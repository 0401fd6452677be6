"""Texts of the recipe shelf."""

from __future__ import annotations

from headway.messages import Text

TEXTS: dict[str, Text] = {
    "recipes/code-failed": Text(
        en="the recipe's code failed at {file}, line {line}: {type}: {text}",
        zh="配方代码 {file} 第 {line} 行出错：{type}：{text}",
        en_hint="correct that line; the traceback above shows how it was reached",
        zh_hint="改正这一行；上面的调用栈显示了它是怎样被调用的",
    ),
    "recipes/no-guide": Text(
        en="there is no guide project for {name}; available: {known:list}",
        zh="没有 {name} 的指南项目；可用的有：{known:list}",
        en_hint=("for example:\n  headway new nanochat mychat"),
        zh_hint=("例如：\n  headway new nanochat mychat"),
    ),
    "recipes/name-not-free": Text(
        en="{name!r} cannot be the name of a new recipe; built-in recipes: {known:list}",
        zh="{name!r} 不能用作新配方的名字；内置配方有：{known:list}",
        en_hint=("use lower-case letters, digits and _, for example:\n  headway new --recipe mytask mytask"),
        zh_hint=("使用小写字母、数字和下划线，例如：\n  headway new --recipe mytask mytask"),
    ),
    "recipes/folder-not-empty": Text(
        en="{folder} is not an empty folder",
        zh="{folder} 不是空目录",
        en_hint="choose a new folder, so that none of your files is overwritten",
        zh_hint="换一个新目录，以免覆盖已有文件",
    ),
    "recipes/data-changed": Text(
        en="{file} has changed since it was prepared (within the 4 MiB that start at byte {offset:,})",
        zh="{file} 在准备完成之后被改动（从第 {offset:,} 字节起的 4 MiB 内）",
        en_hint=("remove the prepared folder; it is created again from the source data:\n  rm -r {folder}"),
        zh_hint=("删除准备好的目录，下次会由源数据重新生成：\n  rm -r {folder}"),
    ),
    "recipes/data-size": Text(
        en="{file} has {have:,} bytes, but had {want:,} when it was prepared",
        zh="{file} 现有 {have:,} 字节，准备完成时为 {want:,} 字节",
        en_hint=("remove the prepared folder; it is created again from the source data:\n  rm -r {folder}"),
        zh_hint=("删除准备好的目录，下次会由源数据重新生成：\n  rm -r {folder}"),
    ),
    "recipes/seal-unread": Text(
        en="{file} cannot be read: {why:said}",
        zh="无法读取 {file}：{why:said}",
        en_hint=("remove the prepared folder; it is created again from the source data:\n  rm -r {folder}"),
        zh_hint=("删除准备好的目录，下次会由源数据重新生成：\n  rm -r {folder}"),
    ),
    "recipes/waiting": Text(
        en="another process is preparing the data in {folder}; waiting for it",
        zh="另一个进程正在准备 {folder} 中的数据，等待其完成",
    ),
    "recipes/unknown": Text(
        en="there is no recipe {name}; built-in recipes: {known:list}",
        zh="没有名为 {name} 的配方；内置配方有：{known:list}",
        en_hint="use one of these, a config file, or a folder that contains preset.py and task.py",
        zh_hint="输入其中之一、一个配置文件，或一个含有 preset.py 和 task.py 的目录",
    ),
    "recipes/unknown-near": Text(
        en="there is no recipe {name}; built-in recipes: {known:list}",
        zh="没有名为 {name} 的配方；内置配方有：{known:list}",
        en_hint="give a folder that holds preset.py and task.py, or the nearest recipe, {near}:",
        zh_hint="给出含有 preset.py 和 task.py 的目录，或最接近的配方 {near}：",
    ),
    "recipes/folder-lacks": Text(
        en="the recipe folder {folder} has no {file}",
        zh="配方目录 {folder} 中缺少 {file}",
        en_hint="a recipe folder needs preset.py with RECIPE and task.py with make_task",
        zh_hint="配方目录需要 preset.py（定义 RECIPE）和 task.py（定义 make_task）",
    ),
    "recipes/no-record": Text(
        en="{file} does not define RECIPE, or RECIPE is not a headway Recipe but {kind}",
        zh="{file} 没有定义 RECIPE，或 RECIPE 不是 headway 的 Recipe，而是 {kind}",
        en_hint="add RECIPE = Recipe(name=…, section=…, task=…) to preset.py",
        zh_hint="在 preset.py 中加上 RECIPE = Recipe(name=…, section=…, task=…)",
    ),
    "recipes/will-not-load": Text(
        en="{file} cannot be loaded: {why:said}",
        zh="无法加载 {file}：{why:said}",
        en_hint=("correct the file, then check it:\n  python -m py_compile {file}"),
        zh_hint=("修正该文件，然后检查：\n  python -m py_compile {file}"),
    ),
}
