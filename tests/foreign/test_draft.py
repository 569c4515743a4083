"""problem.py as it is drafted from what an entry's PTX and signature say."""

from __future__ import annotations

from kernelexp.foreign import draft
from kernelexp.foreign.draft import Answers
from kernelexp.foreign.entry import Entry, Parameter


def pointer(name: str, kind: str, **use: bool) -> Parameter:
    return Parameter(name=name, type=kind, size=8, align=8, is_pointer=True, **use)


def value(name: str, kind: str, size: int) -> Parameter:
    return Parameter(name=name, type=kind, size=size, align=size, is_pointer=False)


def drafted(*parameters: Parameter, **answers: object) -> str:
    entry = Entry(symbol="k", signature="k", parameters=parameters, threads=32, dynamic_smem=False)
    return draft.problem(entry, "k", "k.cu", Answers(block=(32, 1, 1), **answers))


def test_an_array_that_is_read_and_written_is_an_input_and_an_output() -> None:
    text = drafted(
        pointer("x", "float", read=True),
        pointer("c", "double", read=True, written=True),
        pointer("d", "short", written=True),
        value("n", "int", 4),
        shapes={"c": ("n",)},
        references={"c": "x + c"},
    )
    assert '"c": Array(shape=(size["n"],), dtype="f64")' in text
    assert '"c": torch.randn((size["n"],), generator=generator, device=device).to(' in text
    assert '    c = inputs["c"].double()\n    yield Chunk(array="c"' in text
    assert text.count('"x":') == 1
    assert text.count('"d":') == 1


def test_a_workspace_starts_as_zero_and_is_no_result() -> None:
    text = drafted(
        pointer("y", "float", written=True),
        pointer("tickets", "unsigned int", read=True, written=True),
        shapes={"tickets": ("1",)},
        workspaces=("tickets",),
    )
    assert '"tickets": Array(shape=(1,), dtype="u32", zero=True)' in text
    assert text.count('"tickets":') == 1
    assert 'Chunk(array="tickets"' not in text


def test_scalars_of_one_and_two_bytes_are_drafted() -> None:
    text = drafted(
        pointer("y", "float", written=True),
        *(value("up", "bool", 1), value("half", "__half", 2), value("rows", "short", 2)),
        values={"up": 1, "half": 0.5},
    )
    assert 'Scalar(type="bool", value=True)' in text
    assert 'Scalar(type="f16", value=0.5)' in text
    assert 'Scalar(type="s16", value=size["rows"])' in text


def test_a_structure_and_a_tensor_map_are_blank() -> None:
    text = drafted(
        pointer("y", "float", written=True),
        *(value("p", "Params", 24), value("map", "CUtensorMap_st", 128)),
    )
    what = [words for _, words in draft.blanks(text)]
    assert "Params p: 24 bytes, a ctypes.Structure or a NumPy record" in what
    assert "a kernelexp.launch.TensorMap for map" in what
    assert "import Launch, Pointer, Struct" in text
