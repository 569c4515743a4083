"""Workers on Modal: `modal run modal_worker.py --queue https://head.example --workers 16`."""

import subprocess

import modal

image = modal.Image.from_registry("nvidia/cuda:13.0.2-devel-ubuntu24.04", add_python="3.11")
image = image.pip_install("kernelexp")
app = modal.App("kernelexp", image=image)


@app.function(gpu="H200", timeout=86400, secrets=[modal.Secret.from_name("kernelexp")])
def work(queue: str) -> None:
    command = ["kernelexp", "serve", "--worker", "--queue", queue, "--until-empty"]
    subprocess.run(command, check=True)


@app.local_entrypoint()
def main(queue: str, workers: int = 1) -> None:
    list(work.map([queue] * workers))
