"""The right outputs for one set of inputs: kept where they fit, computed again where not."""

from __future__ import annotations

from collections.abc import Iterable

from kernelexp.model.problem import Chunk


class Reference:
    """Chunks that were computed before a launch; None where they take more than `keep_bytes`."""

    def __init__(self, chunks: Iterable[Chunk], keep_bytes: int) -> None:
        self.chunks: list[Chunk] | None = []
        held = 0
        for chunk in chunks:
            held += chunk.values.numel() * chunk.values.element_size()
            if held > keep_bytes:
                self.chunks = None
                break
            self.chunks.append(chunk)
