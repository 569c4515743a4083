// What a variant is: its axes, and every size that follows from them. Plain C++.
#pragma once

#include "axes.cuh"

#if KX_PHASE_NUMBER >= 5
#include "config_mma.cuh"
#else
#include "config_simt.cuh"
#endif
