"""What a GPU has to prove before a worker times on it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from fake_gpu import FakeGpu

from kernelexp.model.errors import EnvironmentFault
from kernelexp.services.serving import card
from kernelexp.system import device
from kernelexp.system.device import DeviceHealth

pytestmark = pytest.mark.xdist_group("serving")


@pytest.fixture
def gpu(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> FakeGpu:
    gpu = FakeGpu(tmp_path / "locks", monkeypatch)
    monkeypatch.setattr(device, "Monitor", Healthy)
    return gpu


class Healthy:
    def __init__(self, uuid: str) -> None: ...

    def health(self) -> DeviceHealth:
        return DeviceHealth()


def prove() -> str:
    """What is said of the card once it is proved."""
    sentences: list[str] = []
    with card.proved(None, None, sentences.append) as fit:
        assert fit is not None
    return sentences[0]


def test_a_kernel_that_takes_its_own_time_proves_the_card(gpu: FakeGpu) -> None:
    gpu.takes("1.0")
    assert prove().endswith("is fit: whole, free, not held down, and equal to itself.")


def test_a_card_on_which_a_kernel_differs_from_itself_is_refused(gpu: FakeGpu) -> None:
    gpu.takes("1.03 if name == 'same-0' else 1.0")
    with pytest.raises(EnvironmentFault, match=r"a kernel beside itself takes \+[23]\.\d\d%"):
        prove()


def test_a_card_has_one_worker(gpu: FakeGpu) -> None:
    gpu.takes("1.0")
    with (
        card.proved(None, None, print),
        pytest.raises(EnvironmentFault, match="another worker times on"),
    ):
        prove()


@pytest.mark.parametrize(
    ("state", "words"),
    [
        ({"uncorrected": 2}, "2 memory errors were not corrected"),
        ({"remap_pending": True}, "it has to be reset"),
        ({"remap_failed": True}, "it has to be replaced"),
        ({"mig": True}, "is split into instances"),
        ({"computing": 1}, "1 other process computes on it"),
        ({"throttle": ("hw_thermal_slowdown",)}, r"held down \(hw_thermal_slowdown\)"),
        ({"throttle": ("applications_clocks_setting",)}, "held down"),
    ],
)
def test_a_card_that_is_not_fit_is_refused(
    gpu: FakeGpu, state: dict[str, Any], words: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Healthy, "health", lambda _: DeviceHealth(**state))
    with pytest.raises(EnvironmentFault, match=f"is not fit to time on: .*{words}"):
        prove()


def test_a_card_at_its_limit_of_power_is_fit() -> None:
    assert not list(card.faults(DeviceHealth(throttle=("sw_power_cap",))))


def test_a_worker_without_a_card_is_no_fault(monkeypatch: pytest.MonkeyPatch) -> None:
    with card.proved(card.NONE, None, print) as none:
        assert none is None


def test_a_card_that_was_named_has_to_be_there(gpu: FakeGpu) -> None:
    gpu.has()
    with (
        pytest.raises(EnvironmentFault, match="has no NVIDIA GPU"),
        card.proved("0", None, print),
    ):
        pass


class NvmlOfAVirtualMachine:
    """Answers nothing but what it has to."""

    class NVMLError(Exception): ...

    NVML_MEMORY_ERROR_TYPE_UNCORRECTED, NVML_VOLATILE_ECC = 1, 0

    def __getattr__(self, name: str) -> Any:
        def refuse(*_: Any) -> None:
            raise self.NVMLError("not supported")

        return refuse


def test_a_card_that_says_nothing_of_its_memory_is_not_accused() -> None:
    monitor = object.__new__(device.Monitor)
    monitor._nvml, monitor._handle = NvmlOfAVirtualMachine(), None
    assert monitor.health() == DeviceHealth()
