"""Text of other people made safe to show: on a terminal, and inside a markdown document."""

from __future__ import annotations

import re

from warpsim.text import CONTROL as CONTROL
from warpsim.text import printable as printable


def one_line(text: str) -> str:
    """The text on one line: for what others named, such as a GPU, within a sentence of ours."""
    return " ".join(printable(text).split())


def spelled(text: str) -> str:
    """The text as it stands in a sentence of one line: what does not print is spelled out."""
    return text if text.isprintable() else repr(text)[1:-1]


def shorten(text: str, most: int = 100) -> str:
    """The text, or its beginning with an ellipsis where it is longer than `most` characters."""
    return text if len(text) <= most else f"{text[: most - 1]}…"


def shorten_template(name: str, most: int = 160) -> str:
    """A name in C++ in at most `most` characters, without the arguments of its innermost templates
    first: `gemm<tuple<...>, half_t>`. A symbol, which is what is left of a name that no demangler
    reads, is shortened so too."""
    from warpsim.launch import plain_name  # loads msgspec: not for --help

    if len(name) > most and (own := plain_name(name)) != name:
        name = f"{own}<...>"
    depth = name.count("<")
    while len(name) > most and depth:
        name = _without_arguments(name, depth)
        depth -= 1
    return shorten(name, most)


def _without_arguments(name: str, depth: int) -> str:
    """The name with an ellipsis for the arguments of the templates within `depth` - 1 others."""
    kept, at = [], 0
    for letter in name:
        at -= letter == ">"
        if at < depth:
            kept.append(letter)
        if letter == "<":
            at += 1
            kept += ["..."] if at == depth else []
    return "".join(kept)


def si(value: float, unit: str) -> str:
    """Spells a value with the decimal prefix that leaves 1 to 999 before the point: `2.14 GB`."""
    for size, prefix in ((1e15, "P"), (1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "k")):
        if abs(value) >= size:
            return f"{value / size:.4g} {prefix}{unit}"
    return f"{value:.4g} {unit}"


def spell_bytes(count: int) -> str:
    """268435456 as 256 MiB; what is not a whole number of these in bytes."""
    return f"{count >> 20} MiB" if count % (1 << 20) == 0 else f"{count:,} bytes"


def not_utf8(path: str) -> str:
    """Returns the error message for a path that no message to another process can hold."""
    return (
        f"{shorten(printable(path), 200)} is not UTF-8, or not in this locale: rename the folder, "
        "or set LC_ALL=C.UTF-8."
    )


def quote(text: str) -> str:
    """The text in quotes on one line, as a sentence about it wants it."""
    return repr(shorten(text))


def markdown(text: str) -> str:
    """Paragraphs of prose as markdown that shows these words and adds no structure of its own.

    No heading, list, quotation, table, link, image, HTML, emphasis or code block comes of it.
    What markdown would show as it is stays as it is (`tile_n`, `4*2`, `a < b`, `[128, 64]`), and
    so does code between single backticks. Indentation is dropped.
    """
    paragraphs = re.split(r"\n[ \t\n]*\n", printable(text).strip())
    return "\n\n".join(_paragraph(paragraph) for paragraph in paragraphs)


def markdown_line(text: str) -> str:
    """Text as one line of markdown: for a heading, a list item or a cell of a table."""
    return _paragraph(" ".join(printable(text).split()))


def _paragraph(text: str) -> str:
    text = "\n".join(line.strip(" \t") for line in text.split("\n"))
    runs = [match for match in _INLINE.finditer(text) if match["run"] and _pairs(match)]
    paired = {kind for kind in "*_" if sum(run[0][0] == kind for run in runs) > 1}

    def escape(match: re.Match[str]) -> str:
        if match["code"] or (match["run"] and not (_pairs(match) and match[0][0] in paired)):
            return match[0]
        return "".join(f"\\{character}" for character in match[0])

    lines = _INLINE.sub(escape, text).split("\n")
    return "\n".join(_CLOSING.sub(r"\\\g<0>", _BLOCK.sub(_escape_block, line)) for line in lines)


def _pairs(run: re.Match[str]) -> bool:
    """Whether asterisks or underscores may begin or end emphasis, if there are others."""
    before = run.string[max(run.start() - 1, 0) : run.start()]
    after = run.string[run.end() : run.end() + 1]
    if run[0][0] == "_" and before.isalnum() and after.isalnum():
        return False
    return bool(before.strip() or after.strip())


def _escape_block(match: re.Match[str]) -> str:
    digits = match["digits"] or ""
    return f"{digits}\\{match[0][len(digits) :]}"


# What means something wherever it stands in a line.
_INLINE = re.compile(
    r"""
    (?P<code> (?<!`)`[^`|\n]+`(?!`) )   # stays; with a pipe in it a cell would end
    | (?P<run> \*+ | _+ )              # emphasis, if there are two
    | \\(?=[!-/:-@\[-`{-~\n]|$)        # an escape, a hard line break
    | `                                # a code span that is not one
    | \|                               # a cell's border
    | <(?=[A-Za-z/!?])                 # a tag, a comment, a link in angle brackets
    | &(?=\#?\w+;)                     # an entity
    | \](?=[(\[:]|$)                   # a link, a reference, a definition
    | ~(?=~) | (?<=\S)~                # struck-out text
    """,
    re.VERBOSE,
)
# What means something at the beginning of a line.
_BLOCK = re.compile(
    r"""
    ^(?: \#{1,6}(?=\s|$) | > | [-+*](?=\s|$) | (?P<digits>[0-9]{1,9})[.)](?=\s|$)
       | =+(?=[ \t]*$) | -+(?=[ \t]*$) | [-_*](?=(?:[ \t]*[-_*])+[ \t]*$)
       | :?-+:?(?=[-:|\\ \t]*$) | :(?=-) | ~~~ )
    """,
    re.VERBOSE,
)
# A heading's closing sequence.
_CLOSING = re.compile(r"(?<!\S)\#+$")
