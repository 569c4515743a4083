"""What is refused before anything is executed."""

from __future__ import annotations

import pytest

from kernelexp.services.tasks import rules
from kernelexp.services.tasks.task import Solution

GOOD = "import torch\n\ndef custom_kernel(data):\n    return data[0]\n"
PATCHES = {
    "torch.cuda.Event.elapsed_time": "torch.cuda.Event.elapsed_time = lambda *_: 0.0",
    "time.perf_counter": "import time as clock\nclock.perf_counter = lambda: 0.0",
    "torch.allclose": "from torch import cuda\ntorch.allclose = lambda *_, **__: True",
    "torch.cuda": "setattr(torch.cuda, 'synchronize', print)",
    "torch.cuda.Event.record": "from torch.cuda import Event\nEvent.record = print",
}


def names(text: str, main: str = "submission.py") -> list[str]:
    solution = Solution(name="s", files={main: text}, main=main, entry="custom_kernel")
    return [fault.name for fault in rules.faults(solution)]


def test_an_honest_text_has_no_fault() -> None:
    assert names(GOOD) == []


def test_settings_of_torch_are_the_solutions_own() -> None:
    assert names(GOOD + "torch.backends.cuda.matmul.allow_tf32 = False\n") == []


@pytest.mark.parametrize("name", PATCHES)
def test_what_replaces_a_member_of_a_module_is_refused_by_line(name: str) -> None:
    solution = Solution(
        name="s",
        files={"submission.py": GOOD + PATCHES[name]},
        main="submission.py",
        entry="custom_kernel",
    )
    (fault,) = rules.faults(solution)
    assert fault.sentence == f"it replaces {name}."
    assert fault.line >= 5


def test_a_text_without_its_entry_is_refused() -> None:
    assert names("def kernel(data):\n    return data\n") == ["no_entry"]


def test_a_text_that_is_no_python_is_refused() -> None:
    assert names("def custom_kernel(data) return data") == ["syntax"]


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("import cutlass.cute as cute", "the CuTe DSL"),
        ("from cutlass import cute", "the CuTe DSL"),
        ("import tilelang", "TileLang"),
        ("import cuda.tile as ct", "cuTile"),
        ("import cuda.bindings.driver as driver", ""),
        ("import triton", ""),
    ],
)
def test_languages_that_need_a_driver_are_refused_in_a_sentence(line: str, words: str) -> None:
    files = {"submission.py": f"{line}\n{GOOD}"}
    solution = Solution(name="s", files=files, main="submission.py", entry="custom_kernel")
    sentence = rules.unexecuted(solution)
    assert sentence == (
        words and f"submission.py is written in {words}, which is not executed: it needs a driver."
    )
