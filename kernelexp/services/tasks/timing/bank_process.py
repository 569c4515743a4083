"""The process that has a problem's reference while a solution is timed: it draws inputs, puts them
where the arms have their own, and compares answers, all on the device.

A command is a line of JSON, as is its answer; `fault` in it is why there is none.
"""

from __future__ import annotations

import contextlib
import json
import os
import random
import socket
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import msgspec

from kernelexp.services.tasks import formats, wire
from kernelexp.services.tasks.task import Task, Values
from kernelexp.services.tasks.timing import floor, shared
from kernelexp.services.tasks.timing.linked import receive, send
from kernelexp.system.disk import decode

PRELOAD = ("torch",)
HELD = 1024
"""Bytes of a tensor that an arm has only when its call begins: no call can be done before."""
HELD_TENSORS = 4
"""Of a set, at most: each takes 5 us of the clock of all arms."""
SHARE = 20
"""Of a card's memory, a turn's inputs and answers take one such part: the bank has them, and three
arms, whose answers are there twice."""
WITHOUT_GPU = 512 << 20
"""Bytes of a turn where there is no card."""


class BankOrder(msgspec.Struct, frozen=True, kw_only=True):
    """The order that starts the bank's process."""

    own: str
    given: str
    answers: str
    """Folders: of the problem, what arms read, what they write."""
    device: str
    socket: str = ""


class TimedCase(msgspec.Struct, frozen=True, kw_only=True):
    """A set of sizes that is timed."""

    calls: int
    """Of a turn, for which the memory is enough."""
    like: Any
    """The layout of an answer, and its bytes."""
    needed: floor.Moved


class DrawnSet(msgspec.Struct, frozen=True, kw_only=True):
    """Inputs of a call."""

    layout: tuple[Any, int]
    held: str
    """What is held back, as `at:bytes` in hexadecimals, each after a space."""


class _Held(msgspec.Struct, frozen=True, kw_only=True):
    """A part of a tensor that lies elsewhere until its call."""

    place: Any
    true: Any
    instead: Any
    at: int
    """Of the set's layout."""


class CheckedAnswer(msgspec.Struct, frozen=True, kw_only=True):
    """An answer that was looked at."""

    digest: int
    sentence: str
    """What is wrong with it; empty: nothing."""
    late: bool = False
    """Whether a part of it was another one when the next call began."""


class AnswerSample(msgspec.Struct, frozen=True, kw_only=True, array_like=True):
    """A part of the answer to a set when the next call began."""

    place: int
    number: int
    content: str


def main() -> None:
    """Runs the bank of a BankOrder, as JSON on standard input."""
    order = decode(sys.stdin.read(), BankOrder)
    link = socket.socket(socket.AF_UNIX)
    link.connect(order.socket)
    os.chdir(order.own)
    sys.path[0] = order.own
    try:
        bank = _Bank(order)
        send(link, json.dumps({}))
        while True:
            what, *arguments = json.loads(receive(link))
            send(link, json.dumps(getattr(bank, what)(*arguments)))
    except EOFError:
        pass
    except Exception as error:
        send(link, json.dumps({"fault": f"{type(error).__name__}: {error}"}))
    os._exit(0)


class _Bank:
    """Its commands are the methods."""

    def __init__(self, order: BankOrder) -> None:
        import torch

        if order.device == "cuda":
            torch.set_default_device("cuda")
            torch.cuda.current_stream().synchronize()
            torch.backends.cudnn.allow_tf32 = False
        else:
            torch.set_num_threads(1)
        self._order = order
        self._own = Path(order.own)
        self._task = decode((self._own / "task.json").read_bytes(), Task)
        self._form = formats.named(self._task.format)
        self._problem = self._form.open_problem(self._task, self._own)
        self._memory = shared.of(order.device, Path(order.answers))
        prepared = self._problem.preparation()
        for folder in (order.own, order.given):
            wire.write(Path(folder) / "prepared", prepared)
        self._case = self._cases[0]
        self._sets: list[Values] = []
        self._held: list[list[_Held]] = []
        self._random = random.SystemRandom()
        self._names: dict[str, set[str]] = {}
        self._reference = self._form.open_reference(
            self._task, self._own, wire.read(self._own / "prepared", order.device)
        )

    @property
    def _cases(self) -> Sequence[Any]:
        return self._task.timed or self._task.cases

    def begin(self, index: int, seed: int) -> Any:
        """Returns what is to be known of a case before it is timed."""
        import torch

        self._case, self._sets = self._cases[index], []
        arguments = self._problem.arguments(self._case, seed)
        with torch.no_grad():
            answer = self._reference(wire.copied(arguments))
            like = wire.layout(answer)
            del answer
            needed = floor.moved(self._reference, arguments, seed)
        calls = max(1, self._room() // (wire.layout(arguments)[1] + like[1]))
        del arguments
        self._tidy()
        return msgspec.to_builtins(TimedCase(calls=calls, like=like, needed=needed))

    def _room(self) -> int:
        """Bytes for a turn."""
        import torch

        cuda = self._order.device == "cuda"
        return int(torch.cuda.mem_get_info()[1]) // SHARE if cuda else WITHOUT_GPU

    def draw(self, index: int, seeds: list[int], held: list[int] | None) -> Any:
        """Replaces the sets of inputs by new ones, one for each seed; `held`: those of which a part
        of one tensor is held back; None: of all, and of several tensors."""
        import torch

        self._case, self._sets, self._held = self._cases[index], [], []
        self._tidy()
        self._sets = [self._problem.arguments(self._case, seed) for seed in seeds]
        layouts = [wire.layout(one) for one in self._sets]
        self._held = [
            self._hold_back(one, layouts[place][0], HELD_TENSORS if held is None else 1)
            if held is None or place in held
            else []
            for place, one in enumerate(self._sets)
        ]
        cut = [part for parts in self._held for part in parts]
        content = torch.cat([part.true for part in cut]).cpu().numpy().tobytes() if cut else b""
        result, begin = [], 0
        for layout, parts in zip(layouts, self._held, strict=True):
            words = ""
            for part in parts:
                end = begin + part.true.numel()
                words += f" {part.at}:{content[begin:end].hex()}"
                begin = end
            result.append(msgspec.to_builtins(DrawnSet(layout=layout, held=words)))
        return result

    def _hold_back(self, one: Values, tree: Any, most: int) -> list[_Held]:
        """Takes a part out of some of its tensors, and puts another part there."""
        tensors = wire.tensors(one)
        homes = [tensor.untyped_storage().data_ptr() for tensor in tensors]
        held = []
        for tensor, home, at in zip(tensors, homes, wire.places(tree), strict=True):
            memory = wire.memory(tensor) if homes.count(home) == 1 else None
            if memory is not None:
                held.append(self._part(memory, at))
        held = self._random.sample(held, min(len(held), most))
        for part in held:
            part.place.copy_(part.instead)
        return held

    def _part(self, memory: Any, at: int) -> _Held:
        count = min(HELD, memory.numel())
        first = 16 * self._random.randrange(1 + (memory.numel() - count) // 16)
        place = memory[first : first + count]
        other = first + count if first + 2 * count <= memory.numel() else first - count
        instead = memory[other : other + count].clone() if other >= 0 else place * 0
        return _Held(place=place, true=place.clone(), instead=instead, at=at + first)

    @contextlib.contextmanager
    def _whole(self, index: int) -> Iterator[Values]:
        """A set as a call has it."""
        for part in self._held[index]:
            part.place.copy_(part.true)
        yield self._sets[index]
        for part in self._held[index]:
            part.place.copy_(part.instead)

    def fill(self, arm: str, slots: list[tuple[str, int]]) -> Any:
        """Copies each set to where an arm has its own, but for what is held back."""
        try:
            self._fill(arm, slots)
        except ValueError as error:
            return {"refused": f"{error}."}
        return {"refused": ""}

    def _fill(self, arm: str, slots: list[tuple[str, int]]) -> None:
        known = self._names.setdefault(arm, set())
        for name in known - {name for name, _ in slots}:
            self._memory.release(name)
        known.clear()
        for one, (name, size) in zip(self._sets, slots, strict=True):
            known.add(name)
            tree, least = wire.layout(one)
            wire.fill(tree, self._memory.open(name, max(size, least)), one)
        self._wait()

    def check(
        self, places: list[int], tree: Any, name: str, size: int, encoded: list[list[Any]]
    ) -> Any:
        """Answers to sets: read once, into memory that the arm does not see."""
        try:
            answers = wire.copied(wire.views(tree, self._memory.open(name, size)))
            self._wait()
            self._memory.release(name)
            if type(answers) is not list or len(answers) != len(places):
                raise ValueError("there are more of them, or fewer, than were asked for")
        except (ValueError, KeyError, TypeError, RuntimeError) as error:
            words = f"the solution's answer can't be read: {error}."
            return msgspec.to_builtins([CheckedAnswer(digest=0, sentence=words)] * len(places))
        samples = msgspec.convert(encoded, list[AnswerSample])
        result = [
            self._checked(place, answer, [one for one in samples if one.place == place])
            for place, answer in zip(places, answers, strict=True)
        ]
        return msgspec.to_builtins(result)

    def _checked(self, place: int, answer: Any, samples: Sequence[AnswerSample]) -> CheckedAnswer:
        with self._whole(place) as arguments:
            sentence = self._disagreement(arguments, answer)
        late = any(shared.content(answer, s.number).hex() != s.content for s in samples)
        return CheckedAnswer(digest=wire.digest(answer), sentence=sentence, late=late)

    def _disagreement(self, arguments: Values, answer: Any) -> str:
        """Compares with the reference in float32; or as it is, whose convolutions have TF32 by
        default."""
        import torch

        expected = self._problem.expected(self._case, wire.copied(arguments))
        sentence = str(self._problem.compare(self._case, arguments, expected, answer))
        if sentence and self._order.device == "cuda":
            torch.backends.cudnn.allow_tf32 = True
            expected = self._problem.expected(self._case, wire.copied(arguments))
            if not self._problem.compare(self._case, arguments, expected, answer):
                sentence = ""
            torch.backends.cudnn.allow_tf32 = False
        return sentence

    def forget(self, arm: str) -> Any:
        """The arm has ended."""
        for name in self._names.pop(arm, set()):
            self._memory.release(name)
        return {}

    def _wait(self) -> None:
        import torch

        if self._order.device == "cuda":
            torch.cuda.synchronize()

    def _tidy(self) -> None:
        """Memory that is not used goes back to the GPU: the arms need it."""
        import torch

        if self._order.device == "cuda":
            torch.cuda.empty_cache()


if __name__ == "__main__":
    main()
