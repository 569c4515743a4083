"""The arrays of a problem on the GPU: sets of inputs to rotate over, outputs between guards."""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import TYPE_CHECKING, TypeAlias

import msgspec

from kernelexp.evidence.measure.tensors import (
    POISON,
    as_bytes,
    check_names,
    draw_again,
    fingerprint,
    is_integral,
    torch_dtype,
)
from kernelexp.model.problem import Array, Axes, Problem, Size

if TYPE_CHECKING:
    import torch

_Named: TypeAlias = "tuple[str, torch.Tensor]"
GUARD_BYTES = 64 * 1024
GUARD_BYTE = 0xA5
# Four 2 MB pages: what an address decides lies below that (sectors, L2 slices, pages).
SLACK_BYTES = 8 << 20
ALIGNMENT = 256  # what torch and cudaMalloc promise


class Output:
    """One array that a kernel writes, with a guard before and behind it.

    `start` is what it holds before a launch, where it is read and written.
    """

    def __init__(self, array: Array, start: torch.Tensor | None = None) -> None:
        import torch

        dtype = torch_dtype(array.dtype)
        count = 1
        for extent in array.shape:
            count *= extent
        size = count * dtype.itemsize
        self._raw = torch.empty(size + 2 * GUARD_BYTES, dtype=torch.uint8, device="cuda")
        self._guards = (self._raw[:GUARD_BYTES], self._raw[GUARD_BYTES + size :])
        self._bytes = self._raw[GUARD_BYTES : GUARD_BYTES + size]
        self.tensor = self._bytes.view(dtype).view(array.shape)
        self._integral = is_integral(dtype)
        self._zero, self._start = array.zero, start
        for guard in self._guards:
            guard.fill_(GUARD_BYTE)

    def reset(self, byte: int) -> None:
        """Makes it what it is before a launch: its start, zero, or else poison. Of that `byte` is
        for integers; floating-point arrays become NaN."""
        if self._start is not None:
            self.tensor.copy_(self._start)
        else:
            self._bytes.fill_(0 if self._zero else byte if self._integral else POISON)

    def guards_intact(self) -> bool:
        return all(bool((guard == GUARD_BYTE).all()) for guard in self._guards)


class InputSet:
    """One set of inputs as each arm wants them, and the outputs that all arms share.

    Arms share the workspaces of one name, shape and type too.

    Sharing is on purpose: on an H200, one kernel reading 200 MB at two addresses differed from
    itself by 0.2 to 0.3%, by the same amount in every process (docs/verdicts.md). Arms whose
    `arrange` gives the same tensor share that too; what they can't share is moved about at random.

    What a launch read and wrote is checked in check rounds, each on new random values at the same
    addresses. Found out are then: a result that was kept, elements that were not written (poison,
    and another byte each time for integers), inputs that were changed in any way (fingerprint),
    writes up to 64 KB beyond an output (guards). Not found out is a kernel that between check
    rounds recognizes its inputs by their content, as timed launches see the same values again;
    one that writes further off; one that searches the GPU's memory for the reference.
    """

    poison_byte = POISON
    """What integer outputs were last filled with."""

    def __init__(
        self,
        problem: Problem,
        size: Size,
        arms: Mapping[str, Axes],
        seed: int,
        workspaces: Mapping[str, Mapping[str, Array]] = MappingProxyType({}),
    ) -> None:
        """`workspaces` by arm and name."""
        self._problem, self._size, self._arms = problem, size, dict(arms)
        self.inputs: dict[str, torch.Tensor] = dict(problem.inputs(size, seed, "cuda"))
        outputs = problem.outputs(size)
        self.outputs = {name: Output(x, self.inputs.get(name)) for name, x in outputs.items()}
        self._workspaces = _share(workspaces)
        self._arranged: dict[str, dict[str, torch.Tensor]] = {}
        kept: list[torch.Tensor] = list(self.inputs.values())
        for arm, axes in self._arms.items():
            arrays = {}
            given = self._arrange(axes)
            check_names(problem, self.inputs, given, outputs, workspaces.get(arm, {}))
            for name, tensor in self._without_outputs(given):
                arrays[name] = _same_as_one_of(kept, tensor)
                kept.append(arrays[name])
            self._arranged[arm] = arrays

    def _arrange(self, axes: Axes) -> Mapping[str, torch.Tensor]:
        return self._problem.arrange(self.inputs, axes)

    def _without_outputs(self, given: Mapping[str, torch.Tensor]) -> Iterator[_Named]:
        """Yields inputs without what is read and written: of that the arms get the output."""
        return ((name, tensor) for name, tensor in given.items() if name not in self.outputs)

    def for_peers(self) -> dict[str, torch.Tensor]:
        """The inputs, with copies of those that a kernel writes: peers may do so too."""
        return {
            name: tensor.clone() if name in self.outputs else tensor
            for name, tensor in self.inputs.items()
        }

    def written(self, arm: str) -> dict[str, Output]:
        """Returns what a launch of this arm may write: the outputs and its workspaces."""
        return {**self.outputs, **self._workspaces.get(arm, {})}

    def arrays(self, arm: str) -> dict[str, torch.Tensor]:
        """Every array that this arm's launch may name."""
        written = {name: output.tensor for name, output in self.written(arm).items()}
        return {**self._arranged[arm], **written}

    def require_seeded(self, seed: int) -> None:
        """ConfigurationError where drawing with the seed of this set gives other values."""
        draw_again(self._problem, self._size, seed, "cuda", self.inputs)

    def refresh(self, seed: int) -> None:
        """Other random values at the same addresses: a kernel that kept its result is now wrong."""
        for name, tensor in self._problem.inputs(self._size, seed, "cuda").items():
            self.inputs[name].copy_(tensor)
        fresh = {id(tensor) for tensor in self.inputs.values()}
        for arm, axes in self._arms.items():
            for name, tensor in self._without_outputs(self._arrange(axes)):
                held = self._arranged[arm][name]
                if id(held) not in fresh:
                    held.copy_(tensor)
                    fresh.add(id(held))

    def move(self, rng: random.Random) -> None:
        """Puts every tensor that only some arms read at a random place of its own."""
        held = {id(t): t for arrays in self._arranged.values() for t in arrays.values()}
        places = {id(tensor): tensor for tensor in self.inputs.values()}
        for key in rng.sample(
            sorted(held.keys() - places.keys()), len(held.keys() - places.keys())
        ):
            places[key] = _elsewhere(held[key], rng)
        for arrays in self._arranged.values():
            for name, tensor in arrays.items():
                arrays[name] = places[id(tensor)]

    def reset(self, byte: int) -> None:
        """Makes all that a launch may write what it is before one; `byte` is integers' poison."""
        self.poison_byte = byte
        for output in self._all_written():
            output.reset(byte)

    def _all_written(self) -> list[Output]:
        shared = {id(x): x for own in self._workspaces.values() for x in own.values()}
        return [*self.outputs.values(), *shared.values()]

    def fingerprint(self, arm: str) -> tuple[int, ...]:
        """Fingerprints the arrays that this arm reads: an arm that writes there changes it."""
        return tuple(fingerprint(tensor) for tensor in self._arranged[arm].values())

    def bytes(self) -> int:
        """Device memory that a launch touches at most."""
        held = {id(t): t for arm in self._arranged.values() for t in arm.values()}
        tensors = [*held.values(), *(output.tensor for output in self._all_written())]
        return sum(tensor.numel() * tensor.element_size() for tensor in tensors)


def _share(wanted: Mapping[str, Mapping[str, Array]]) -> dict[str, dict[str, Output]]:
    """Workspaces by arm and name, the same one for arms that ask for the same."""
    placed: dict[tuple[str, Array], Output] = {}
    shared: dict[str, dict[str, Output]] = {}
    for arm, arrays in wanted.items():
        for name, array in arrays.items():
            if (name, array) not in placed:
                placed[name, array] = Output(array)
            shared.setdefault(arm, {})[name] = placed[name, array]
    return shared


def _elsewhere(tensor: torch.Tensor, rng: random.Random) -> torch.Tensor:
    """A contiguous copy at a random multiple of 256 bytes behind the start of an allocation."""
    import torch

    size = tensor.numel() * tensor.element_size()
    raw = torch.empty(size + SLACK_BYTES, dtype=torch.uint8, device=tensor.device)
    first = rng.randrange(SLACK_BYTES // ALIGNMENT) * ALIGNMENT
    home = raw[first : first + size].view(tensor.dtype).view(tensor.shape)
    return home.copy_(tensor)


def _same_as_one_of(kept: Sequence[torch.Tensor], tensor: torch.Tensor) -> torch.Tensor:
    for other in kept:
        if other.data_ptr() == tensor.data_ptr() and other.shape == tensor.shape:
            return other
        alike = other.shape == tensor.shape and other.dtype == tensor.dtype
        if alike and other.stride() == tensor.stride() and _equal(other, tensor):
            return other
    return tensor


def _equal(one: torch.Tensor, other: torch.Tensor) -> bool:
    import torch

    return one.is_contiguous() and bool(torch.equal(as_bytes(one), as_bytes(other)))


class Flush:
    """Empties the L2 of what the next launch will read.

    By reading twice the L2's size: lines that were read are clean, while lines that a memset wrote
    would be written back at the timed launch's cost.
    """

    def __init__(self) -> None:
        import torch

        l2_bytes = torch.cuda.get_device_properties(0).L2_cache_size
        self._buffer = torch.ones(max(2 * l2_bytes, 1 << 20) // 4, device="cuda")
        self._sum = torch.empty((), device="cuda")

    def __call__(self) -> None:
        import torch

        torch.sum(self._buffer, dim=0, out=self._sum)


class Arrangement(msgspec.Struct, frozen=True, kw_only=True):
    """The number of sets that the launches rotate over, and of launches that one sample times."""

    sets: int
    launches_per_sample: int


# A sample of a kernel this short is a CUDA graph of many launches: the two events around one launch
# cost 1 to 2 us, and their ticks 0.5 us.
GRAPH_BELOW_US = 50.0
GRAPH_TARGET_US = 500.0
GRAPH_SETS_MAX = 64
SETS_OF_A_LAUNCH = 2


def choose(time_us: float, set_bytes: int, free_bytes: int, hot: bool) -> Arrangement:
    """Sets and launches per sample for a kernel of `time_us` whose arrays take `set_bytes`.

    In a graph each set is visited once: no launch finds its data in the L2 or its output done.
    """
    affordable = max(1, int(free_bytes * 0.4) // max(1, set_bytes))
    if hot or time_us >= GRAPH_BELOW_US:
        return Arrangement(sets=min(SETS_OF_A_LAUNCH, affordable), launches_per_sample=1)
    wanted = min(GRAPH_SETS_MAX, max(2, round(GRAPH_TARGET_US / max(time_us, 1.0))))
    sets = min(wanted, affordable)
    return Arrangement(sets=sets, launches_per_sample=sets)
