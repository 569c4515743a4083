"""Launches a cubin's entry on torch tensors, through the CUDA driver.

cuda.bindings rather than cuda.core: a launch here may need a cluster, opted-in shared memory and a
TMA descriptor by value at once, and the driver's own calls take all three in every 12.9 and 13.x.
"""

from __future__ import annotations

import ctypes
import math
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from kernelexp.model.errors import ConfigurationError, EnvironmentFault
from warpsim.launch import TENSOR_MAP_BYTES, Argument, Dim3, Launch, TensorMap, to_bytes

if TYPE_CHECKING:
    import torch

ELEMENTS = {
    "u8": "UINT8",
    "u16": "UINT16",
    "u32": "UINT32",
    "s32": "INT32",
    "f16": "FLOAT16",
    "bf16": "BFLOAT16",
    "f32": "FLOAT32",
    "f64": "FLOAT64",
    "u4x16": "16U4_ALIGN8B",
    "u4x16_p64": "16U4_ALIGN16B",
    "u6x16_p32": "16U6_ALIGN16B",
}
# The most dynamic shared memory that a kernel gets without asking (CUDA Programming Guide 13.0).
SMEM_WITHOUT_OPT_IN = 48 * 1024
PORTABLE_CLUSTER = 8


class DriverError(Exception):
    """The CUDA driver refused or failed; its own words."""


def driver() -> Any:
    """cuda.bindings' driver module; EnvironmentFault where it is not installed."""
    try:
        from cuda.bindings import driver as module
    except ImportError:
        raise EnvironmentFault(
            "launching needs the CUDA driver's Python binding: pip install cuda-bindings."
        ) from None
    return module


def check(result: tuple[Any, ...]) -> Any:
    """The value of a driver call, or DriverError with the name and the sentence of its error."""
    error, *values = result
    if int(error) != 0:
        cu = driver()
        name, text = cu.cuGetErrorName(error)[1], cu.cuGetErrorString(error)[1]
        raise DriverError(f"{name.decode()}: {text.decode()}")
    return values[0] if len(values) == 1 else values


class LoadedKernel:
    """The entries of a cubin that a job launches, loaded into torch's context; a module of its own
    each time."""

    def __init__(self, cubin: Path, launches: Sequence[Launch]) -> None:
        self._launches = tuple(launches)
        self._module = check(driver().cuModuleLoadData(cubin.read_bytes()))
        self._functions = [self._function(cubin, launch) for launch in launches]

    def _function(self, cubin: Path, launch: Launch) -> Any:
        cu = driver()
        status_and_function = cu.cuModuleGetFunction(self._module, launch.entry.encode())
        if status_and_function[0] == cu.CUresult.CUDA_ERROR_NOT_FOUND:
            raise ConfigurationError(
                f"problem.py: launch() names the entry {launch.entry!r}, which {cubin} does not "
                "have."
            )
        function = check(status_and_function)
        allow(cu, function, launch.dynamic_smem_bytes, launch.cluster)
        return function

    def unload(self) -> None:
        """Gives the module's memory back; its launches must have ended."""
        check(driver().cuModuleUnload(self._module))

    def bind(self, arrays: Mapping[str, torch.Tensor]) -> Callable[[int], None]:
        """The launches on these arrays (by the names in their arguments), ready to be repeated:
        calling it enqueues them on the stream with that handle."""
        bound = [
            Bound(function, launch, arrays)
            for function, launch in zip(self._functions, self._launches, strict=True)
        ]
        if len(bound) == 1:
            return bound[0]

        def enqueue(stream: int) -> None:
            for call in bound:
                call(stream)

        return enqueue


class Bound:
    """A launch with its arguments in place: calling it enqueues it on a stream."""

    def __init__(self, function: Any, launch: Launch, arrays: Mapping[str, torch.Tensor]) -> None:
        self._cu = driver()
        self._function = function
        self._arrays = dict(arrays)  # kept alive: the arguments are bare addresses
        self._maps: list[torch.Tensor] = []
        self._values = [encode(argument, arrays, self._maps) for argument in launch.arguments]
        count = max(1, len(self._values))
        self._pointers = (ctypes.c_void_p * count)(*map(ctypes.addressof, self._values))
        self._config = config(
            self._cu, launch.grid, launch.block, launch.dynamic_smem_bytes, launch.cluster
        )

    def __call__(self, stream: int) -> None:
        self._config.hStream = self._cu.CUstream(stream)
        error = self._cu.cuLaunchKernelEx(
            self._config, self._function, ctypes.addressof(self._pointers), 0
        )
        check(error)


def allow(cu: Any, function: Any, smem_bytes: int, cluster: Dim3) -> None:
    """Opts a function in to what a launch of it needs to be allowed."""
    attribute = cu.CUfunction_attribute
    if smem_bytes > SMEM_WITHOUT_OPT_IN:
        limit = attribute.CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES
        check(cu.cuFuncSetAttribute(function, limit, smem_bytes))
    if math.prod(cluster) > PORTABLE_CLUSTER:
        wide = attribute.CU_FUNC_ATTRIBUTE_NON_PORTABLE_CLUSTER_SIZE_ALLOWED
        check(cu.cuFuncSetAttribute(function, wide, 1))


def config(
    cu: Any, grid: Dim3, block: Dim3, smem_bytes: int, cluster: Dim3, cooperative: bool = False
) -> Any:
    """A launch's CUlaunchConfig."""
    whole = cu.CUlaunchConfig()
    whole.gridDimX, whole.gridDimY, whole.gridDimZ = grid
    whole.blockDimX, whole.blockDimY, whole.blockDimZ = block
    whole.sharedMemBytes = smem_bytes
    attributes = []
    # A kernel with __cluster_dims__ refuses the attribute 1x1x1, so a plain launch carries none.
    if cluster != (1, 1, 1):
        value = cu.CUlaunchAttributeValue()
        value.clusterDim.x, value.clusterDim.y, value.clusterDim.z = cluster
        kind = cu.CUlaunchAttributeID.CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION
        attributes.append(_attribute(cu, kind, value))
    if cooperative:
        value = cu.CUlaunchAttributeValue()
        value.cooperative = 1
        kind = cu.CUlaunchAttributeID.CU_LAUNCH_ATTRIBUTE_COOPERATIVE
        attributes.append(_attribute(cu, kind, value))
    whole.attrs = attributes
    whole.numAttrs = len(attributes)
    return whole


def _attribute(cu: Any, kind: Any, value: Any) -> Any:
    attribute = cu.CUlaunchAttribute()
    attribute.id = kind
    attribute.value = value
    return attribute


def encode(argument: Argument, arrays: Mapping[str, torch.Tensor], maps: list[torch.Tensor]) -> Any:
    """An argument as the bytes that the driver copies into the kernel's parameters; `maps` gets the
    tensor maps in memory that it points to."""

    def encoded(map_: TensorMap) -> bytes:
        data = bytes(encode_tensor_map(map_, _address(arrays, map_.array)))
        if not map_.in_memory:
            return data
        import torch

        maps.append(torch.frombuffer(bytearray(data), dtype=torch.uint8).cuda())
        return int(maps[-1].data_ptr()).to_bytes(8, "little")

    data = to_bytes(argument, lambda name: _address(arrays, name), encoded)
    return (ctypes.c_uint8 * len(data)).from_buffer_copy(data)


def _address(arrays: Mapping[str, torch.Tensor], name: str) -> int:
    if name not in arrays:
        raise ConfigurationError(
            f"problem.py: launch() names the array {name!r}; there are {', '.join(arrays)}."
        )
    return int(arrays[name].data_ptr())


def encode_tensor_map(map_: TensorMap, address: int) -> Any:
    """The 128 bytes of a CUtensorMap over the array at `address`, as the driver encodes it."""
    cu = driver()
    swizzle = "NONE" if map_.swizzle == "none" else map_.swizzle
    encoded = check(
        cu.cuTensorMapEncodeTiled(
            getattr(cu.CUtensorMapDataType, f"CU_TENSOR_MAP_DATA_TYPE_{ELEMENTS[map_.element]}"),
            len(map_.shape),
            address,
            [cu.cuuint64_t(extent) for extent in map_.shape],
            [cu.cuuint64_t(stride) for stride in map_.strides_bytes],
            [cu.cuuint32_t(extent) for extent in map_.box],
            [cu.cuuint32_t(1) for _ in map_.shape],
            cu.CUtensorMapInterleave.CU_TENSOR_MAP_INTERLEAVE_NONE,
            getattr(cu.CUtensorMapSwizzle, f"CU_TENSOR_MAP_SWIZZLE_{swizzle}"),
            cu.CUtensorMapL2promotion.CU_TENSOR_MAP_L2_PROMOTION_L2_128B,
            cu.CUtensorMapFloatOOBfill.CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE,
        )
    )
    raw = (ctypes.c_uint8 * TENSOR_MAP_BYTES)()
    ctypes.memmove(raw, int(encoded.getPtr()), TENSOR_MAP_BYTES)
    return raw
