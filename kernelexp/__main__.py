"""python -m kernelexp"""

from kernelexp.cli import main

main()
