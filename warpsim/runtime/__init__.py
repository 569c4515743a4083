"""The CUDA runtime for whole programs: cudart/ is loaded by them, the rest executes their launches."""
