// The part of cuFFT's interface that the emulator computes, for programs that are compiled where
// NVIDIA's own headers are not installed. Values are those of the interface.
#pragma once
#define _CUFFT_H_
#include <cuComplex.h>
#include <driver_types.h>
#include <library_types.h>

#define CUFFT_FORWARD -1
#define CUFFT_INVERSE 1

typedef enum {
  CUFFT_SUCCESS = 0x0,
  CUFFT_INVALID_PLAN = 0x1,
  CUFFT_ALLOC_FAILED = 0x2,
  CUFFT_INVALID_TYPE = 0x3,
  CUFFT_INVALID_VALUE = 0x4,
  CUFFT_INTERNAL_ERROR = 0x5,
  CUFFT_EXEC_FAILED = 0x6,
  CUFFT_SETUP_FAILED = 0x7,
  CUFFT_INVALID_SIZE = 0x8,
  CUFFT_UNALIGNED_DATA = 0x9,
  CUFFT_INVALID_DEVICE = 0xB,
  CUFFT_NO_WORKSPACE = 0xD,
  CUFFT_NOT_IMPLEMENTED = 0xE,
  CUFFT_NOT_SUPPORTED = 0x10,
  CUFFT_MISSING_DEPENDENCY = 0x11,
  CUFFT_NVRTC_FAILURE = 0x12,
  CUFFT_NVJITLINK_FAILURE = 0x13,
  CUFFT_NVSHMEM_FAILURE = 0x14
} cufftResult;
typedef enum {
  CUFFT_R2C = 0x2a,
  CUFFT_C2R = 0x2c,
  CUFFT_C2C = 0x29,
  CUFFT_D2Z = 0x6a,
  CUFFT_Z2D = 0x6c,
  CUFFT_Z2Z = 0x69
} cufftType;

typedef int cufftHandle;
typedef float cufftReal;
typedef double cufftDoubleReal;
typedef cuComplex cufftComplex;
typedef cuDoubleComplex cufftDoubleComplex;

#ifdef __cplusplus
extern "C" {
#endif
cufftResult cufftPlan1d(cufftHandle* plan, int n, cufftType type, int batch);
cufftResult cufftPlan2d(cufftHandle* plan, int n0, int n1, cufftType type);
cufftResult cufftPlan3d(cufftHandle* plan, int n0, int n1, int n2, cufftType type);
cufftResult cufftPlanMany(cufftHandle* plan, int rank, int* n, int* inembed, int istride, int idist, int* onembed, int ostride, int odist, cufftType type, int batch);
cufftResult cufftCreate(cufftHandle* plan);
cufftResult cufftMakePlan1d(cufftHandle plan, int n, cufftType type, int batch, size_t* bytes);
cufftResult cufftMakePlan2d(cufftHandle plan, int n0, int n1, cufftType type, size_t* bytes);
cufftResult cufftMakePlan3d(cufftHandle plan, int n0, int n1, int n2, cufftType type, size_t* bytes);
cufftResult cufftMakePlanMany(cufftHandle plan, int rank, int* n, int* inembed, int istride, int idist, int* onembed, int ostride, int odist, cufftType type, int batch, size_t* bytes);
cufftResult cufftDestroy(cufftHandle plan);
cufftResult cufftSetStream(cufftHandle plan, cudaStream_t stream);
cufftResult cufftSetAutoAllocation(cufftHandle plan, int allocate);
cufftResult cufftSetWorkArea(cufftHandle plan, void* area);
cufftResult cufftGetSize(cufftHandle plan, size_t* bytes);
cufftResult cufftGetVersion(int* version);
cufftResult cufftExecC2C(cufftHandle plan, cufftComplex* from, cufftComplex* to, int direction);
cufftResult cufftExecR2C(cufftHandle plan, cufftReal* from, cufftComplex* to);
cufftResult cufftExecC2R(cufftHandle plan, cufftComplex* from, cufftReal* to);
cufftResult cufftExecZ2Z(cufftHandle plan, cufftDoubleComplex* from, cufftDoubleComplex* to, int direction);
cufftResult cufftExecD2Z(cufftHandle plan, cufftDoubleReal* from, cufftDoubleComplex* to);
cufftResult cufftExecZ2D(cufftHandle plan, cufftDoubleComplex* from, cufftDoubleReal* to);
cufftResult cufftXtMakePlanMany(cufftHandle plan, int rank, long long int* n, long long int* inembed, long long int istride, long long int idist, cudaDataType from, long long int* onembed, long long int ostride, long long int odist, cudaDataType to, long long int batch, size_t* bytes, cudaDataType execution);
#ifdef __cplusplus
}
#endif
