// The part of cuSPARSE's interface that the emulator computes, for programs that are compiled where
// NVIDIA's own headers are not installed. Values are those of the interface.
#pragma once
#define CUSPARSE_H_
#define CUSPARSEAPI  // by which other headers see that this one is included
#include <cuComplex.h>
#include <driver_types.h>
#include <library_types.h>
#include <stdint.h>
#include <stdio.h>

#define CUSPARSE_VER_MAJOR 12
#define CUSPARSE_VER_MINOR 6
#define CUSPARSE_VER_PATCH 0
#define CUSPARSE_VERSION 12600

typedef enum {
  CUSPARSE_STATUS_SUCCESS = 0,
  CUSPARSE_STATUS_NOT_INITIALIZED = 1,
  CUSPARSE_STATUS_ALLOC_FAILED = 2,
  CUSPARSE_STATUS_INVALID_VALUE = 3,
  CUSPARSE_STATUS_ARCH_MISMATCH = 4,
  CUSPARSE_STATUS_MAPPING_ERROR = 5,
  CUSPARSE_STATUS_EXECUTION_FAILED = 6,
  CUSPARSE_STATUS_INTERNAL_ERROR = 7,
  CUSPARSE_STATUS_MATRIX_TYPE_NOT_SUPPORTED = 8,
  CUSPARSE_STATUS_ZERO_PIVOT = 9,
  CUSPARSE_STATUS_NOT_SUPPORTED = 10,
  CUSPARSE_STATUS_INSUFFICIENT_RESOURCES = 11
} cusparseStatus_t;

typedef enum { CUSPARSE_POINTER_MODE_HOST = 0, CUSPARSE_POINTER_MODE_DEVICE } cusparsePointerMode_t;
typedef enum { CUSPARSE_ACTION_SYMBOLIC = 0, CUSPARSE_ACTION_NUMERIC } cusparseAction_t;
typedef enum {
  CUSPARSE_MATRIX_TYPE_GENERAL = 0,
  CUSPARSE_MATRIX_TYPE_SYMMETRIC,
  CUSPARSE_MATRIX_TYPE_HERMITIAN,
  CUSPARSE_MATRIX_TYPE_TRIANGULAR
} cusparseMatrixType_t;
typedef enum { CUSPARSE_FILL_MODE_LOWER = 0, CUSPARSE_FILL_MODE_UPPER } cusparseFillMode_t;
typedef enum { CUSPARSE_DIAG_TYPE_NON_UNIT = 0, CUSPARSE_DIAG_TYPE_UNIT } cusparseDiagType_t;
typedef enum { CUSPARSE_INDEX_BASE_ZERO = 0, CUSPARSE_INDEX_BASE_ONE } cusparseIndexBase_t;
typedef enum {
  CUSPARSE_OPERATION_NON_TRANSPOSE = 0,
  CUSPARSE_OPERATION_TRANSPOSE,
  CUSPARSE_OPERATION_CONJUGATE_TRANSPOSE
} cusparseOperation_t;
typedef enum { CUSPARSE_DIRECTION_ROW = 0, CUSPARSE_DIRECTION_COLUMN } cusparseDirection_t;
typedef enum { CUSPARSE_SOLVE_POLICY_NO_LEVEL = 0, CUSPARSE_SOLVE_POLICY_USE_LEVEL } cusparseSolvePolicy_t;
typedef enum { CUSPARSE_FORMAT_CSR = 1, CUSPARSE_FORMAT_CSC, CUSPARSE_FORMAT_COO } cusparseFormat_t;
typedef enum { CUSPARSE_ORDER_COL = 1, CUSPARSE_ORDER_ROW } cusparseOrder_t;
typedef enum { CUSPARSE_INDEX_16U = 1, CUSPARSE_INDEX_32I, CUSPARSE_INDEX_64I } cusparseIndexType_t;
typedef enum { CUSPARSE_SPMAT_FILL_MODE = 0, CUSPARSE_SPMAT_DIAG_TYPE } cusparseSpMatAttribute_t;
typedef enum {
  CUSPARSE_SPMV_ALG_DEFAULT = 0,
  CUSPARSE_SPMV_COO_ALG1,
  CUSPARSE_SPMV_CSR_ALG1,
  CUSPARSE_SPMV_CSR_ALG2,
  CUSPARSE_SPMV_COO_ALG2
} cusparseSpMVAlg_t;
typedef enum {
  CUSPARSE_SPMM_ALG_DEFAULT = 0,
  CUSPARSE_SPMM_COO_ALG1,
  CUSPARSE_SPMM_COO_ALG2,
  CUSPARSE_SPMM_COO_ALG3,
  CUSPARSE_SPMM_CSR_ALG1,
  CUSPARSE_SPMM_COO_ALG4,
  CUSPARSE_SPMM_CSR_ALG2,
  CUSPARSE_SPMM_CSR_ALG3 = 12
} cusparseSpMMAlg_t;
typedef enum {
  CUSPARSE_SPGEMM_DEFAULT = 0,
  CUSPARSE_SPGEMM_CSR_ALG_DETERMINITIC,
  CUSPARSE_SPGEMM_CSR_ALG_NONDETERMINITIC,
  CUSPARSE_SPGEMM_ALG1,
  CUSPARSE_SPGEMM_ALG2,
  CUSPARSE_SPGEMM_ALG3
} cusparseSpGEMMAlg_t;
typedef enum { CUSPARSE_SDDMM_ALG_DEFAULT = 0 } cusparseSDDMMAlg_t;
typedef enum { CUSPARSE_SPSV_ALG_DEFAULT = 0 } cusparseSpSVAlg_t;
typedef enum { CUSPARSE_SPSM_ALG_DEFAULT = 0 } cusparseSpSMAlg_t;
typedef enum { CUSPARSE_SPARSETODENSE_ALG_DEFAULT = 0 } cusparseSparseToDenseAlg_t;
typedef enum { CUSPARSE_DENSETOSPARSE_ALG_DEFAULT = 0 } cusparseDenseToSparseAlg_t;
typedef enum { CUSPARSE_CSR2CSC_ALG_DEFAULT = 1, CUSPARSE_CSR2CSC_ALG1 = 1 } cusparseCsr2CscAlg_t;

typedef struct cusparseContext* cusparseHandle_t;
typedef struct cusparseMatDescr* cusparseMatDescr_t;
typedef struct cusparseSpVecDescr* cusparseSpVecDescr_t;
typedef struct cusparseDnVecDescr* cusparseDnVecDescr_t;
typedef struct cusparseSpMatDescr* cusparseSpMatDescr_t;
typedef struct cusparseDnMatDescr* cusparseDnMatDescr_t;
typedef const struct cusparseSpVecDescr* cusparseConstSpVecDescr_t;
typedef const struct cusparseDnVecDescr* cusparseConstDnVecDescr_t;
typedef const struct cusparseSpMatDescr* cusparseConstSpMatDescr_t;
typedef const struct cusparseDnMatDescr* cusparseConstDnMatDescr_t;
typedef struct cusparseSpGEMMDescr* cusparseSpGEMMDescr_t;
typedef struct cusparseSpSVDescr* cusparseSpSVDescr_t;
typedef struct cusparseSpSMDescr* cusparseSpSMDescr_t;
typedef struct csrilu02Info* csrilu02Info_t;

#ifdef __cplusplus
extern "C" {
#endif
#define WARPSIM_SPARSE(name, parameters, body) cusparseStatus_t name parameters;
#include "cusparse_calls.h"
#undef WARPSIM_SPARSE
const char* cusparseGetErrorName(cusparseStatus_t status);
const char* cusparseGetErrorString(cusparseStatus_t status);
cusparseMatrixType_t cusparseGetMatType(const cusparseMatDescr_t descr);
cusparseFillMode_t cusparseGetMatFillMode(const cusparseMatDescr_t descr);
cusparseDiagType_t cusparseGetMatDiagType(const cusparseMatDescr_t descr);
cusparseIndexBase_t cusparseGetMatIndexBase(const cusparseMatDescr_t descr);
#ifdef __cplusplus
}
#endif
