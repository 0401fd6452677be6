# . ./enter_mindspore.sh：此后当前终端里的 `python` 就是装有 MindSpore 的那个
# . ./enter_mindspore.sh: from here on, `python` of this shell is the one with MindSpore
_place="$("@PYTHON@" -P -m headway guide tfnet where_mindspore)" &&
    export PATH="$_place:$PATH" &&
    echo "python: $_place/python" &&
    python -c 'import mindspore; print("mindspore", mindspore.__version__)'
unset _place
