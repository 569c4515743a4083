"""Runs a Launch on an NVIDIA GPU through the driver's C interface, with no package but NumPy."""

from __future__ import annotations

import ctypes

import numpy as np

from warpsim.launch import Launch, Pointer, Scalar, TensorMap

_ELEMENTS = {"u8": 0, "u16": 1, "u32": 2, "s32": 3, "f16": 6, "f32": 7, "f64": 8, "bf16": 9}
_SWIZZLES = {"none": 0, "32B": 1, "64B": 2, "128B": 3}
_SCALARS = {
    "u32": ctypes.c_uint32, "s32": ctypes.c_int32, "u64": ctypes.c_uint64,
    "s64": ctypes.c_int64, "f32": ctypes.c_float, "f64": ctypes.c_double,
}  # fmt: skip
_MAX_DYNAMIC_SHARED = 8  # CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES
_CLUSTER_DIMENSION = 4  # CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION


class Attribute(ctypes.Structure):
    """CUlaunchAttribute: an id, then a union of 64 bytes."""

    _fields_ = (("id", ctypes.c_int), ("pad", ctypes.c_int), ("value", ctypes.c_uint32 * 16))


class Configuration(ctypes.Structure):
    """CUlaunchConfig."""

    _fields_ = (
        ("grid", ctypes.c_uint32 * 3),
        ("block", ctypes.c_uint32 * 3),
        ("shared_bytes", ctypes.c_uint32),
        ("stream", ctypes.c_void_p),
        ("attributes", ctypes.POINTER(Attribute)),
        ("attribute_count", ctypes.c_uint32),
    )


class Gpu:
    """The first device, with its primary context current."""

    def __init__(self) -> None:
        self._library = ctypes.CDLL("libcuda.so.1")
        device, context = ctypes.c_int(), ctypes.c_void_p()
        self.call("cuInit", 0)
        self.call("cuDeviceGet", ctypes.byref(device), 0)
        self.call("cuDevicePrimaryCtxRetain", ctypes.byref(context), device)
        self.call("cuCtxSetCurrent", context)
        self._device = device

    def call(self, name: str, *arguments: object) -> None:
        code = getattr(self._library, name)(*arguments)
        if code != 0:
            text = ctypes.c_char_p()
            self._library.cuGetErrorName(code, ctypes.byref(text))
            raise RuntimeError(f"{name}: {(text.value or b'?').decode()} ({code})")

    def name(self) -> str:
        text = ctypes.create_string_buffer(128)
        self.call("cuDeviceGetName", text, 128, self._device)
        return text.value.decode()

    def cuda_version(self) -> int:
        version = ctypes.c_int()
        self.call("cuDriverGetVersion", ctypes.byref(version))
        return version.value

    def load(self, cubin: bytes) -> ctypes.c_void_p:
        module = ctypes.c_void_p()
        self.call("cuModuleLoadData", ctypes.byref(module), cubin)
        return module

    def run(self, module: ctypes.c_void_p, launch: Launch, arrays: dict[str, np.ndarray]) -> None:
        """Copies the arrays in, launches, and copies them all back in place."""
        pointers = {name: self._upload(array) for name, array in arrays.items()}
        try:
            self._launch(module, launch, pointers)
            for name, array in arrays.items():
                target = array.ctypes.data_as(ctypes.c_void_p)
                self.call("cuMemcpyDtoH_v2", target, pointers[name], ctypes.c_size_t(array.nbytes))
        finally:
            for pointer in pointers.values():
                self._library.cuMemFree_v2(pointer)

    def _upload(self, array: np.ndarray) -> ctypes.c_uint64:
        assert array.flags.c_contiguous
        pointer = ctypes.c_uint64()
        size = ctypes.c_size_t(array.nbytes)
        self.call("cuMemAlloc_v2", ctypes.byref(pointer), size)
        self.call("cuMemcpyHtoD_v2", pointer, array.ctypes.data_as(ctypes.c_void_p), size)
        return pointer

    def _launch(
        self, module: ctypes.c_void_p, launch: Launch, pointers: dict[str, ctypes.c_uint64]
    ) -> None:
        function = ctypes.c_void_p()
        name = launch.entry.encode()
        self.call("cuModuleGetFunction", ctypes.byref(function), module, name)
        if launch.dynamic_smem_bytes > 48 * 1024:
            size = launch.dynamic_smem_bytes
            self.call("cuFuncSetAttribute", function, _MAX_DYNAMIC_SHARED, size)
        values = [self._argument(argument, pointers) for argument in launch.arguments]
        table = (ctypes.c_void_p * max(1, len(values)))(
            *(ctypes.cast(ctypes.pointer(value), ctypes.c_void_p) for value in values)
        )
        attribute = Attribute(id=_CLUSTER_DIMENSION)
        attribute.value[:3] = launch.cluster
        configuration = Configuration(
            grid=launch.grid,
            block=launch.block,
            shared_bytes=launch.dynamic_smem_bytes,
            attributes=ctypes.pointer(attribute),
            attribute_count=int(launch.cluster != (1, 1, 1)),
        )
        self.call("cuLaunchKernelEx", ctypes.byref(configuration), function, table, None)
        self.call("cuCtxSynchronize")

    def _argument(
        self, argument: Pointer | Scalar | TensorMap, pointers: dict[str, ctypes.c_uint64]
    ) -> object:
        if isinstance(argument, Pointer):
            return pointers[argument.array]
        if isinstance(argument, Scalar):
            return _SCALARS[argument.type](argument.value)
        return self._tensor_map(argument, pointers[argument.array])

    def _tensor_map(self, tensor: TensorMap, pointer: ctypes.c_uint64) -> object:
        rank = len(tensor.shape)
        # 128 bytes, aligned to 64: a larger buffer, and the aligned address inside it.
        raw = (ctypes.c_uint8 * 192)()
        offset = -ctypes.addressof(raw) % 64
        encoded = (ctypes.c_uint8 * 128).from_buffer(raw, offset)
        self.call(
            "cuTensorMapEncodeTiled",
            ctypes.byref(encoded),
            _ELEMENTS[tensor.element],
            rank,
            pointer,
            (ctypes.c_uint64 * rank)(*tensor.shape),
            (ctypes.c_uint64 * max(1, rank - 1))(*tensor.strides_bytes),
            (ctypes.c_uint32 * rank)(*tensor.box),
            (ctypes.c_uint32 * rank)(*([1] * rank)),
            0,  # interleave: none
            _SWIZZLES[tensor.swizzle],
            0,  # L2 promotion: none
            0,  # out-of-bounds fill: zeros
        )
        return encoded
