"""work() as it is drafted: what a launch must move and multiply."""

from __future__ import annotations

import pytest

from kernelexp import Work
from kernelexp.services.adopt import draft
from kernelexp.services.adopt.answers import Answers
from kernelexp.services.adopt.entry import KernelEntry, KernelParameter

SHAPES = {"a": ("M", "K"), "b": ("K", "N"), "v": ("K",), "c": ("M", "N")}
SIZE = {"M": 3, "N": 5, "K": 7}


def array(name: str, kind: str = "float", **use: bool) -> KernelParameter:
    return KernelParameter(name=name, type=kind, size=8, align=8, is_pointer=True, **use)


def drafted(
    reference: str,
    shapes: dict[str, tuple[str, ...]],
    out: KernelParameter | None = None,
) -> Work | None:
    sizes = [KernelParameter(name=n, type="int", size=4, align=4, is_pointer=False) for n in "MNK"]
    given = (array("a", "__half", read=True), array("b", read=True), array("v", read=True))
    entry = KernelEntry(
        symbol="k",
        signature="k",
        parameters=(*given, out or array("c", written=True), *sizes),
        threads=32,
        dynamic_smem=False,
    )
    text = draft.problem([entry], "k.cu", Answers(shapes=shapes, references={"c": reference}))
    names: dict[str, object] = {}
    if "def work" not in text:
        return None
    exec(
        f"from kernelexp import Work\n{text[text.index('def work') : text.index('def launch')]}",
        names,
    )
    function = names["work"]
    assert callable(function)
    result = function(SIZE)
    assert isinstance(result, Work)
    return result


MOVED = 2 * 3 * 7 + 4 * 7 * 5 + 4 * 7 + 4 * 3 * 5


@pytest.mark.parametrize(
    ("reference", "flops"),
    [
        ("a @ b", 2 * 3 * 5 * 7),
        ("torch.relu(2 * a @ b + c)", 2 * 3 * 5 * 7),
        ("torch.mm(a, b) + (b.T @ a.t()).T", 2 * 2 * 3 * 5 * 7),
        ("(a @ b) @ (b.T @ v)", 2 * (3 * 5 * 7 + 3 * 5 + 5 * 7)),
        ("torch.einsum('mk,kn->mn', a, b)", 2 * 3 * 5 * 7),
        ("(a @ v)[:, None] + b.sum(0)", 2 * 3 * 7),
        ("a.reshape(M, K) @ b", 0),
        ("a[:, :1] * b[:1]", 0),
    ],
)
def test_flops_are_those_of_products_whose_shapes_are_known(reference: str, flops: int) -> None:
    assert drafted(reference, SHAPES) == Work(flops=flops, bytes=MOVED)


def test_what_moves_is_not_known_without_every_shape() -> None:
    assert drafted("a @ b", {"a": ("M", "K")}) is None


def test_what_a_kernel_has_written_before_it_reads_it_need_not_be_loaded() -> None:
    """Its reference does without it; where that names it, what was there is an input."""
    out = array("c", read=True, written=True)
    moved = {"c": 4 * 3 * 5}
    for reference, extra in (("a @ b", 0), ("a @ b + c", moved["c"])):
        work = drafted(reference, SHAPES, out)
        assert work is not None
        assert work.bytes == MOVED + extra
