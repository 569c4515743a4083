"""The steps of many builds as a ninja file, with compile_commands.json for editors.

ninja goes by the time of a file and by its command, where the cache of builds goes by content; its
outputs are files to look at and no evidence.
"""

from __future__ import annotations

import hashlib
import io
import json
import shlex
from collections.abc import Mapping, Sequence
from pathlib import Path

from ninja import ninja_syntax

from kernelexp.evidence.build.planning import PTXAS_FLAGS, Plan

NAME = "build.ninja"
COMMANDS = "compile_commands.json"
_STEM = str.maketrans({"@": "/", ":": "/", " ": "", ",": "-"})
_STEM_MAX = 200
_DEPENDENCIES = "-Xcompiler -MD,-MT,$out,-MF,$out.d"
"""Of the preprocessing that PTX is made from, as a build lists them."""


def write(folder: Path, plans: Mapping[str, Plan]) -> None:
    """Writes both files to `folder`, for plans by label.

    build.ninja is for `ninja -f FOLDER/build.ninja` in the project's root, which leaves the PTX,
    cubin and SASS of a variant in `folder`. Programs are linked and not disassembled. OSError
    where the folder can't be written to.
    """
    folder.mkdir(parents=True, exist_ok=True)
    (folder / NAME).write_text(_render(str(folder), plans))
    commands = [_command(plan) for plan in plans.values() if plan.variant.form == "source"]
    (folder / COMMANDS).write_text(json.dumps(commands, indent=1) + "\n")


def _render(folder: str, plans: Mapping[str, Plan]) -> str:
    text = io.StringIO()
    file = ninja_syntax.Writer(text)  # type: ignore[arg-type]  # its stub says str
    file.comment("Written by kernelexp inspect --build --ninja. Run ninja in the project's root.")
    file.variable("ninja_required_version", "1.3")
    file.variable("builddir", _escaped(folder))
    file.newline()
    compiled = f"$nvcc -ptx -o $out {_DEPENDENCIES}"
    file.rule("ptx", compiled, "PTX $out", depfile="$out.d", deps="gcc")
    file.rule("program", "$nvcc -o $out -MD -MF $out.d", "LINK $out", depfile="$out.d", deps="gcc")
    file.rule("copy", "cp $in $out", "COPY $out")
    file.rule("cubin", "$ptxas $in -o $out", "CUBIN $out")
    file.rule("sass", "$cuobjdump -sass $in > $out", "SASS $out")
    for label, plan in plans.items():
        file.newline()
        _variant(file, f"{folder}/{_stem(label)}", plan)
    return text.getvalue()


def _stem(label: str) -> str:
    """The name of a variant's files: its label, shortened for file systems that take 255 bytes."""
    stem = label.translate(_STEM)
    digest = hashlib.sha256(label.encode()).hexdigest()[:8]
    return stem if len(stem) < _STEM_MAX else f"{stem[:_STEM_MAX]}-{digest}"


def _variant(file: ninja_syntax.Writer, stem: str, plan: Plan) -> None:
    source = _escaped(plan.variant.source)
    stem, compiler = _escaped(stem), {"nvcc": _escaped(shlex.join(plan.command))}
    if plan.variant.program:
        file.build([stem], "program", [source], variables=compiler)
        return
    ptx, cubin = f"{stem}.ptx", f"{stem}.cubin"
    if plan.variant.form == "source":
        file.build([ptx], "ptx", [source], variables=compiler)
    else:
        taken = ptx if plan.variant.form == "ptx" else cubin
        file.build([taken], "copy", [source])
    if plan.variant.form != "cubin":
        own = (*PTXAS_FLAGS, f"-arch={plan.variant.arch}")
        flags = plan.flags if plan.variant.form == "ptx" else own
        words = shlex.join((plan.tools.ptxas, *flags))
        file.build([cubin], "cubin", [ptx], variables={"ptxas": _escaped(words)})
    cuobjdump = {"cuobjdump": _escaped(shlex.quote(plan.tools.cuobjdump))}
    file.build([f"{stem}.sass"], "sass", [cubin], variables=cuobjdump)


def _command(plan: Plan) -> dict[str, str | Sequence[str]]:
    """Returns the command in the format of clangd and clang-tidy."""
    return {
        "directory": str(plan.root),
        "file": plan.variant.source,
        "arguments": [*plan.command, "-c"],
    }


def _escaped(words: str) -> str:
    escaped: str = ninja_syntax.escape(words)
    return escaped
