"""The cuda backend: launches cubins in worker processes, checks what they write, times them.

`kernelexp.gpu.measure.measure(job, options)` is the way in; what it gives back is plain data
(kernelexp.measurement), so that everything after it works on a machine without a GPU.
"""
