"""A driver for Triton's runtime that launches on the emulator; tensors lie in the CPU's memory.

It runs in the program's own Python, which need not have this package: it uses nothing but the
standard library, Triton, and the emulator's CUDA runtime, the `libcudart.so.13` that `exec` puts on
the library path. Triton compiles for the chosen card as it would with one; its PTX is executed.

Before a launch the storage of each of its tensors is copied to device memory of the same size, and
afterwards back: an index beyond a storage is out of bounds.

Triton promises no stability of this interface. Written for 3.4 to 3.9.
"""

from __future__ import annotations

import ctypes
import functools
import importlib
import importlib.util
import math
import os
import re
import struct
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

LIBRARY = "libcudart.so.13"
# cudaDeviceAttr.
_MAX_THREADS, _SMS, _MAJOR, _MINOR, _SMEM, _WARP, _REGISTERS = 1, 16, 75, 76, 97, 10, 12
_THREADS_OF_AN_SM = 39
_CLOCK, _MEMORY_CLOCK, _BUS = 13, 36, 37
_TO_DEVICE, _UNWRITTEN = 1, 1
_MAX_DYNAMIC_SMEM, _CLUSTER, _COOPERATIVE = 8, 4, 2
_FORMATS = {
    **{"i1": "b", "i8": "b", "i16": "h", "i32": "i", "i64": "q"},
    **{"u1": "B", "u8": "B", "u16": "H", "u32": "I", "u64": "Q"},
    **{"fp16": "e", "f16": "e", "fp32": "f", "f32": "f", "fp64": "d", "f64": "d"},
}
_MAP = 128
"""Bytes of a TMA descriptor."""
_ENTRY = re.compile(r"\.entry\s+([\w$]+)\s*\((.*?)\)", re.S)
_SIZES = {"8": 1, "16": 2, "32": 4, "64": 8}
_INLINE = re.compile(r"// begin inline asm\n.*?// end inline asm\n", re.S)
_LINE = re.compile(r"^\s*\.loc\s.*\n", re.M)
_THREADS = re.compile(r"\.(?:reqntid|maxntid)\s+(\d+)")


class _Attribute(ctypes.Structure):
    _fields_ = (("id", ctypes.c_int), ("pad", ctypes.c_int), ("value", ctypes.c_uint * 16))


class _Configuration(ctypes.Structure):
    _fields_ = (
        ("grid", ctypes.c_uint * 3),
        ("block", ctypes.c_uint * 3),
        ("shared", ctypes.c_size_t),
        ("stream", ctypes.c_void_p),
        ("attributes", ctypes.POINTER(_Attribute)),
        ("count", ctypes.c_uint),
    )


class _Wrapper(ctypes.Structure):
    """Of a fat binary, as a program registers it."""

    _fields_ = (
        ("magic", ctypes.c_uint32),
        ("version", ctypes.c_uint32),
        ("data", ctypes.c_char_p),
        ("linked", ctypes.c_void_p),
    )


class CudaError(RuntimeError):
    """What the runtime answered, by its name."""


class Runtime:
    """The emulator's CUDA runtime."""

    def __init__(self) -> None:
        self._library = ctypes.CDLL(LIBRARY)
        self._library.cudaGetErrorName.restype = ctypes.c_char_p
        self._register_image = self._library["__cudaRegisterFatBinary"]
        self._register_image.restype = ctypes.c_void_p
        self._call_from = self._library["__warpsim_call_from"]
        self._reach = self._library["__warpsim_reach"]
        self._reach.restype = ctypes.c_bool
        self._kept: list[Any] = []

    def call(self, name: str, *arguments: Any) -> None:
        error = getattr(self._library, name)(*arguments)
        if error:
            raise CudaError(f"{name}: {self._library.cudaGetErrorName(error).decode()}")

    def attribute(self, number: int) -> int:
        value = ctypes.c_int()
        self.call("cudaDeviceGetAttribute", ctypes.byref(value), number, 0)
        return value.value

    def device_name(self) -> str:
        name = ctypes.create_string_buffer(256)
        self._library.cuDeviceGetName(name, len(name), 0)
        return name.value.decode()

    def memory(self) -> int:
        """Bytes of the device."""
        free, total = ctypes.c_size_t(), ctypes.c_size_t()
        self.call("cudaMemGetInfo", ctypes.byref(free), ctypes.byref(total))
        return total.value

    def reach(self, address: int, size: int) -> tuple[int, int]:
        """Where bytes of device memory lie here, and what is known of each: 1 is unwritten."""
        octets, states = ctypes.c_void_p(), ctypes.c_void_p()
        places = ctypes.byref(octets), ctypes.byref(states)
        self._reach(ctypes.c_void_p(address), ctypes.c_uint64(size), b"a launch", *places)
        return octets.value or 0, states.value or 0

    def tensor_map(
        self,
        kind: int,
        address: int,
        sizes: Sequence[int],
        strides: Sequence[int],
        box: Sequence[int],
        swizzle: int,
        fill: int,
    ) -> bytes:
        """The 128 bytes of a TMA descriptor; dimensions are innermost first, strides in bytes."""
        rank = len(sizes)
        room = ctypes.create_string_buffer(2 * _MAP)
        place = -ctypes.addressof(room) % _MAP
        error = self._library.cuTensorMapEncodeTiled(
            ctypes.c_void_p(ctypes.addressof(room) + place),
            *(kind, rank, ctypes.c_void_p(address)),
            (ctypes.c_uint64 * rank)(*sizes),
            (ctypes.c_uint64 * rank)(*strides),
            (ctypes.c_uint32 * rank)(*box),
            (ctypes.c_uint32 * rank)(*[1] * rank),
            *(0, swizzle, 0, fill),
        )
        if error:
            raise CudaError(f"cuTensorMapEncodeTiled: error {error}")
        return room.raw[place : place + _MAP]

    def call_from(self, name: str = "launch") -> None:
        """Calls come from the innermost line of the program that is not Triton's, for findings."""
        frame = sys._getframe()
        while frame.f_back and _is_inside(frame.f_code.co_filename):
            frame = frame.f_back
        site = f"{frame.f_lineno} {name} {os.path.abspath(frame.f_code.co_filename)}"
        self._call_from(site.encode())

    def allocate(self, size: int) -> int:
        address = ctypes.c_void_p()
        self.call("cudaMalloc", ctypes.byref(address), ctypes.c_size_t(size))
        return address.value or 0

    def free(self, address: int) -> None:
        self.call("cudaFree", ctypes.c_void_p(address))

    def copy(self, to: int, source: int, size: int, kind: int) -> None:
        places = ctypes.c_void_p(to), ctypes.c_void_p(source)
        self.call("cudaMemcpy", *places, ctypes.c_size_t(size), kind)

    def register(self, ptx: str, entry: str) -> Any:
        """What stands for the kernel in launches."""
        text = ptx.encode() + b"\0"
        text += bytes(-len(text) % 8)
        head = struct.pack("<HHIQIIHHI8xQQQ", 1, 0x101, 64, len(text), 0, 0, 0, 0, 0, 0, 0, 0)
        data = struct.pack("<IHHQ", 0xBA55ED50, 1, 16, len(head) + len(text)) + head + text
        wrapper = _Wrapper(0x466243B1, 1, data, None)
        stub = ctypes.create_string_buffer(1)
        name = ctypes.c_char_p(entry.encode())
        self._kept += [data, wrapper, stub, name]
        module = ctypes.c_void_p(self._register_image(ctypes.byref(wrapper)))
        nothing = [ctypes.c_void_p()] * 5
        self._library["__cudaRegisterFunction"](module, stub, name, name, -1, *nothing)
        self._library["__cudaRegisterFatBinaryEnd"](module)
        return stub


class CompiledKernel:
    """A compiled kernel: what the runtime knows it by, its parameters' sizes, its block."""

    def __init__(self, runtime: Runtime, compiled: Any) -> None:
        ptx = _INLINE.sub(_on_one_line, compiled.asm["ptx"])
        match = _ENTRY.search(ptx)
        if match is None:
            raise RuntimeError(f"kernelexp exec: {compiled.name} has no PTX of a kernel.")
        self.stub = runtime.register(ptx, match[1])
        self.sizes = [_size(parameter) for parameter in match[2].split(",") if parameter.strip()]
        metadata = compiled.metadata
        threads = _THREADS.search(ptx[match.end() :])
        self.threads = int(threads[1]) if threads else 32 * metadata.num_warps
        self.shared = metadata.shared
        if self.shared:
            size = ctypes.c_int(self.shared)
            runtime.call("cudaFuncSetAttribute", self.stub, _MAX_DYNAMIC_SMEM, size)


def _on_one_line(assembly: re.Match[str]) -> str:
    """LLVM counts a line of the source for each line of inline assembly: the second is not the
    program's next one."""
    first, *rest = _LINE.split(assembly[0])
    line = _LINE.search(assembly[0])
    return first + (line[0] if line else "") + "".join(rest)


def _is_inside(file: str) -> bool:
    """Whether a file is this one or its neighbour, Triton's, PyTorch's, or compiled by these."""
    if file.startswith("<") or f"{os.sep}triton{os.sep}" in file or "torchinductor" in file:
        return True
    return os.path.dirname(file) == os.path.dirname(__file__) or file.startswith(_torch_folder())


@functools.cache
def _torch_folder() -> str:
    spec = importlib.util.find_spec("torch")
    return os.path.dirname(spec.origin) + os.sep if spec and spec.origin else "<"


def _size(parameter: str) -> int:
    """Bytes of a .param."""
    array = re.search(r"\.b8\s+[\w$]+\[(\d+)\]", parameter)
    if array:
        return int(array[1])
    plain = re.search(r"\.[a-z](\d+)\s", parameter)
    if plain is None or plain[1] not in _SIZES:
        raise RuntimeError(f"kernelexp exec: a parameter of an unknown size: {parameter.strip()}.")
    return _SIZES[plain[1]]


class _Copies:
    """The storages of a launch's tensors, in device memory while the block lasts."""

    def __init__(self, runtime: Runtime) -> None:
        self._runtime = runtime
        self._places: dict[int, tuple[int, int]] = {}
        """Of each storage by its address in the CPU's memory: its address there, and its size."""

    def __enter__(self) -> _Copies:
        return self

    def __exit__(self, error: object, *_: object) -> None:
        for start, (place, size) in self._places.items():
            if error is None:  # else the runtime answers every call with that error
                octets = self._runtime.reach(place, size)[0]
                ctypes.memmove(start, octets, size)
                self._runtime.free(place)

    def address(self, argument: Any, name: str) -> int:
        """Of a pointer argument, in device memory."""
        if argument is None:
            return 0
        if not hasattr(argument, "data_ptr"):
            return int(argument)
        address = int(argument.data_ptr())
        if not address:
            return 0
        if not hasattr(argument, "untyped_storage"):
            raise RuntimeError(
                f"kernelexp exec: {name}, a {type(argument).__name__}, has no storage to copy: "
                "pass a CPU tensor."
            )
        storage = argument.untyped_storage()
        start, size = int(storage.data_ptr()), int(storage.nbytes())
        if start not in self._places:
            self._runtime.call_from(f"storage:{name}")
            self._places[start] = place, _ = self._runtime.allocate(size), size
            self._runtime.copy(place, start, size, _TO_DEVICE)
            states = self._runtime.reach(place, size)[1]
            for first, last in _tensors().unwritten(argument):
                ctypes.memset(states + first, _UNWRITTEN, last - first)
        return self._places[start][0] + address - start


@functools.cache
def _tensors() -> Any:
    """cuda_tensors.py, which lies beside this file."""
    path = os.path.join(os.path.dirname(__file__), "cuda_tensors.py")
    spec = importlib.util.spec_from_file_location("_warpsim_cuda_tensors", path)
    assert spec
    assert spec.loader
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


class Launcher:
    """Launches one kernel, as often as Triton calls it."""

    def __init__(self, source: Any, metadata: Any) -> None:
        self._signature = {str(name): kind for name, kind in source.signature.items()}
        self._metadata = metadata

    def __call__(self, *launch: Any) -> None:
        """grid (x, y, z), stream, kernel, packed metadata, launch metadata, two hooks, and the
        arguments."""
        grid, kernel = launch[:3], launch[4]
        launch_metadata, enter, leave = launch[6:9]
        if enter:
            enter(launch_metadata)
        if 0 not in grid:
            self._launch(active().runtime, kernel, grid, launch[9:])
        if leave:
            leave(launch_metadata)

    def _launch(
        self,
        runtime: Runtime,
        kernel: CompiledKernel,
        grid: Sequence[int],
        arguments: Sequence[Any],
    ) -> None:
        with _Copies(runtime) as copies:
            maps = iter(getattr(self._metadata, "tensordesc_meta", None) or ())
            values = list(_values(self._signature.items(), arguments, copies, maps))
            runtime.call_from()
            scratch = list(self._scratch(runtime, grid))
            values += [struct.pack("<Q", address) for address in scratch]
            values = values[: len(kernel.sizes)]
            if [len(value) for value in values] != kernel.sizes:
                raise RuntimeError(
                    f"kernelexp exec: a kernel takes parameters of {kernel.sizes} bytes, and "
                    f"Triton gives it {[*map(len, values)]}: this version of Triton is not known."
                )
            self._execute(runtime, kernel, grid, values)
            for address in filter(None, scratch):
                runtime.free(address)

    def _scratch(self, runtime: Runtime, grid: Sequence[int]) -> Iterator[int]:
        """Memory that the compiler has asked for, for each CTA: global, then for profiles."""
        for name in ("global_scratch_size", "profile_scratch_size"):
            size = getattr(self._metadata, name, 0) or 0
            yield runtime.allocate(size * math.prod(grid) * self._ctas) if size else 0

    @property
    def _ctas(self) -> int:
        return getattr(self._metadata, "num_ctas", 1) or 1

    def _execute(
        self, runtime: Runtime, kernel: CompiledKernel, grid: Sequence[int], values: Sequence[bytes]
    ) -> None:
        attributes = []
        if self._ctas > 1:
            attributes.append(_Attribute(_CLUSTER, 0, (self._ctas, 1, 1)))
        if getattr(self._metadata, "launch_cooperative_grid", False):
            attributes.append(_Attribute(_COOPERATIVE, 0, (1,)))
        shape = (grid[0] * self._ctas, grid[1], grid[2])
        block = (kernel.threads, 1, 1)
        array = (_Attribute * len(attributes))(*attributes)
        launch = _Configuration(shape, block, kernel.shared, None, array, len(attributes))
        kept = [ctypes.create_string_buffer(value, len(value)) for value in values]
        places = (ctypes.c_void_p * len(kept))(*(ctypes.addressof(place) for place in kept))
        runtime.call("cudaLaunchKernelExC", ctypes.byref(launch), kernel.stub, places)
        runtime.call("cudaDeviceSynchronize")


def _values(
    signature: Iterable[tuple[str, Any]],
    arguments: Iterable[Any],
    copies: _Copies,
    maps: Iterator[Any],
) -> Iterator[bytes]:
    """The bytes of each parameter; `maps`: what the compiler says of each TMA descriptor."""
    for (name, kind), argument in zip(signature, arguments, strict=False):
        if isinstance(kind, tuple | list):
            yield from _values([(name, part) for part in kind], argument, copies, maps)
        elif kind.startswith("tensordesc"):
            yield from _descriptor(name, argument, copies, next(maps, None))
        elif kind.startswith("*"):
            yield struct.pack("<Q", copies.address(argument, name))
        elif kind == "bf16":
            yield struct.pack("<f", argument)[2:]
        elif kind in ("i1", "u1"):
            yield bytes([bool(argument)])
        elif kind.startswith("i") and argument >= 1 << (int(kind[1:]) - 1):
            yield struct.pack("<" + _FORMATS["u" + kind[1:]], argument)
        elif kind != "constexpr":
            yield struct.pack("<" + _FORMATS[kind], argument)


def _descriptor(name: str, given: Any, copies: _Copies, known: Any) -> Iterator[bytes]:
    """A TensorDescriptor's parameters: a map for TMA, or what stands for it on cards without TMA;
    shape and strides behind either."""
    address = copies.address(given.base, name)
    shape, strides = list(given.shape), list(given.strides)
    is_nan = given.padding == "nan" if hasattr(given, "padding") else False
    if known is None:
        yield struct.pack("<Q", address)
        yield from (struct.pack("<q", number) for number in (*shape, *strides))
        if hasattr(given, "padding"):
            yield bytes([is_nan])
        if hasattr(given, "round_f32_to_tf32"):
            yield bytes([given.round_f32_to_tf32])
    elif known.get("is_im2col"):
        raise RuntimeError(
            f"kernelexp exec: {name} is an im2col descriptor, which the emulator does not execute."
        )
    else:
        yield _map(given, address, known, is_nan=is_nan)
    yield from (struct.pack("<i", extent) for extent in shape)
    yield from (struct.pack("<q", stride) for stride in strides)


def _map(given: Any, address: int, known: Any, *, is_nan: bool) -> bytes:
    host = importlib.import_module("triton.backends.nvidia.driver")
    extents = list(given.shape)
    if known["fp4_padded"]:
        extents[-1] *= 2
    kind = host.TMA_DTYPE_DEVICE_TO_HOST[known["elem_type"]]
    if getattr(given, "round_f32_to_tf32", False):
        kind = host.TMA_TF32
    return active().runtime.tensor_map(
        kind,
        address,
        extents[::-1],
        [known["elem_size"] * stride for stride in given.strides[-2::-1]] or [0],
        list(known["block_size"])[::-1],
        known["swizzle"],
        int(is_nan),
    )


class _Utilities:
    """What Triton asks of `driver.active.utils`."""

    def __init__(self, runtime: Runtime) -> None:
        self._runtime = runtime

    def get_device_properties(self, _device: int) -> dict[str, int]:
        numbers = {
            "max_shared_mem": _SMEM,
            "multiprocessor_count": _SMS,
            "max_num_regs": _REGISTERS,
            "warpSize": _WARP,
            "sm_clock_rate": _CLOCK,
            "mem_clock_rate": _MEMORY_CLOCK,
            "mem_bus_width": _BUS,
        }
        return {name: self._runtime.attribute(number) for name, number in numbers.items()}

    def load_binary(
        self, name: str, _binary: bytes, _shared: int, _device: int
    ) -> tuple[Any, CompiledKernel, int, int, int]:
        """Module, kernel, registers and spills, which are not known, and threads of a block."""
        kernel = CompiledKernel(self._runtime, active().loading)
        return name, kernel, 0, 0, self._runtime.attribute(_MAX_THREADS)

    def unload_module(self, _module: Any) -> None:
        """Kernels live as long as the program."""

    def set_printf_fifo_size(self, _size: int) -> None:
        """printf is unbounded."""


class EmulatedDriver:
    """A DriverBase of Triton's."""

    launcher_cls = Launcher

    def __init__(self) -> None:
        self.loading: Any = None
        """The compiled kernel that is loaded just now: load_binary() is not given its PTX."""

    @functools.cached_property
    def runtime(self) -> Runtime:
        return Runtime()

    @functools.cached_property
    def utils(self) -> _Utilities:
        return _Utilities(self.runtime)

    @staticmethod
    def is_active() -> bool:
        return True

    def get_current_target(self) -> Any:
        compiler = importlib.import_module("triton.backends.compiler")
        arch = 10 * self.runtime.attribute(_MAJOR) + self.runtime.attribute(_MINOR)
        return compiler.GPUTarget("cuda", arch, 32)

    def get_current_device(self) -> int:
        return 0

    def set_current_device(self, _device: int) -> None:
        """There is one."""

    def get_current_stream(self, _device: int | None = None) -> int:
        return 0

    def get_active_torch_device(self) -> Any:
        import torch

        return torch.device("cpu")

    def get_device_interface(self) -> Any:
        return _Device

    def get_benchmarker(self) -> Callable[..., Any]:
        return run_once

    def get_empty_cache_for_benchmark(self) -> Any:
        import torch

        return torch.empty(1)

    def clear_cache(self, _cache: Any) -> None:
        """There is none."""

    def map_python_to_cpp_type(self, kind: str) -> str:
        return kind


class _Device:
    """Of torch's device modules, what Triton's helpers use."""

    @staticmethod
    def synchronize(_device: Any = None) -> None:
        """A launch has ended when it returns."""

    @staticmethod
    def current_device() -> int:
        return 0


def run_once(function: Callable[[], Any], *_: Any, quantiles: Any = None, **options: Any) -> Any:
    """In place of do_bench: not-a-number, as an emulated kernel takes no time of a GPU.

    Each configuration of an autotuner is executed, and the first one is chosen.
    """
    function()
    _say_no_time()
    if quantiles:
        return [math.nan] * len(quantiles)
    return [math.nan] if options.get("return_mode") == "all" else math.nan


@functools.cache
def _say_no_time() -> None:
    print(
        "note: Triton's benchmarks give not-a-number: an emulated kernel takes no time of a GPU.",
        file=sys.stderr,
    )


@functools.cache
def active() -> EmulatedDriver:
    return EmulatedDriver()


def activate(module: Any) -> None:
    """Makes the emulator the driver of triton.runtime.driver."""
    module.driver.set_active(active())
    module.driver._default = active()


def give_device(_torch: Any) -> None:
    """PyTorch's "cuda" device lies in the CPU's memory, for whoever has Triton."""
    if importlib.util.find_spec("triton"):
        _tensors().install(lambda: active().runtime)


def note_kernels(compiler: Any) -> None:
    """Has load_binary() know which of triton.compiler's kernels is loaded."""
    compiled = compiler.CompiledKernel
    load = compiled._init_handles

    def noting(self: Any) -> None:
        active().loading = self
        load(self)

    compiled._init_handles = noting


def take_clock(testing: Any) -> None:
    """Has the benchmarks of triton.testing say that there is no time."""
    for name in ("do_bench", "do_bench_cudagraph"):
        setattr(testing, name, run_once)


# ---- torch.compile: its kernels of CPU tensors are Triton's


def compile_to_triton(config: Any) -> None:
    """Of torch._inductor.config: in this process, as others have no emulator."""
    config.cpu_backend = "triton"
    config.compile_threads = 1
    if hasattr(config, "use_static_cuda_launcher"):
        config.use_static_cuda_launcher = False


def describe_card(hints: Any) -> None:
    """Has kernels compiled for the chosen card wherever their tensors lie."""

    def create(_device: Any) -> Any:
        runtime = active().runtime
        major, minor = runtime.attribute(_MAJOR), runtime.attribute(_MINOR)
        return hints.DeviceProperties(
            type="cuda",
            index=0,
            multi_processor_count=runtime.attribute(_SMS),
            cc=10 * major + minor,
            major=major,
            regs_per_multiprocessor=runtime.attribute(_REGISTERS),
            max_threads_per_multi_processor=runtime.attribute(_THREADS_OF_AN_SM),
            warp_size=runtime.attribute(_WARP),
        )

    hints.DeviceProperties.create = create


def load_on_cpu(heuristics: Any) -> None:
    """Has compiled kernels loaded and launched as those of CPU tensors."""
    of_cpu = importlib.import_module("torch._dynamo.device_interface").CpuInterface
    same = staticmethod(lambda _device: 0)
    names = ("exchange_device", "maybe_exchange_device", "set_device")
    interface = type("OneDevice", (of_cpu,), dict.fromkeys(names, same))

    def bench(_self: Any, *_args: Any, **_options: Any) -> float:
        _say_no_time()
        return math.nan  # and the first configuration is taken

    heuristics.CachingAutotuner.get_device_interface = lambda _self: interface
    heuristics.CachingAutotuner.bench = bench


def keep_driver(helpers: Any) -> None:
    """Of torch._inductor.runtime.triton_helpers, which would choose another one."""
    helpers.set_driver_to_gpu = helpers.set_driver_to_cpu = lambda: None


def have_triton(utilities: Any) -> None:
    """Of torch.utils._triton: Triton has no backend of its own for the CPU."""
    utilities.has_triton = lambda: True
