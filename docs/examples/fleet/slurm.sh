#!/bin/bash
# A Slurm array of workers, one GPU each: sbatch slurm.sh. The folder is on a file system with locks.
#SBATCH --array=1-16
#SBATCH --gpus-per-task=1
#SBATCH --cpus-per-task=4
#SBATCH --requeue
srun kernelexp serve --worker --queue "${KERNELEXP_QUEUE:-/shared/queue}" --cache "${TMPDIR:-/tmp}" --until-empty
