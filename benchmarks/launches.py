"""What a tiny launch takes under `kernelexp exec`: processor time of the process that serves it.

    python benchmarks/launches.py [MIB ...]

One thread adds 1 to a number, a thousand times, with so many MiB allocated besides: none, and
1,024. The least is what it takes undisturbed; on a busy machine the median may be twice that.
"""

from __future__ import annotations

import statistics
import sys
import tempfile
import time
from pathlib import Path

from kernelexp.services import execution
from kernelexp.services.execution import ExecRequest
from kernelexp.system import toolchain
from warpsim.runtime.protocol import Message
from warpsim.runtime.reports import Report
from warpsim.runtime.server import Server

COUNT = 1000
PROGRAM = """
__global__ void add(int* p) { *p += 1; }
int main(int, char** words) {
    char* large = nullptr;
    int* p;
    if (size_t mib = atoi(words[1])) cudaMalloc(&large, mib << 20);
    cudaMalloc(&p, sizeof(int));
    cudaMemset(p, 0, sizeof(int));
    for (int i = 0; i < COUNT; ++i) add<<<1, 1>>>(p);
    cudaFree(p);
    cudaFree(large);
}
"""


def main() -> None:
    launch, serve, took = Server._launch, Server.serve, []

    def timed(server: Server, message: Message) -> None:
        begun = time.process_time()
        launch(server, message)
        took.append(1e3 * (time.process_time() - begun))

    def served(server: Server) -> Report:  # in a process of its own
        report = serve(server)
        least, median = min(took), statistics.median(took)
        print(f"{len(took)} launches, {least:.2f} ms at least, median {median:.2f}", flush=True)
        return report

    Server._launch, Server.serve = timed, served  # type: ignore[method-assign]
    with tempfile.TemporaryDirectory() as place:
        source = Path(place) / "add.cu"
        source.write_text(f"#include <cstdlib>\n#define COUNT {COUNT}\n{PROGRAM}")
        for mib in sys.argv[1:] or ["0", "1024"]:
            print(f"{mib} MiB: ", end="", flush=True)
            asked = ExecRequest(sources=(source,), argv=(mib,))
            execution.execute(asked, toolchain.find(None, Path(place)), Path(place))


if __name__ == "__main__":
    main()
