"""Texts of the config stage and of `headway config`."""

from __future__ import annotations

from headway.messages import Text

_EXPLAIN_EN = "see which values it takes:\n  headway config explain {key}"
_EXPLAIN_ZH = "查看可取的值：\n  headway config explain {key}"

TEXTS: dict[str, Text] = {
    # the frame around all problems
    "config/problems": Text(en="the config has {num} problems", zh="配置有 {num} 处问题"),
    "config/one-problem": Text(en="the config has one problem", zh="配置有 1 处问题"),
    "config/more": Text(en="… and {num} more", zh="……另有 {num} 处"),
    "config/at": Text(en="{place}: {text}", zh="{place}：{text}"),
    "config/place-command-line": Text(en="command line", zh="命令行"),
    "config/place-environment": Text(en="environment {name}", zh="环境变量 {name}"),
    "config/place-preset": Text(en="preset {name}", zh="预设 {name}"),
    "config/place-recipe": Text(en="recipe {name}", zh="配方 {name}"),
    # keys
    "config/unknown-key": Text(
        en="unknown key {key}",
        zh="没有 {key} 这个配置项",
        en_hint=("remove it; this lists all keys:\n  headway config schema"),
        zh_hint=("删掉它；查看所有配置项：\n  headway config schema"),
    ),
    "config/unknown-key-near": Text(
        en="unknown key {key}; the nearest is {nearest}",
        zh="没有 {key} 这个配置项；最接近的是 {nearest}",
        en_hint="type: {typed}",
        zh_hint="改为：{typed}",
    ),
    "config/ambiguous-key": Text(
        en="{key} could mean any of {others:list}",
        zh="{key} 可能指 {others:list} 中的任何一个",
        en_hint="write the full key, for example: {typed}",
        zh_hint="写出完整的配置项名，例如：{typed}",
    ),
    "config/ignored": Text(en="{place}: {key} has no effect: {reason}", zh="{place}：{key} 不起作用：{reason}"),
    "config/ignored-key": Text(
        en="{key} is a key of the guide that has no effect in recipe {recipe}",
        zh="{key} 是指南中的配置项，在配方 {recipe} 中不起作用",
    ),
    "config/duplicate-key": Text(
        en="{key} is set twice; first at line {line}, column {column}",
        zh="{key} 设置了两次；第一次在第 {line} 行第 {column} 列",
        en_hint="remove one of the two",
        zh_hint="删掉其中一处",
    ),
    "config/set-twice": Text(
        en="{key} is set twice, under two names; first at {first}",
        zh="{key} 以两个名字设置了两次；第一次在 {first}",
        en_hint="remove one of the two",
        zh_hint="删掉其中一处",
    ),
    "config/key-not-text": Text(
        en="a key must be a plain word or a string",
        zh="键必须是普通单词或字符串",
        en_hint="type: name: value",
        zh_hint="写成：name: value",
    ),
    "config/not-a-section": Text(
        en="{key} is a section, but a single value is given",
        zh="{key} 是一个配置段，这里却给了单个值",
        en_hint=("see its keys:\n  headway config explain {key}"),
        zh_hint=("查看其中的配置项：\n  headway config explain {key}"),
    ),
    "config/not-a-table": Text(
        en="the top level of the file must consist of keys and values",
        zh="文件最外层必须是键值对",
        en_hint="for example: depth: 12",
        zh_hint="例如：depth: 12",
    ),
    "config/missing": Text(
        en="{key} is not set and has no default",
        zh="没有设置 {key}，也没有默认值",
        en_hint="type: {typed}",
        zh_hint="写上：{typed}",
    ),
    # values
    "config/wrong-value": Text(
        en="{key} is {got}, but must be {wanted}",
        zh="{key} 的值是 {got}，必须是{wanted}",
        en_hint="see which values it takes:\n  headway config explain {words}",
        zh_hint="查看可取的值：\n  headway config explain {words}",
    ),
    "config/not-a-name": Text(
        en="{key} is {got}, but it becomes part of a folder name: use letters, digits and . _ + -, at most 80 "
        "characters",
        zh="{key} 的值是 {got}，它会成为目录名的一部分：只能使用字母、数字和 . _ + -，最多 80 个字符",
        en_hint="see which values it accepts:\n  headway config explain {key}",
        zh_hint="查看可取的值：\n  headway config explain {key}",
    ),
    "config/path-literal": Text(
        en="{key} is {got}: a part of it would become a folder with exactly that name",
        zh="{key} 的值是 {got}：其中一部分会被原样当作目录名",
        en_hint="write the full path; only ~ and $HOME at its start are replaced",
        zh_hint="写出完整路径；只有开头的 ~ 和 $HOME 会被替换",
    ),
    "config/quoted": Text(
        en="{key} is the string {got}, but must be {wanted}",
        zh="{key} 的值是字符串 {got}，必须是{wanted}",
        en_hint="remove the quotes: {typed}",
        zh_hint="去掉引号：{typed}",
    ),
    "config/yes-no": Text(
        en="{key} is the string {got}, but must be {wanted}",
        zh="{key} 的值是字符串 {got}，必须是{wanted}",
        en_hint="yes, no, on and off are plain words in YAML 1.2; type: {typed}",
        zh_hint="在 YAML 1.2 中 yes、no、on、off 只是普通单词；改为：{typed}",
    ),
    "config/not-a-choice": Text(
        en="{key} is {got}, but must be {wanted}",
        zh="{key} 的值是 {got}，必须是{wanted}",
        en_hint="type: {typed}",
        zh_hint="改为：{typed}",
    ),
    "config/not-whole": Text(
        en="{key} is {got}, but must be {wanted}",
        zh="{key} 的值是 {got}，必须是{wanted}",
        en_hint="write it as a whole number: {typed}",
        zh_hint="写成整数：{typed}",
    ),
    "config/needs-quotes": Text(
        en="{key} is {got}, but must be {wanted}",
        zh="{key} 的值是 {got}，必须是{wanted}",
        en_hint="put it in quotes: {typed}",
        zh_hint="加上引号：{typed}",
    ),
    "config/refused": Text(
        en="{key} is not accepted: {why:said}",
        zh="不接受 {key} 的值：{why:said}",
        en_hint=_EXPLAIN_EN,
        zh_hint=_EXPLAIN_ZH,
    ),
    "config/not-a-number": Text(
        en="NaN and infinity cannot be used as settings",
        zh="NaN 和无穷大不能用作设置",
        en_hint="write a finite number, or null for none",
        zh_hint="改为普通数值；表示“无”就写 null",
    ),
    "config/number-too-large": Text(
        en="the number is infinite or does not fit into 64 bits",
        zh="数值为无穷大或超出 64 位",
        en_hint="whole numbers go up to 9223372036854775807, others up to 1.8e308",
        zh_hint="整数最大为 9223372036854775807，小数最大约为 1.8e308",
    ),
    "config/half-character": Text(
        en="the string contains half a character (a lone surrogate such as \\ud800)",
        zh="字符串里有半个字符（孤立的代理项，如 \\ud800）",
        en_hint="type the character itself",
        zh_hint="直接写出该字符",
    ),
    # kinds of value
    "config/type-bool": Text(en="true or false", zh="布尔值（true 或 false）"),
    "config/type-int": Text(en="a whole number", zh="整数"),
    "config/type-int-within": Text(en="a whole number {bounds:list}", zh="整数（{bounds:list}）"),
    "config/type-float": Text(en="a number", zh="数值"),
    "config/type-float-within": Text(en="a number {bounds:list}", zh="数值（{bounds:list}）"),
    "config/type-text": Text(en="a string", zh="字符串"),
    "config/type-null": Text(en="null", zh="空（null）"),
    "config/type-list": Text(en="a list", zh="列表"),
    "config/type-table": Text(en="a table", zh="表"),
    "config/type-any": Text(en="any value", zh="任意值"),
    "config/type-section": Text(en="a section", zh="一个配置段"),
    "config/type-word": Text(en="{choices}", zh="“{choices}”"),
    "config/type-choice": Text(en="one of {choices:list}", zh="以下之一（{choices:list}）"),
    "config/type-or": Text(en="{left} or {right}", zh="{left}，或{right}"),
    # presets and recipes
    "config/no-preset": Text(
        en="recipe {recipe} has no preset {name}",
        zh="配方 {recipe} 没有预设 {name}",
        en_hint="use one of: {known:list}",
        zh_hint="可选：{known:list}",
    ),
    "config/other-recipe": Text(
        en="the config is for recipe {wanted}, but recipe {given} was requested",
        zh="配置属于配方 {wanted}，但要运行的是配方 {given}",
        en_hint="remove one of the two",
        zh_hint="去掉其中一个",
    ),
    # words
    "config/not-a-setting": Text(
        en="{word} is not a setting of the form key=value",
        zh="{word} 不是 key=value 形式的设置",
        en_hint="type: {typed}",
        zh_hint="改为：{typed}",
    ),
    "config/set-without-word": Text(
        en="--set is the last word, without a key=value after it",
        zh="--set 在末尾，后面没有 key=value",
        en_hint="type: --set key=value",
        zh_hint="改为：--set key=value",
    ),
    # secrets
    "config/secret": Text(
        en="{key} contains a secret ({kind}); configs are saved with the run and shown in reports",
        zh="{key} 里是密钥（{kind}）；配置会随训练保存并显示在报告中",
        en_hint=(
            "remove it, make a new one if the file was shared, and set the environment variable {variable} in its place"
        ),
        zh_hint="把它删掉（文件若已共享，要更换密钥），改为设置环境变量 {variable}",
    ),
    "config/secret-in-file": Text(
        en="{key} contains a secret ({kind}); configs are saved with the run and shown in reports",
        zh="{key} 里是密钥（{kind}）；配置会随训练保存并显示在报告中",
        en_hint="keep it in a file that only you can read (chmod 600) and give the path of that file",
        zh_hint="把它存到只有自己可读的文件（chmod 600），配置里只写该文件的路径",
    ),
    "config/secret-in-address": Text(
        en="{key} contains a secret ({kind}); configs are saved with the run and shown in reports",
        zh="{key} 里是密钥（{kind}）；配置会随训练保存并显示在报告中",
        en_hint="write the address without user:password@ and put the password into ~/.netrc (chmod 600)",
        zh_hint="地址里不要写 user:password@，把密码放进 ~/.netrc（chmod 600）",
    ),
    "config/secret-by-name": Text(en="judged by the name of the key", zh="从配置项名称判断"),
    "config/secret-hugging-face": Text(en="Hugging Face token", zh="Hugging Face 令牌"),
    "config/secret-anthropic": Text(en="Anthropic API key", zh="Anthropic API 密钥"),
    "config/secret-openai": Text(en="OpenAI API key", zh="OpenAI API 密钥"),
    "config/secret-github": Text(en="GitHub token", zh="GitHub 令牌"),
    "config/secret-gitlab": Text(en="GitLab token", zh="GitLab 令牌"),
    "config/secret-aws": Text(en="AWS access key", zh="AWS 访问密钥"),
    "config/secret-slack": Text(en="Slack token", zh="Slack 令牌"),
    "config/secret-google": Text(en="Google API key", zh="Google API 密钥"),
    "config/secret-private-key": Text(en="private key", zh="私钥"),
    "config/secret-password": Text(en="password in an address", zh="地址中的密码"),
    # files
    "config/no-file": Text(
        en="no such file",
        zh="文件不存在",
        en_hint=("check the path, or write a first file:\n  headway config show > {path}"),
        zh_hint=("检查路径，或先生成一份：\n  headway config show > {path}"),
    ),
    "config/no-file-but": Text(
        en="no such file", zh="文件不存在", en_hint="type: {nearest}", zh_hint="改为：{nearest}"
    ),
    "config/no-folder": Text(
        en="no such file; folder {folder} does not exist or cannot be read",
        zh="文件不存在，目录 {folder} 也不存在或无法读取",
        en_hint=("look at what is there:\n  ls -ld {folder}"),
        zh_hint=("查看那里有什么：\n  ls -ld {folder}"),
    ),
    "config/unreadable": Text(
        en="the file cannot be read: {why:said}",
        zh="无法读取文件：{why:said}",
        en_hint=("look at its owner and permissions:\n  ls -ld {path}"),
        zh_hint=("查看它的所有者和权限：\n  ls -ld {path}"),
    ),
    "config/is-directory": Text(
        en="this is a folder, not a config file",
        zh="这是目录，不是配置文件",
        en_hint="give the path of a .yaml, .json, .toml or .py file",
        zh_hint="写出 .yaml、.json、.toml 或 .py 文件的路径",
    ),
    "config/is-run-directory": Text(
        en="this is a folder, not a config file",
        zh="这是目录，不是配置文件",
        en_hint="type: {inside}",
        zh_hint="改为：{inside}",
    ),
    "config/not-a-file": Text(
        en="this is a pipe or a device, not a regular file",
        zh="这是管道或设备，不是普通文件",
        en_hint="save the config to a file first",
        zh_hint="先把配置保存成文件",
    ),
    "config/too-large": Text(
        en="the file has {have}, but a config file may have at most {limit}",
        zh="文件大小为 {have}，配置文件最大为 {limit}",
        en_hint="give the path of the config, not of the data; put long lists into a separate file and write its "
        "path in the config",
        zh_hint="给出配置文件的路径，而不是数据文件；长列表放进单独的文件，在配置中写它的路径",
    ),
    "config/unknown-format": Text(
        en="a file that ends in {suffix} cannot be read as a config",
        zh="以 {suffix} 结尾的文件不能作为配置",
        en_hint="use one of: {known:list}",
        zh_hint="可用的后缀：{known:list}",
    ),
    "config/encoding": Text(
        en="the file is encoded in {encoding}, but must be UTF-8",
        zh="文件编码是 {encoding}，必须是 UTF-8",
        en_hint=("convert it:\n  iconv -f {encoding} -t UTF-8 {path} > {path}.utf8 && mv {path}.utf8 {path}"),
        zh_hint=("转换编码：\n  iconv -f {encoding} -t UTF-8 {path} > {path}.utf8 && mv {path}.utf8 {path}"),
    ),
    "config/not-utf8": Text(
        en="byte {byte} is not UTF-8",
        zh="字节 {byte} 不是 UTF-8",
        en_hint=("convert it, if it is GBK:\n  iconv -f GBK -t UTF-8 {path} > {path}.utf8 && mv {path}.utf8 {path}"),
        zh_hint=("如果文件是 GBK 编码，转换：\n  iconv -f GBK -t UTF-8 {path} > {path}.utf8 && mv {path}.utf8 {path}"),
    ),
    "config/nul-byte": Text(
        en="the file contains a NUL byte ({letter}), so it is not text",
        zh="文件含有 NUL 字节（{letter}），不是文本",
        en_hint="save it as UTF-8 text",
        zh_hint="另存为 UTF-8 文本",
    ),
    "config/unprintable": Text(
        en="the file contains the unprintable character {letter}",
        zh="文件含有不可见的控制字符 {letter}",
        en_hint="delete it",
        zh_hint="删掉它",
    ),
    "config/too-deep": Text(
        en="the nesting is deeper than {limit} levels",
        zh="嵌套超过 {limit} 层",
        en_hint=("keys of a config are at most a few levels deep; look at one:\n  headway config show"),
        zh_hint=("配置项只有几层；参见：\n  headway config show"),
    ),
    "config/too-many-values": Text(
        en="there are more than {limit:,} keys and values (an alias counts each time it is used)",
        zh="键和值超过 {limit:,} 个（别名每用一次计一次）",
        en_hint="put long lists into a separate file and write its path in the config",
        zh_hint="长列表放进单独的文件，在配置中写它的路径",
    ),
    # YAML
    "config/yaml-syntax": Text(
        en="this is not valid YAML: {why:said}",
        zh="不符合 YAML 语法；解析器原文：{why}",
        en_hint="check the indentation and the quotes of this line and the one above",
        zh_hint="检查这一行和上一行的缩进与引号",
    ),
    "config/yaml-escape": Text(
        en="an escape (\\U…) refers to a character beyond U+10FFFF",
        zh="转义（\\U…）超出 U+10FFFF，不存在这样的字符",
        en_hint="type the character itself",
        zh_hint="直接写出该字符",
    ),
    "config/yaml-tab": Text(
        en="indentation in YAML must use spaces, but this is a tab",
        zh="YAML 缩进只能用空格，这里是制表符",
        en_hint=("replace tabs by spaces:\n  expand -t 2 {path} > {path}.new && mv {path}.new {path}"),
        zh_hint=("把制表符替换成空格：\n  expand -t 2 {path} > {path}.new && mv {path}.new {path}"),
    ),
    "config/yaml-colon": Text(
        en="this line contains a second `: `",
        zh="这一行里有第二个 `: `",
        en_hint="put the text in quotes, or check the indentation of the line above",
        zh_hint="给文本加引号，或检查上一行的缩进",
    ),
    "config/yaml-no-colon": Text(
        en="there is no `:` after a key", zh="键后面缺少 `:`", en_hint="type: key: value", zh_hint="写成：key: value"
    ),
    "config/yaml-open-quote": Text(
        en="a quote is opened but never closed", zh="引号没有闭合", en_hint="close it", zh_hint="补上引号"
    ),
    "config/yaml-no-anchor": Text(
        en="an alias (*) refers to an anchor that is not defined above it: {why:said}",
        zh="别名（*）引用的锚点在它上面没有定义；解析器原文：{why}",
        en_hint="put the text in quotes if the * is part of it",
        zh_hint="如果 * 是文本的一部分，加上引号",
    ),
    "config/yaml-endless-alias": Text(
        en="alias *{name} is inside its own anchor",
        zh="别名 *{name} 位于它自己的锚点之内",
        en_hint="remove it",
        zh_hint="删掉它",
    ),
    "config/yaml-merge": Text(
        en="merge keys (<<) are not part of YAML 1.2",
        zh="合并键（<<）不属于 YAML 1.2",
        en_hint="write the keys out, or start from a preset: preset: NAME",
        zh_hint="把键逐一写出，或从预设开始：preset: NAME",
    ),
    "config/yaml-tag": Text(
        en="the tag {tag} is not supported; use plain YAML values",
        zh="不支持标签 {tag}；值只能是普通 YAML",
        en_hint="remove the tag",
        zh_hint="删掉标签",
    ),
    "config/yaml-two-documents": Text(
        en="a second document begins here",
        zh="这里开始了第二个文档",
        en_hint="keep one document per file",
        zh_hint="每个文件只写一个文档",
    ),
    "config/yaml-version": Text(
        en="the file says YAML {version}, but configs are read as YAML 1.2",
        zh="文件声明为 YAML {version}，但配置按 YAML 1.2 读取",
        en_hint="remove the %YAML line; then check that yes, no and numbers with leading zeros mean what you think",
        zh_hint="删掉 %YAML 行，并检查 yes、no 和以 0 开头的数字是否符合预期",
    ),
    # JSON
    "config/json-after-end": Text(
        en="there is more text after the end of the JSON value",
        zh="JSON 值结束之后还有内容",
        en_hint="check the brackets above",
        zh_hint="检查前面的括号",
    ),
    "config/json-comment": Text(
        en=(
            "{place}: comments are accepted here, but they are not valid JSON: json.load and other programs reject "
            "this file"
        ),
        zh="{place}：这里接受注释，但标准 JSON 没有注释：json.load 等程序会拒绝这个文件",
        en_hint="no change is needed for Headway; if other programs read the file too, remove the comments or rename "
        "it to .jsonc",
        zh_hint="用 Headway 无需改动；若其他程序也要读取，去掉注释或改名为 .jsonc",
    ),
    "config/json-open-comment": Text(
        en="a comment is opened with /* but never closed",
        zh="注释 /* 没有结束",
        en_hint="close it with */",
        zh_hint="用 */ 结束注释",
    ),
    "config/json-open-quote": Text(
        en="a string is not closed in its line",
        zh="字符串在本行没有闭合",
        en_hint='close it with "; a line break inside a string is written \\n',
        zh_hint='用 " 闭合；字符串里的换行写作 \\n',
    ),
    "config/json-single-quote": Text(
        en="JSON does not use single quotes", zh="JSON 不使用单引号", en_hint='use "', zh_hint='改用 "'
    ),
    "config/json-bare-word": Text(
        en="{word} is not a JSON value",
        zh="{word} 不是 JSON 值",
        en_hint='put it in quotes: "{word}"',
        zh_hint='加上引号："{word}"',
    ),
    "config/json-bare-key": Text(
        en="the key {word} has no quotes", zh="键 {word} 没有引号", en_hint='type: "{word}":', zh_hint='写成："{word}":'
    ),
    "config/json-no-value": Text(
        en="expected a value here, but found {got}",
        zh="这里应是一个值，却是 {got}",
        en_hint="type a value",
        zh_hint="补上值",
    ),
    "config/json-no-key": Text(
        en="expected a key in quotes here, but found {got}",
        zh="这里应是带引号的键，却是 {got}",
        en_hint='type: "key": value',
        zh_hint='写成："key": value',
    ),
    "config/json-no-colon": Text(
        en="expected `:` after the key {key}, but found {got}",
        zh="键 {key} 后面应是 `:`，却是 {got}",
        en_hint="type `:`",
        zh_hint="补上 `:`",
    ),
    "config/json-no-comma": Text(
        en="expected `,` or `{closing}` here, but found {got}",
        zh="这里应是 `,` 或 `{closing}`，却是 {got}",
        en_hint="add `,` after the previous value",
        zh_hint="在前一个值后面补上 `,`",
    ),
    "config/json-escape": Text(
        en="the string contains an escape sequence that JSON does not have",
        zh="字符串含有 JSON 没有的转义",
        en_hint="write a backslash as \\\\",
        zh_hint="反斜杠写作 \\\\",
    ),
    # TOML
    "config/toml-syntax": Text(
        en="this is not valid TOML: {why:said}",
        zh="不符合 TOML 语法；解析器原文：{why}",
        en_hint='strings need quotes: name = "value"',
        zh_hint='字符串要加引号：name = "value"',
    ),
    "config/toml-date": Text(
        en="no key accepts a date or a time",
        zh="没有配置项接受日期或时间",
        en_hint="put it in quotes",
        zh_hint="加上引号",
    ),
    # .py
    "config/py-syntax": Text(
        en="this is not valid Python: {why:said}",
        zh="不符合 Python 语法；解析器原文：{why}",
        en_hint="write one assignment per line: depth = 12",
        zh_hint="每行一个赋值：depth = 12",
    ),
    "config/py-not-plain": Text(
        en="a .py config is parsed, never executed, so it cannot contain {what:word}",
        zh=".py 配置只解析，从不执行，因此不能包含 {what:word}",
        en_hint="use numbers, strings, lists, dicts, names defined above and + - * / // % **",
        zh_hint="只能用数字、字符串、列表、字典、前面的名字以及 + - * / // % **",
    ),
    "config/edit-not-plain": Text(
        en="{key} is not a plain value in the file, so it cannot be changed there",
        zh="{key} 在文件中不是普通的值，无法就地修改",
        en_hint="write it as a number, a string, true or false",
        zh_hint="把它写成数字、字符串、true 或 false",
    ),
    "config/edit-not-alone": Text(
        en="{keys:list} cannot be changed alone, because other values in the file depend on them",
        zh="无法单独修改 {keys:list}：文件中的其他值依赖它",
        en_hint="write the values out instead of names, expressions or anchors",
        zh_hint="直接写出各个值，不用名字、算式或锚点",
    ),
    "config/py-no-name": Text(
        en="{name} is not defined above",
        zh="{name} 在前面没有赋值",
        en_hint='strings need quotes: "{name}"',
        zh_hint='字符串要加引号："{name}"',
    ),
    "config/py-name-not-simple": Text(
        en="{name} is a list or a dict; only single values can be used by name",
        zh="{name} 是列表或字典；只有单个值可以按名字引用",
        en_hint="write it out",
        zh_hint="直接写出内容",
    ),
    "config/py-not-a-number": Text(
        en="arithmetic works only on real numbers",
        zh="只能对实数做运算",
        en_hint="write the result out",
        zh_hint="直接写出结果",
    ),
    "config/py-zero-division": Text(
        en="this divides by zero", zh="除数为零", en_hint="write the result out", zh_hint="直接写出结果"
    ),
    # commands
    "config/help": Text(
        en="Show, describe and explain the config of a run.\n\n"
        "Example:\n"
        "  headway config show nanochat preset=balanced\n"
        "  headway config explain batch.total",
        zh=(
            "查看、说明和解释训练的配置。\n\n"
            "示例：\n  headway config show nanochat preset=balanced\n  headway config explain batch.total"
        ),
    ),
    "config/help-show": Text(
        en="Print the resolved config as YAML that can be run again.\n\n"
        "SOURCE is a recipe or a file; key=value settings after it override both.\n\n"
        "Example:\n"
        "  headway config show nanochat depth=12 gpus=2 > run.yaml\n"
        "  headway config show run.yaml --origins",
        zh="以 YAML 输出最终配置，可直接用于再次训练。\n\n"
        "SOURCE 是配方或文件；其后的 key=value 优先于两者。\n\n"
        "示例：\n"
        "  headway config show nanochat depth=12 gpus=2 > run.yaml\n"
        "  headway config show run.yaml --origins",
    ),
    "config/help-schema": Text(
        en="Print the JSON Schema of a recipe's config, for editors.\n\n"
        "Example:\n  headway config schema nanochat > headway.schema.json",
        zh="输出某个配方的 JSON Schema，供编辑器使用。\n\n"
        "示例：\n  headway config schema nanochat > headway.schema.json",
    ),
    "config/help-explain": Text(
        en="Explain one key: what it is, its values, its default and the guide's names for it.\n\n"
        "Example:\n"
        "  headway config explain batch.total\n"
        "  headway config explain device_batch_size --recipe nanochat",
        zh="解释一个配置项：含义、取值、默认值以及指南中的名字。\n\n"
        "示例：\n"
        "  headway config explain batch.total\n"
        "  headway config explain device_batch_size --recipe nanochat",
    ),
    "config/help-json": Text(en="print one JSON object", zh="输出一个 JSON 对象"),
    "config/help-origins": Text(en="show after each value where it came from", zh="在每个值后注明来源"),
    "config/help-recipe": Text(en="recipe that has the key", zh="所查的配置项属于哪个配方"),
    "config/warning": Text(en="warning: {text}", zh="警告：{text}"),
    "config/label-type": Text(en="values", zh="取值"),
    "config/label-default": Text(en="default", zh="默认"),
    "config/label-required": Text(en="must be set", zh="必须设置"),
    "config/label-aliases": Text(en="in the guide", zh="指南中称为"),
    "config/label-preset": Text(en="preset {name}", zh="预设 {name}"),
    "config/row": Text(en="  {label}: {value}", zh="  {label}：{value}"),
    "config/value-of-recipe": Text(en="{value} (recipe {name})", zh="{value}（配方 {name}）"),
    "config/label-set": Text(en="to set it", zh="设置方法"),
}
