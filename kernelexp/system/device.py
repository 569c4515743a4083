"""This machine: its CPU and system, and its GPUs as NVML sees them, with who may use one."""

from __future__ import annotations

import contextlib
import os
import platform
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec

from kernelexp.model.errors import EnvironmentFault, UsageError
from kernelexp.model.measurement import Device, DeviceState
from kernelexp.model.record import HostMachine

# NVML's bits of nvmlClocksEventReasons, by the names of nvml.h.
THROTTLE_BITS: dict[int, str] = {
    0x1: "gpu_idle",
    0x2: "applications_clocks_setting",
    0x4: "sw_power_cap",
    0x8: "hw_slowdown",
    0x10: "sync_boost",
    0x20: "sw_thermal_slowdown",
    0x40: "hw_thermal_slowdown",
    0x80: "hw_power_brake_slowdown",
    0x100: "display_clock_setting",
}
# The same for every user, whatever TMPDIR says. A folder of its own, as Linux does not let others
# open a lock file that lies in a sticky folder (fs.protected_regular).
LOCKS = Path("/tmp/kernelexp-locks")
# Targets whose cubins run on one compute capability only ("a": architecture-specific).
SPECIFIC = {(9, 0), (10, 0), (10, 3), (12, 0)}


class DeviceHealth(msgspec.Struct, frozen=True, kw_only=True):
    """The health of a card, unused by us, as NVML reports it; 0 and False where it does not say."""

    uncorrected: int = 0
    """Memory errors since the last reset that ECC could not correct."""
    remap_pending: bool = False
    remap_failed: bool = False
    mig: bool = False
    computing: int = 0
    """Processes."""
    throttle: tuple[str, ...] = ()


def _nvml() -> Any:
    try:
        import pynvml  # type: ignore[import-not-found,unused-ignore]
    except ImportError:
        raise EnvironmentFault(
            "timing requires NVML's Python binding: pip install nvidia-ml-py."
        ) from None
    try:
        pynvml.nvmlInit()
    except pynvml.NVMLError as error:
        raise EnvironmentFault(
            f"no usable NVIDIA GPU or driver on this machine (NVML: {error})."
        ) from None
    return pynvml


def list_gpus() -> tuple[Device, ...]:
    """The GPUs of this machine, by index; EnvironmentFault where NVML can't be used."""
    nvml = _nvml()
    try:
        handles = [nvml.nvmlDeviceGetHandleByIndex(i) for i in range(nvml.nvmlDeviceGetCount())]
        return tuple(_describe(nvml, handle) for handle in handles)
    except nvml.NVMLError as error:
        raise EnvironmentFault(f"NVML can't describe this machine's GPUs: {error}.") from None


def find(selector: str | None = None) -> Device:
    """The GPU to use: by index or UUID, else $CUDA_VISIBLE_DEVICES' first, else the first.

    Raises EnvironmentFault where there is none, UsageError where `selector` names none of them.
    """
    gpus = list_gpus()
    if not gpus:
        raise EnvironmentFault("this machine has no NVIDIA GPU.")
    wanted = selector or os.environ.get("CUDA_VISIBLE_DEVICES", "").split(",")[0] or "0"
    if wanted.isdigit() and int(wanted) < len(gpus):
        return gpus[int(wanted)]
    for gpu in gpus:
        if gpu.uuid.startswith(wanted):
            return gpu
    known = ", ".join(gpu.uuid for gpu in gpus)
    raise UsageError(f"there is no GPU {wanted!r} here: this machine has {known}.")


def find_if_any() -> Device | None:
    """The GPU to use; None where there is none."""
    try:
        return find()
    except EnvironmentFault:
        return None


ALL = "all"


def find_all(selector: str) -> tuple[Device, ...]:
    """The GPUs that `selector` names: `all`, or indices and UUIDs with commas between.

    `all` are those that CUDA_VISIBLE_DEVICES shows, as batch systems set it, else this machine's.
    Raises as `find`; UsageError where one is named twice.
    """
    visible = os.environ.get("CUDA_VISIBLE_DEVICES", "")
    if selector == ALL and not visible:
        gpus = list_gpus()
        if not gpus:
            raise EnvironmentFault("this machine has no NVIDIA GPU.")
        return gpus
    names = (visible if selector == ALL else selector).split(",")
    if not all(names):
        raise UsageError(f"GPUs {selector!r} should be all, or indices and UUIDs, as in 0,1.")
    gpus = tuple(map(find, names))
    if len({gpu.uuid for gpu in gpus}) < len(gpus):
        raise UsageError(f"GPUs {selector!r} name one GPU twice.")
    return gpus


def _text(value: str | bytes) -> str:
    return value.decode() if isinstance(value, bytes) else value


def _describe(nvml: Any, handle: Any) -> Device:
    major, minor = nvml.nvmlDeviceGetCudaComputeCapability(handle)
    cuda = nvml.nvmlSystemGetCudaDriverVersion_v2()
    return Device(
        name=_text(nvml.nvmlDeviceGetName(handle)),
        uuid=_text(nvml.nvmlDeviceGetUUID(handle)),
        arch=f"sm_{major}{minor}" + ("a" if (major, minor) in SPECIFIC else ""),
        driver=_text(nvml.nvmlSystemGetDriverVersion()),
        cuda=f"{cuda // 1000}.{cuda % 1000 // 10}",
        memory_bytes=int(nvml.nvmlDeviceGetMemoryInfo(handle).total),
        power_limit_w=_or_zero(nvml, nvml.nvmlDeviceGetEnforcedPowerLimit, handle) / 1000,
        sm_clock_max_mhz=_or_zero(nvml, nvml.nvmlDeviceGetMaxClockInfo, handle, nvml.NVML_CLOCK_SM),
        memory_clock_max_mhz=_or_zero(
            nvml, nvml.nvmlDeviceGetMaxClockInfo, handle, nvml.NVML_CLOCK_MEM
        ),
    )


def _or_zero(nvml: Any, query: Any, *arguments: Any) -> int:
    """Returns NVML's answer, 0 where this card or this virtual machine does not give one."""
    return int(_or(0, nvml, query, *arguments))


def _or(otherwise: Any, nvml: Any, query: Any, *arguments: Any) -> Any:
    try:
        return query(*arguments)
    except nvml.NVMLError:
        return otherwise


class Monitor:
    """Reads one GPU's state; about 1 ms a reading."""

    def __init__(self, uuid: str) -> None:
        self._nvml = _nvml()
        try:
            self._handle = self._nvml.nvmlDeviceGetHandleByUUID(uuid)
        except TypeError:
            self._handle = self._nvml.nvmlDeviceGetHandleByUUID(uuid.encode())

    def read(self) -> DeviceState:
        nvml, handle = self._nvml, self._handle
        bits = _or_zero(nvml, nvml.nvmlDeviceGetCurrentClocksThrottleReasons, handle)
        return DeviceState(
            sm_clock_mhz=_or_zero(nvml, nvml.nvmlDeviceGetClockInfo, handle, nvml.NVML_CLOCK_SM),
            memory_clock_mhz=_or_zero(
                nvml, nvml.nvmlDeviceGetClockInfo, handle, nvml.NVML_CLOCK_MEM
            ),
            power_w=_or_zero(nvml, nvml.nvmlDeviceGetPowerUsage, handle) / 1000,
            temperature_c=_or_zero(
                nvml, nvml.nvmlDeviceGetTemperature, handle, nvml.NVML_TEMPERATURE_GPU
            ),
            throttle=throttle_names(bits),
            others=self.others(),
        )

    def health(self) -> DeviceHealth:
        nvml, handle = self._nvml, self._handle
        errors = (nvml.NVML_MEMORY_ERROR_TYPE_UNCORRECTED, nvml.NVML_VOLATILE_ECC)
        _, _, pending, failed = _or((0, 0, 0, 0), nvml, nvml.nvmlDeviceGetRemappedRows, handle)
        mig, _ = _or((0, 0), nvml, nvml.nvmlDeviceGetMigMode, handle)
        bits = _or_zero(nvml, nvml.nvmlDeviceGetCurrentClocksThrottleReasons, handle)
        return DeviceHealth(
            uncorrected=_or_zero(nvml, nvml.nvmlDeviceGetTotalEccErrors, handle, *errors),
            remap_pending=bool(pending),
            remap_failed=bool(failed),
            mig=bool(mig),
            computing=self.computing(),
            throttle=throttle_names(bits),
        )

    def others(self) -> int:
        """Processes that compute on this GPU besides this one, which has a context on it.

        Counted, not told apart by id: in a container NVML names this process by its id outside.
        """
        return max(0, self.computing() - 1)

    def computing(self) -> int:
        """Processes that compute on this GPU, this one included if it has a context on it."""
        try:
            return len(self._nvml.nvmlDeviceGetComputeRunningProcesses(self._handle))
        except self._nvml.NVMLError:
            return 0


def throttle_names(bits: int) -> tuple[str, ...]:
    """The reasons in a word of nvmlClocksEventReasons, without gpu_idle."""
    return tuple(name for bit, name in THROTTLE_BITS.items() if bits & bit and bit != 0x1)


@contextlib.contextmanager
def hold(uuid: str, wait_s: float = 0.0, name: str = "GPU") -> Iterator[None]:
    """Keeps other runs of kernelexp on this machine off the GPU, whoever starts them.

    Or off the CPU, where programs are timed on that; a sentence calls it by its `name`.
    """
    from filelock import FileLock, Timeout

    path = LOCKS / f"{uuid}.lock"
    lock = FileLock(path, timeout=wait_s, mode=0o666)
    try:
        if not LOCKS.exists():
            LOCKS.mkdir(exist_ok=True)
            LOCKS.chmod(0o777)
        lock.acquire()
    except Timeout:
        raise EnvironmentFault(
            f"another run of kernelexp is timing on {name} {uuid}: wait until it ends."
        ) from None
    except OSError as error:
        raise EnvironmentFault(
            f"{path} can't be locked ({error.strerror}): it must be writable for every user."
        ) from None
    try:
        yield
    finally:
        lock.release()


def read_machine() -> HostMachine:
    return HostMachine(
        host=platform.node(),
        cpu=_cpu_model(),
        cores=os.cpu_count() or 0,
        system=f"{platform.system()} {platform.release()} {platform.machine()}",
        python=platform.python_version(),
        gpus=tuple(_gpu_models()),
    )


def cpu(arch: str) -> Device:
    """This machine's CPU as what programs are timed on that need no GPU; `arch` is theirs."""
    return Device(
        name=_cpu_model(),
        uuid=f"cpu-{platform.node()}",
        arch=arch,
        driver="",
        cuda="",
        memory_bytes=os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"),
        power_limit_w=0.0,
        sm_clock_max_mhz=0,
        memory_clock_max_mhz=0,
    )


def _gpu_models() -> Iterator[str]:
    try:
        yield from (gpu.name for gpu in list_gpus())
    except EnvironmentFault:
        return


def _cpu_model() -> str:
    try:
        for line in Path("/proc/cpuinfo").read_text().splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    except OSError:
        pass
    return platform.machine()  # aarch64 kernels name no model
