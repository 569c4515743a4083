"""Times one kernel against itself as others do, for the table in docs/verdicts.md.

    python benchmarks/verdict_neighbours.py OUT

Sequential (2 launches to warm up, mean of 10), Triton's do_bench (its defaults, median and mean)
and nvbench (cuda-bench, its defaults), on cuBLAS's FP8 GEMM and on the knob kernel. A try is
compared with the next one: what they differ by is what these would call a change. OUT gets every
time.
"""

import json
import statistics
import sys
from pathlib import Path

from verdict_samples import ROOT, compiled

from kernelexp.evidence.measure.launch import LoadedKernel
from kernelexp.project.problem.loader import load_file
from kernelexp.system import device
from kernelexp.system.process import processes

SEQUENTIAL_TRIES, DO_BENCH_TRIES, NVBENCH_TRIES = 200, 40, 8


def gemm():
    problem = load_file(ROOT / "benchmarks/fp8_gemm.py")
    size = problem.sizes["full"]
    return problem.peers(problem.inputs(size, 1, "cuda"), size)["cublas"]


def knob(folder):
    import torch

    problem = load_file(ROOT / "kernelexp/services/knob/problem.py")
    size = problem.sizes["full"]
    cubin = compiled(ROOT / "kernelexp/services/knob/knob.cu", device.find().arch, folder)
    torch.zeros(1, device="cuda")
    arrays = {**problem.inputs(size, 1, "cuda")}
    arrays["y"] = torch.empty_like(arrays["x"])
    bound = LoadedKernel(Path(cubin), problem.launches({}, size, {})).bind(arrays)
    return lambda: bound(torch.cuda.current_stream().cuda_stream)


def sequential(call):
    import torch

    for _ in range(2):
        call()
    start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
    start.record()
    for _ in range(10):
        call()
    end.record()
    end.synchronize()
    return start.elapsed_time(end) * 100.0


def with_do_bench(call, mode):
    from triton.testing import do_bench

    return do_bench(call, return_mode=mode) * 1000.0


def run_nvbench(path):
    """One run of nvbench over both kernels: it runs once a process."""
    import cuda.bench as bench
    import torch

    for name, call in {"gemm": gemm(), "knob": knob(path.parent)}.items():

        def run(state, call=call):
            def launch(request):
                handle = request.get_stream().addressof()
                with torch.cuda.stream(torch.cuda.ExternalStream(handle)):
                    call()

            state.exec(launch, batched=False)

        bench.register(run).set_name(name)
    bench.run_all_benchmarks(["nvbench", "--json", str(path), "--quiet"])


def with_nvbench(out):
    result = {"gemm": [], "knob": []}
    for i in range(NVBENCH_TRIES):
        path = out / f"nvbench-{i}.json"
        argv = [sys.executable, __file__, str(path), "nvbench"]
        completed = processes.run(argv, timeout_s=60)
        if not path.is_file():
            raise SystemExit(completed.stderr)
        for benchmark in json.loads(path.read_text())["benchmarks"]:
            for summary in benchmark["states"][0]["summaries"]:
                if summary["tag"] == "nv/cold/time/gpu/mean":
                    value = next(d["value"] for d in summary["data"] if d["name"] == "value")
                    result[benchmark["name"]].append(float(value) * 1e6)
    return result


def compare(times):
    """Medians, 95th percentile and worst of |difference| between tries and the next, in percent."""
    apart = [100 * abs(b / a - 1) for a, b in zip(times[::2], times[1::2], strict=False)]
    over = sum(item > 1 for item in apart) / len(apart)
    ordered = sorted(apart)
    return (
        f"median {statistics.median(apart):.3f}%  95th percentile "
        f"{ordered[min(len(ordered) - 1, int(0.95 * len(ordered)))]:.3f}%  worst {ordered[-1]:.3f}%"
        f"  over 1%: {100 * over:.0f}% of {len(apart)}"
    )


def main(out, only_nvbench):
    out.mkdir(parents=True, exist_ok=True)
    if only_nvbench:
        report({name: {"nvbench mean": times} for name, times in with_nvbench(out).items()}, out)
        return
    calls = {"gemm": gemm(), "knob": knob(out)}
    result = {}
    for name, call in calls.items():
        result[name] = {
            "sequential": [sequential(call) for _ in range(SEQUENTIAL_TRIES)],
            "do_bench median": [with_do_bench(call, "median") for _ in range(DO_BENCH_TRIES)],
            "do_bench mean": [with_do_bench(call, "mean") for _ in range(DO_BENCH_TRIES)],
        }
    for name, times in with_nvbench(out).items():
        result[name]["nvbench mean"] = times
    report(result, out)


def report(found, out):
    (out / "neighbours.json").write_text(json.dumps(found))
    for name, ways in found.items():
        for way, times in ways.items():
            print(f"{name:5s} {way:16s} {min(times):8.1f} to {max(times):8.1f} us  ", end="")
            print(compare(times), flush=True)


if __name__ == "__main__":
    if sys.argv[2:] == ["nvbench"]:
        run_nvbench(Path(sys.argv[1]))
    else:
        main(Path(sys.argv[1]), sys.argv[2:] == ["--only-nvbench"])
