"""A run of tokens, read from the front."""

from __future__ import annotations

from warpsim.front.ptx.faults import PtxSyntaxError
from warpsim.front.ptx.tokens import Tokens

_AHEAD = 2
"""As far as anybody peeks."""


class Stream:
    """Tokens and a place among them."""

    def __init__(self, tokens: Tokens) -> None:
        self.texts = [*tokens.texts, *[""] * (_AHEAD + 1)]
        self.lines = tokens.lines
        self.at = 0

    def peek(self, ahead: int = 0) -> str:
        return self.texts[self.at + ahead]

    def line(self) -> int:
        return self.lines[min(self.at, len(self.lines) - 1)] if self.lines else 0

    def take(self) -> str:
        text = self.texts[self.at]
        if not text:
            raise PtxSyntaxError(f"PTX line {self.line()}: the text ends too early.")
        self.at += 1
        return text

    def expect(self, text: str) -> None:
        if self.peek() != text:
            raise self.fault(f"expected {text!r}, found {self.peek()!r}")
        self.at += 1

    def accept(self, text: str) -> bool:
        if self.texts[self.at] == text:
            self.at += 1
            return True
        return False

    def fault(self, sentence: str) -> PtxSyntaxError:
        return PtxSyntaxError(f"PTX line {self.line()}: {sentence}.")

    def integer(self) -> int:
        negative = self.accept("-")
        text = self.take().rstrip("U")
        try:
            octal = text[0] == "0" and text.isdigit()
            value = int(text, 8 if octal else 0)
        except ValueError:
            raise self.fault(f"expected an integer, found {text!r}") from None
        return -value if negative else value

    def skip_braces(self) -> None:
        while self.take() != "{":
            pass
        depth = 1
        while depth:
            word = self.take()
            depth += (word == "{") - (word == "}")

    def skip_to_semicolon(self) -> None:
        while self.take() != ";":
            pass
