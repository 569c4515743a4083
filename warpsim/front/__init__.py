"""The instruction sets that can be executed: PTX and SASS, each decoded by its tables."""
