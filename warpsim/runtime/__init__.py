"""Whole CUDA programs: they are linked with the libraries in cudart/ and its siblings; the modules
here execute their launches."""
