"""Variants on a GPU: launched in worker processes, checked, timed.

`measure.measure(job, options)` is the entry point; it returns plain data
(kernelexp.model.measurement), so that everything after it works on a machine without a GPU.
"""
