"""SASS, the instructions of a cubin: read, decoded by its tables, executed by the same machine."""
