"""Files of captured launches, and the library that writes them."""

from __future__ import annotations

import subprocess
from pathlib import Path

import captured
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kernelexp.evidence import hostcompiler
from kernelexp.evidence.programs import captures, injection
from kernelexp.evidence.programs.captures import Allocation
from kernelexp.model.errors import EnvironmentFault, UsageError
from kernelexp.system.toolchain import Toolchain

MAIN = """
#include "modules.hpp"
#include "settings.hpp"
#include <fstream>
#include <iostream>
int main(int count, char** words) {
  if (count == 2) {
    std::ifstream file(words[1], std::ios::binary);
    std::string cubin((std::istreambuf_iterator<char>(file)), {}), padded = cubin + "other";
    captor::keep_module(cubin.data(), cubin.size() / 2);
    const void *one = &cubin, *other = &padded;
    captor::begin_loading();
    captor::keep_module(padded.data(), padded.size());
    captor::end_loading(other, nullptr);
    captor::begin_loading();
    captor::end_loading(one, cubin.data());
    for (const void* handle : {one, other, static_cast<const void*>(nullptr)}) {
      const captor::Modules found = captor::modules_with("saxpy", handle);
      std::cout << found.cubins.size() << found.chosen;
      if (found.chosen) std::cout << (*found.cubins[0] == (handle == one ? cubin : padded));
      std::cout << " ";
    }
    for (const captor::Variable& variable : captor::variables_of(cubin)) {
      std::cout << variable.name << "=" << *reinterpret_cast<const float*>(&variable.first[0]);
    }
    return 0;
  }
  std::cout << captor::settings().wants(words[1], std::stoul(words[2]), std::stoul(words[3]));
}
"""


@pytest.fixture(scope="module")
def chooser(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The part of the library that chooses launches and keeps modules, as a program."""
    folder = tmp_path_factory.mktemp("chooser")
    compiler = hostcompiler.find("the chooser", ()).program
    (folder / "main.cpp").write_text(MAIN)
    sources = [str(injection.SOURCES / name) for name in ("settings.cpp", "modules.cpp")]
    argv = [compiler, "-std=c++17", f"-I{injection.SOURCES}", "main.cpp", *sources, "-o", "chooser"]
    subprocess.run(argv, cwd=folder, check=True)
    return folder / "chooser"


def choose(chooser: Path, folder: Path, settings: str, *words: str) -> str:
    (folder / "settings").write_text(settings)
    environment = {injection.FOLDER: str(folder)}
    argv = [str(chooser), *words]
    return subprocess.run(argv, env=environment, capture_output=True, text=True, check=True).stdout


TEMPLATE = "_ZN2kx4gemmILi64EfEEvPKT0_S3_"  # void kx::gemm<64, float>(float const*, float const*)
ANONYMOUS = "_ZN12_GLOBAL__N_19histogramEPKhiPj"


@pytest.mark.parametrize(
    ("pattern", "symbol", "wanted"),
    [
        ("saxpy", "saxpy", "1"),
        ("sax", "saxpy", "0"),
        ("sax*", "saxpy", "1"),
        ("*XPY", "saxpy", "1"),
        ("gemm", TEMPLATE, "1"),
        ("gemm<64, float>", TEMPLATE, "1"),
        ("kx::gemm<64,*", TEMPLATE, "1"),
        ("gemm<32, float>", TEMPLATE, "0"),
        ("kx", TEMPLATE, "0"),
        (TEMPLATE, TEMPLATE, "1"),
        ("histogram", ANONYMOUS, "1"),
    ],
)
def test_kernels_go_by_the_names_that_people_have_for_them(
    chooser: Path, tmp_path: Path, pattern: str, symbol: str, wanted: str
) -> None:
    assert choose(chooser, tmp_path, f"kernel 1 1 {pattern}\n", symbol, "1", "1") == wanted


def test_launches_of_a_kernel_are_counted_from_the_one_that_is_named(
    chooser: Path, tmp_path: Path
) -> None:
    settings = "limit 5\nkernel 3 2 k\n"
    numbers = [choose(chooser, tmp_path, settings, "k", str(n), "90") for n in range(1, 7)]
    assert "".join(numbers) == "001100"


def test_a_launch_must_be_in_the_range_too(chooser: Path, tmp_path: Path) -> None:
    settings = "launches 4 6\nkernel 1 9 k\n"
    places = [choose(chooser, tmp_path, settings, "k", "1", str(n)) for n in range(3, 8)]
    assert "".join(places) == "01110"


def test_nothing_is_wanted_where_nothing_is_named(chooser: Path, tmp_path: Path) -> None:
    assert choose(chooser, tmp_path, "limit 5\n", "k", "1", "1") == "0"


def test_a_kernel_is_looked_up_in_the_module_that_it_was_loaded_with(
    chooser: Path, tmp_path: Path, tools: Toolchain
) -> None:
    (tmp_path / "k.cubin").write_bytes(captured.compile_cubin(tools, captured.SAXPY))
    cubin = str(tmp_path / "k.cubin")
    words = choose(chooser, tmp_path, "kernel 1 1 sax*\n", cubin).split()
    assert words == ["211", "211", "20", "twice=2"]
    words = choose(chooser, tmp_path, "kernel 1 1 other\n", cubin).split()
    assert words[:3] == ["00", "00", "00"]


def test_the_whole_library_compiles_against_cupti(tmp_path: Path) -> None:
    try:
        cupti = injection.find()
    except EnvironmentFault:
        pytest.skip("CUPTI is not installed")
    compiler = hostcompiler.find("the library", injection._FLAGS)
    injection.compile_to(compiler, cupti, tmp_path / "captor.so")
    symbols = (tmp_path / "captor.so").read_bytes()
    assert b"InitializeInjection" in symbols


REGIONS = (
    Allocation(address=4096, size=512, allocation=4096, allocated=512, changed=False),
    Allocation(address=1 << 40, size=100, allocation=1 << 40, allocated=100, changed=True),
)
BASES = (1 << 20, 1 << 30)


@given(st.binary(max_size=40), st.integers(0, 511), st.integers(0, 99))
def test_addresses_move_with_their_regions(around: bytes, first: int, second: int) -> None:
    around = bytes(byte | 0x80 for byte in around)  # which no address here has as its highest
    whole = around[: len(around) // 8 * 8]
    words = [4096 + first, (1 << 40) + second]
    moved = [(1 << 20) + first, (1 << 30) + second]
    pack = [b"".join(word.to_bytes(8, "little") for word in item) for item in (words, moved)]
    assert captures.relocated(whole + pack[0], REGIONS, BASES) == whole + pack[1]


def test_what_points_nowhere_stays() -> None:
    for word in (0, 4095, 4608, (1 << 40) + 100):
        assert captures.moved(word, REGIONS, BASES) == word


def test_a_folder_without_a_launch_is_no_capture(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"is not a capture: it has no launch\.json"):
        captures.read(tmp_path)


def test_parameters_that_are_no_bytes_are_a_sentence(tmp_path: Path) -> None:
    captured.write_saxpy(tmp_path / "one", b"no code")
    launch = tmp_path / "one/launch.json"
    launch.write_text(launch.read_text().replace('"0000c03f"', '"0000c03x"'))
    with pytest.raises(UsageError, match=r"launch\.json can't be read"):
        captures.read(tmp_path / "one")


def test_without_a_driver_a_sentence_says_what_works_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def missing(name: str) -> None:
        raise OSError(f"{name}: cannot open shared object file")

    monkeypatch.setattr("ctypes.CDLL", missing)
    with pytest.raises(EnvironmentFault, match="no NVIDIA driver"):
        injection.make(tmp_path)


def test_without_cupti_a_sentence_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(injection, "_places", lambda: iter(()))
    with pytest.raises(EnvironmentFault, match=r"pip install 'kernelexp\[capture\]'"):
        injection.find()
