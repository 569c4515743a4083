"""Takes the samples that docs/verdicts.md is made from, on a GPU.

    python benchmarks/verdict_samples.py OUT knob:8:4:1.0 gemm:6:4:1.0 ...

Each argument is scenario:arms:processes:seconds. Scenarios: `knob`, `short`, `rows`, `apart` and
`gemm` are A/A (that many identical candidates beside the baseline and the placebo); `inject` has
candidates with 0.5, 1, 2, 5 and 100% of extra work, as many of each as `arms` says. OUT gets one
Measurement a scenario, as JSON.
"""

import sys
import time
from pathlib import Path

import msgspec

from kernelexp.evidence.measure.job import ArmJob, Job
from kernelexp.evidence.measure.measure import measure
from kernelexp.judge.statistics.stats import estimate
from kernelexp.model.measurement import Options, TimedArm
from kernelexp.project.problem.loader import load_file
from kernelexp.system import device, toolchain
from kernelexp.system.process import processes

ROOT = Path(__file__).parents[1]
EXTRA = (5, 10, 20, 50, 1000)


def compiled(source: Path, arch: str, folder: Path) -> str:
    cubin = folder / f"{source.stem}.{arch}.cubin"
    nvcc = toolchain.find(None, folder).nvcc
    argv = [nvcc, "-cubin", f"-arch={arch}", "-std=c++17", "-O3", "-o", str(cubin), str(source)]
    completed = processes.run(argv, timeout_s=120)
    if completed.returncode:
        raise SystemExit(completed.stderr)
    return str(cubin)


def make_job(scenario: str, arms: int, arch: str, folder: Path) -> Job:
    if scenario == "gemm":
        problem_path, source, size_name = ROOT / "benchmarks/fp8_gemm.py", None, "full"
    elif scenario in ("rows", "apart"):
        name = "tests/gpu/kernels/problem.py" if scenario == "rows" else "benchmarks/rows_apart.py"
        problem_path, size_name = ROOT / name, "full"
        source = ROOT / "tests/gpu/kernels/honest.cu"
    else:
        problem_path, source = (
            ROOT / "kernelexp/services/knob/problem.py",
            ROOT / "kernelexp/services/knob/knob.cu",
        )
        size_name = "short" if scenario == "short" else "full"
    problem = load_file(problem_path)
    size = dict(problem.sizes[size_name])
    cubin = compiled(source, arch, folder) if source else ""
    points: list[tuple[str, str, dict]] = [("baseline", "baseline", {}), ("placebo", "placebo", {})]
    if scenario == "inject":
        points += [
            (f"extra-{extra}-{i}", "candidate", {"extra": extra})
            for extra in EXTRA
            for i in range(1 if extra == 1000 else arms)
        ]
    else:
        points += [(f"same-{i}", "candidate", {}) for i in range(arms)]
    result = []
    for position, (name, role, point) in enumerate(points):
        if scenario in ("rows", "apart"):
            point = {"entry": "vectorised", **point}
        if scenario == "apart":
            point["copy"] = position % 5
        result.append(
            ArmJob(
                arm=TimedArm(name=name, role=role, identity="" if source else "cublas"),
                cubin=cubin,
                arch=arch,
                launches=problem.launches(point, size, {}) if source else (),
                axes=point,
            )
        )
    return Job(problem=str(problem_path), size=size, arms=tuple(result))


def main(out: Path, scenarios: list[str]) -> None:
    out.mkdir(parents=True, exist_ok=True)
    arch = device.find().arch
    for spec in scenarios:
        scenario, arms, processes, seconds = spec.split(":")
        job = make_job(scenario, int(arms), arch, out)
        options = Options(
            processes=int(processes),
            processes_max=int(processes),
            timing_s=float(seconds),
            budget_s=3600.0,
            peers=False,
            checks_during=1,
        )
        begun = time.monotonic()
        answer = measure(job, options)
        (out / f"{scenario}.json").write_bytes(msgspec.json.encode(answer))
        print(f"{spec}: {time.monotonic() - begun:.1f} s", answer.failures, answer.invalid)
        for worker in answer.workers[:2]:
            print("  ", worker.phases_s, worker.warm_up_s, worker.drift, worker.launches_per_sample)
        result = estimate(answer)
        for effect in (result.placebo, *result.effects):
            if effect:
                print(
                    f"   {effect.arm}: {100 * (effect.ratio - 1):+.4f}% "
                    f"[{100 * (effect.low - 1):+.3f}, {100 * (effect.high - 1):+.3f}] "
                    f"spread {100 * effect.spread:.4f}% within {100 * effect.within:.4f}% "
                    f"pairs {effect.pairs} dropped {effect.dropped}"
                )
        print("  ", result.conditions)
        print("  ", [(item.arm, round(item.median_us, 2)) for item in result.times[:3]], flush=True)


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2:])
