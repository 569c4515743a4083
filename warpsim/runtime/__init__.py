"""CUDA programs as a whole: they load cudart/, and the rest executes their launches."""
