"""The top-level declarations of a CUDA source, as ranges of its text."""

from __future__ import annotations

import itertools
import re
from collections.abc import Collection, Iterator

import msgspec

_TOKEN = re.compile(
    r"""
    (?P<comment> //(?:\\\n|[^\n])* | /\*.*?\*/ )
    | (?P<directive> (?m:^)[ \t]*\#(?:\\\n|/\*.*?\*/|//[^\n]*|[^\n])* )
    | (?P<string> R"(?P<end>[^()\\\s]{0,16})\(.*?\)(?P=end)"
                  | "(?:\\.|[^"\\\n])*" | '(?:\\.|[^'\\\n])*' )
    | (?P<word> [A-Za-z_]\w* )
    | (?P<number> [0-9](?:'?[\w.])* )
    | (?P<space> \n | [^\S\n]+ )  # so that the indentation of a directive is its own
    | (?P<mark> . )
    """,
    re.VERBOSE | re.DOTALL,
)
_INCLUDE = re.compile(r'\s*#\s*include\s*([<"])([^>"\n]+)[>"]')
_OPEN, _CLOSE = {"(": ")", "[": "]", "{": "}"}, {")", "]", "}"}
_TYPES = frozenset({"struct", "class", "union", "enum"})
_DEVICE = frozenset({"__global__", "__device__", "__constant__", "__shared__"})


class Declaration(msgspec.Struct, frozen=True, kw_only=True):
    """A function, a type, a variable, an #include: text[first:end]."""

    first: int
    end: int
    first_line: int
    last_line: int
    words: frozenset[str]
    kernel: str = ""
    """The name of a __global__ function; empty for what is none."""
    parameters: tuple[str, ...] = ()
    """Of a kernel, as they are written, without default values."""
    template: bool = False
    namespace: str = ""
    """That of a kernel, as in `a::b`."""
    include: str = ""
    """The file that an #include names, in its quotes or brackets."""

    @property
    def is_for_device(self) -> bool:
        return not self.words.isdisjoint(_DEVICE)


class _Token(msgspec.Struct, frozen=True, gc=False):
    kind: str
    text: str
    first: int


def read(text: str) -> list[Declaration]:
    """The declarations of a file in their order; namespaces are looked into."""
    declarations: list[Declaration] = []
    pending: list[_Token] = []
    inside: list[str] = []  # namespaces, and blocks of extern "C"
    depth = 0
    for match in _TOKEN.finditer(text):
        token = _Token(match.lastgroup or "", match[0], match.start())
        if token.kind == "end":  # of a raw string
            token = _Token("string", match[0], match.start())
        if token.kind in ("comment", "space"):
            continue
        if token.kind == "directive":
            declarations += _include(text, token)
            continue
        if depth == 0 and token.text == "}" and not pending:
            del inside[-1:]  # the end of a namespace
            continue
        pending.append(token)
        if token.text in _OPEN and token.kind == "mark":
            if depth == 0 and token.text == "{" and _is_namespace(pending):
                inside.append(_name_of(pending))
                pending = []
                continue
            depth += 1
        elif token.text in _CLOSE and token.kind == "mark":
            depth -= 1
        ended = token.text == ";" or (token.text == "}" and _is_function(pending))
        if depth <= 0 and token.kind == "mark" and ended:
            declarations.append(_declaration(text, pending, inside))
            pending, depth = [], 0
    if pending:
        declarations.append(_declaration(text, pending, inside))
    return sorted(declarations, key=lambda declaration: declaration.first)


def blank(text: str, declarations: Collection[Declaration]) -> str:
    """The text without these, every other line at its number; directives inside of them stay."""
    pieces, place = [], 0
    for declaration in sorted(declarations, key=lambda item: item.first):
        pieces.append(text[place : declaration.first])
        pieces.append(_blanked(text[declaration.first : declaration.end], declaration))
        place = declaration.end
    return "".join([*pieces, text[place:]])


def _blanked(inside: str, declaration: Declaration) -> str:
    if declaration.include:
        return f"// {inside.strip()}"
    kept = []
    for match in _TOKEN.finditer(inside):
        stays = match.lastgroup == "directive"
        kept.append(match[0] if stays else "\n" * match[0].count("\n"))
    return "".join(kept)


def _include(text: str, token: _Token) -> Iterator[Declaration]:
    if match := _INCLUDE.match(token.text):
        line = text.count("\n", 0, token.first) + 1
        yield Declaration(
            first=token.first,
            end=token.first + len(token.text),
            first_line=line,
            last_line=line,
            words=frozenset(),
            include=f"{match[1]}{match[2]}{'>' if match[1] == '<' else match[1]}",
        )


def _is_namespace(tokens: list[_Token]) -> bool:
    words = [token.text for token in tokens[:-1]]
    if "namespace" in words[:2]:
        return True
    return len(words) == 2 and words[0] == "extern" and tokens[1].kind == "string"


def _is_function(tokens: list[_Token]) -> bool:
    """Whether what ends with a brace is whole: a type and an initializer still want a semicolon."""
    level = angle = 0
    called = False
    before = ""
    for token in tokens:
        if token.text == "<" and (angle or before == "template"):
            angle += 1
        elif token.text == ">" and angle:
            angle -= 1
        elif angle:
            pass
        elif token.text in _OPEN and token.kind == "mark":
            if level == 0 and token.text == "{":
                return called
            called = called or token.text == "("
            level += 1
        elif token.text in _CLOSE and token.kind == "mark":
            level -= 1
        elif level == 0 and not called and (token.text in _TYPES or token.text == "="):
            return False
        before = token.text
    return called


def _name_of(tokens: list[_Token]) -> str:
    """Returns a namespace's name, as in `a::b`; empty for one without a name, and for extern
    "C"."""
    words = [token.text for token in tokens if token.kind == "word"]
    return "::".join(word for word in words if word not in ("namespace", "inline", "extern"))


def _declaration(text: str, tokens: list[_Token], inside: list[str]) -> Declaration:
    first, end = tokens[0].first, tokens[-1].first + len(tokens[-1].text)
    words = frozenset(token.text for token in tokens if token.kind == "word")
    name, parameters = _kernel(tokens) if "__global__" in words else ("", ())
    return Declaration(
        first=first,
        end=end,
        first_line=text.count("\n", 0, first) + 1,
        last_line=text.count("\n", 0, end) + 1,
        words=words,
        kernel=name,
        parameters=parameters,
        template=tokens[0].text == "template",
        namespace="::".join(filter(None, inside)) if name else "",
    )


def _kernel(tokens: list[_Token]) -> tuple[str, tuple[str, ...]]:
    """The name of a __global__ function and its parameters."""
    place = next(i for i, token in enumerate(tokens) if token.text == "__global__")
    while place + 1 < len(tokens):
        place += 1
        if tokens[place].text == "(" and tokens[place - 1].kind == "word":
            end = _closing(tokens, place)
            if not tokens[place - 1].text.startswith("__"):  # __launch_bounds__ and its like
                return tokens[place - 1].text, tuple(_split(tokens[place + 1 : end]))
            place = end
    return "", ()


def _closing(tokens: list[_Token], place: int) -> int:
    level = 0
    for index in range(place, len(tokens)):
        level += (tokens[index].text in _OPEN) - (tokens[index].text in _CLOSE)
        if level == 0:
            return index
    return len(tokens)


def _split(tokens: list[_Token]) -> Iterator[str]:
    """The texts between the commas of a parameter list."""
    level = 0
    part: list[str] = []
    for token in tokens:
        level += (token.text in (*_OPEN, "<")) - (token.text in (*_CLOSE, ">"))
        if token.text == "," and level == 0:
            yield _declared(part)
            part = []
        else:
            part.append(token.text)
    if part:
        yield _declared(part)


def _declared(parameter: list[str]) -> str:
    """The words of a parameter up to its default value."""
    return " ".join(itertools.takewhile(lambda word: word != "=", parameter))
