// cudaProfilerStart() and cudaProfilerStop(), which no package of the compiler's declares.
#pragma once
#include <driver_types.h>

#ifdef __cplusplus
extern "C" {
#endif
cudaError_t cudaProfilerStart(void);
cudaError_t cudaProfilerStop(void);
#ifdef __cplusplus
}
#endif
