// The functions: WARPSIM_SPARSE(name, parameters, how it is computed). Declared by cusparse.h,
// defined by cusparse.cpp.
#define WARPSIM_H cusparseHandle_t handle
#define WARPSIM_SP cusparseConstSpMatDescr_t
#define WARPSIM_OPS cusparseOperation_t opA, cusparseOperation_t opB

WARPSIM_SPARSE(cusparseCreate, (cusparseHandle_t* handle), make(handle))
WARPSIM_SPARSE(cusparseDestroy, (WARPSIM_H), destroy(handle))
WARPSIM_SPARSE(cusparseGetVersion, (WARPSIM_H, int* version), give(version, CUSPARSE_VERSION))
WARPSIM_SPARSE(cusparseSetStream, (WARPSIM_H, cudaStream_t stream), give(&handle->stream, stream))
WARPSIM_SPARSE(cusparseGetStream, (WARPSIM_H, cudaStream_t* stream), give(stream, handle->stream))
WARPSIM_SPARSE(cusparseSetPointerMode, (WARPSIM_H, cusparsePointerMode_t mode), give(&handle->scalars, mode))
WARPSIM_SPARSE(cusparseGetPointerMode, (WARPSIM_H, cusparsePointerMode_t* mode), give(mode, handle->scalars))

WARPSIM_SPARSE(cusparseCreateMatDescr, (cusparseMatDescr_t* descr), make(descr))
WARPSIM_SPARSE(cusparseDestroyMatDescr, (cusparseMatDescr_t descr), destroy(descr))
WARPSIM_SPARSE(cusparseSetMatType, (cusparseMatDescr_t descr, cusparseMatrixType_t type), give(&descr->type, type))
WARPSIM_SPARSE(cusparseSetMatFillMode, (cusparseMatDescr_t descr, cusparseFillMode_t fill), give(&descr->fill, fill))
WARPSIM_SPARSE(cusparseSetMatDiagType, (cusparseMatDescr_t descr, cusparseDiagType_t diagonal), give(&descr->diagonal, diagonal))
WARPSIM_SPARSE(cusparseSetMatIndexBase, (cusparseMatDescr_t descr, cusparseIndexBase_t base), give(&descr->base, base))

WARPSIM_SPARSE(cusparseCreateSpVec, (cusparseSpVecDescr_t* descr, int64_t size, int64_t nnz, void* indices, void* values, cusparseIndexType_t index_type, cusparseIndexBase_t base, cudaDataType type), make(descr, {size, nnz, indices, values, index_type, base, type}))
WARPSIM_SPARSE(cusparseDestroySpVec, (cusparseConstSpVecDescr_t descr), destroy(descr))
WARPSIM_SPARSE(cusparseCreateDnVec, (cusparseDnVecDescr_t* descr, int64_t size, void* values, cudaDataType type), make(descr, {size, values, type}))
WARPSIM_SPARSE(cusparseDestroyDnVec, (cusparseConstDnVecDescr_t descr), destroy(descr))
WARPSIM_SPARSE(cusparseDnVecSetValues, (cusparseDnVecDescr_t descr, void* values), give(&descr->values, values))
WARPSIM_SPARSE(cusparseDnVecGetValues, (cusparseDnVecDescr_t descr, void** values), give(values, descr->values))
WARPSIM_SPARSE(cusparseCreateDnMat, (cusparseDnMatDescr_t* descr, int64_t rows, int64_t columns, int64_t ld, void* values, cudaDataType type, cusparseOrder_t order), make(descr, {rows, columns, ld, values, type, order}))
WARPSIM_SPARSE(cusparseDestroyDnMat, (cusparseConstDnMatDescr_t descr), destroy(descr))
WARPSIM_SPARSE(cusparseDnMatSetValues, (cusparseDnMatDescr_t descr, void* values), give(&descr->values, values))
WARPSIM_SPARSE(cusparseDnMatSetStridedBatch, (cusparseDnMatDescr_t descr, int count, int64_t stride), batch(descr, count, stride, 0))
WARPSIM_SPARSE(cusparseCreateCsr, (cusparseSpMatDescr_t* descr, int64_t rows, int64_t columns, int64_t nnz, void* offsets, void* indices, void* values, cusparseIndexType_t offset_type, cusparseIndexType_t index_type, cusparseIndexBase_t base, cudaDataType type), make(descr, {CUSPARSE_FORMAT_CSR, rows, columns, nnz, offsets, indices, values, offset_type, index_type, base, type}))
WARPSIM_SPARSE(cusparseCreateCsc, (cusparseSpMatDescr_t* descr, int64_t rows, int64_t columns, int64_t nnz, void* offsets, void* indices, void* values, cusparseIndexType_t offset_type, cusparseIndexType_t index_type, cusparseIndexBase_t base, cudaDataType type), make(descr, {CUSPARSE_FORMAT_CSC, rows, columns, nnz, offsets, indices, values, offset_type, index_type, base, type}))
WARPSIM_SPARSE(cusparseCreateCoo, (cusparseSpMatDescr_t* descr, int64_t rows, int64_t columns, int64_t nnz, void* row_indices, void* column_indices, void* values, cusparseIndexType_t index_type, cusparseIndexBase_t base, cudaDataType type), make(descr, {CUSPARSE_FORMAT_COO, rows, columns, nnz, row_indices, column_indices, values, index_type, index_type, base, type}))
WARPSIM_SPARSE(cusparseDestroySpMat, (WARPSIM_SP descr), destroy(descr))
WARPSIM_SPARSE(cusparseSpMatGetSize, (WARPSIM_SP descr, int64_t* rows, int64_t* columns, int64_t* nnz), (give(rows, descr->rows), give(columns, descr->columns), give(nnz, descr->nnz)))
WARPSIM_SPARSE(cusparseSpMatSetValues, (cusparseSpMatDescr_t descr, void* values), give(&descr->values, values))
WARPSIM_SPARSE(cusparseSpMatSetAttribute, (cusparseSpMatDescr_t descr, cusparseSpMatAttribute_t attribute, void* value, size_t size), set_attribute(descr, attribute, value, size))
WARPSIM_SPARSE(cusparseCsrSetPointers, (cusparseSpMatDescr_t descr, void* offsets, void* indices, void* values), set_pointers(descr, offsets, indices, values))
WARPSIM_SPARSE(cusparseCooSetPointers, (cusparseSpMatDescr_t descr, void* rows, void* columns, void* values), set_pointers(descr, rows, columns, values))
WARPSIM_SPARSE(cusparseCsrSetStridedBatch, (cusparseSpMatDescr_t descr, int count, int64_t offsets, int64_t indices), batch(descr, count, indices, offsets))
WARPSIM_SPARSE(cusparseCooSetStridedBatch, (cusparseSpMatDescr_t descr, int count, int64_t stride), batch(descr, count, stride, stride))

WARPSIM_SPARSE(cusparseAxpby, (WARPSIM_H, const void* alpha, cusparseConstSpVecDescr_t x, const void* beta, cusparseDnVecDescr_t y), axpby(handle, alpha, *x, beta, *y))
WARPSIM_SPARSE(cusparseGather, (WARPSIM_H, cusparseConstDnVecDescr_t y, cusparseSpVecDescr_t x), gather(handle, *y, *x))
WARPSIM_SPARSE(cusparseScatter, (WARPSIM_H, cusparseConstSpVecDescr_t x, cusparseDnVecDescr_t y), scatter(handle, *x, *y))

#define WARPSIM_SPMV WARPSIM_H, cusparseOperation_t opA, const void* alpha, WARPSIM_SP A, cusparseConstDnVecDescr_t x, const void* beta, cusparseDnVecDescr_t y, cudaDataType type, cusparseSpMVAlg_t algorithm
WARPSIM_SPARSE(cusparseSpMV_bufferSize, (WARPSIM_SPMV, size_t* bytes), give(bytes, kBuffer))
WARPSIM_SPARSE(cusparseSpMV_preprocess, (WARPSIM_SPMV, void* buffer), ready(handle))
WARPSIM_SPARSE(cusparseSpMV, (WARPSIM_SPMV, void* buffer), multiply_vector(handle, opA, alpha, *A, *x, beta, *y, type))
#define WARPSIM_SPMM WARPSIM_H, WARPSIM_OPS, const void* alpha, WARPSIM_SP A, cusparseConstDnMatDescr_t B, const void* beta, cusparseDnMatDescr_t C, cudaDataType type, cusparseSpMMAlg_t algorithm
WARPSIM_SPARSE(cusparseSpMM_bufferSize, (WARPSIM_SPMM, size_t* bytes), give(bytes, kBuffer))
WARPSIM_SPARSE(cusparseSpMM_preprocess, (WARPSIM_SPMM, void* buffer), ready(handle))
WARPSIM_SPARSE(cusparseSpMM, (WARPSIM_SPMM, void* buffer), multiply_dense(handle, opA, opB, alpha, *A, *B, beta, *C, type))
#define WARPSIM_SDDMM WARPSIM_H, WARPSIM_OPS, const void* alpha, cusparseConstDnMatDescr_t A, cusparseConstDnMatDescr_t B, const void* beta, cusparseSpMatDescr_t C, cudaDataType type, cusparseSDDMMAlg_t algorithm
WARPSIM_SPARSE(cusparseSDDMM_bufferSize, (WARPSIM_SDDMM, size_t* bytes), give(bytes, kBuffer))
WARPSIM_SPARSE(cusparseSDDMM_preprocess, (WARPSIM_SDDMM, void* buffer), ready(handle))
WARPSIM_SPARSE(cusparseSDDMM, (WARPSIM_SDDMM, void* buffer), sampled(handle, opA, opB, alpha, *A, *B, beta, *C, type))
WARPSIM_SPARSE(cusparseSpGEMM_createDescr, (cusparseSpGEMMDescr_t* descr), make(descr))
WARPSIM_SPARSE(cusparseSpGEMM_destroyDescr, (cusparseSpGEMMDescr_t descr), destroy(descr))
#define WARPSIM_SPGEMM WARPSIM_H, WARPSIM_OPS, const void* alpha, WARPSIM_SP A, WARPSIM_SP B, const void* beta, cusparseSpMatDescr_t C, cudaDataType type, cusparseSpGEMMAlg_t algorithm, cusparseSpGEMMDescr_t descr
WARPSIM_SPARSE(cusparseSpGEMM_workEstimation, (WARPSIM_SPGEMM, size_t* bytes, void* buffer), give(bytes, kBuffer))
WARPSIM_SPARSE(cusparseSpGEMM_compute, (WARPSIM_SPGEMM, size_t* bytes, void* buffer), buffer ? multiply_sparse(handle, opA, opB, alpha, *A, *B, beta, *C, type, *descr) : give(bytes, kBuffer))
WARPSIM_SPARSE(cusparseSpGEMM_copy, (WARPSIM_SPGEMM), copy_product(handle, *C, *descr))
WARPSIM_SPARSE(cusparseSparseToDense_bufferSize, (WARPSIM_H, WARPSIM_SP A, cusparseDnMatDescr_t B, cusparseSparseToDenseAlg_t algorithm, size_t* bytes), give(bytes, kBuffer))
WARPSIM_SPARSE(cusparseSparseToDense, (WARPSIM_H, WARPSIM_SP A, cusparseDnMatDescr_t B, cusparseSparseToDenseAlg_t algorithm, void* buffer), to_dense(handle, *A, *B))
WARPSIM_SPARSE(cusparseDenseToSparse_bufferSize, (WARPSIM_H, cusparseConstDnMatDescr_t A, cusparseSpMatDescr_t B, cusparseDenseToSparseAlg_t algorithm, size_t* bytes), give(bytes, kBuffer))
WARPSIM_SPARSE(cusparseDenseToSparse_analysis, (WARPSIM_H, cusparseConstDnMatDescr_t A, cusparseSpMatDescr_t B, cusparseDenseToSparseAlg_t algorithm, void* buffer), count_dense(handle, *A, *B))
WARPSIM_SPARSE(cusparseDenseToSparse_convert, (WARPSIM_H, cusparseConstDnMatDescr_t A, cusparseSpMatDescr_t B, cusparseDenseToSparseAlg_t algorithm, void* buffer), to_sparse(handle, *A, *B))

WARPSIM_SPARSE(cusparseSpSV_createDescr, (cusparseSpSVDescr_t* descr), make(descr))
WARPSIM_SPARSE(cusparseSpSV_destroyDescr, (cusparseSpSVDescr_t descr), destroy(descr))
#define WARPSIM_SPSV WARPSIM_H, cusparseOperation_t opA, const void* alpha, WARPSIM_SP A, cusparseConstDnVecDescr_t x, cusparseDnVecDescr_t y, cudaDataType type, cusparseSpSVAlg_t algorithm, cusparseSpSVDescr_t descr
WARPSIM_SPARSE(cusparseSpSV_bufferSize, (WARPSIM_SPSV, size_t* bytes), give(bytes, kBuffer))
WARPSIM_SPARSE(cusparseSpSV_analysis, (WARPSIM_SPSV, void* buffer), ready(handle))
WARPSIM_SPARSE(cusparseSpSV_solve, (WARPSIM_SPSV), solve(handle, "cusparseSpSV_solve", opA, CUSPARSE_OPERATION_NON_TRANSPOSE, alpha, *A, {x->size, 1, x->size, x->values, x->type, CUSPARSE_ORDER_COL}, {y->size, 1, y->size, y->values, y->type, CUSPARSE_ORDER_COL}, type))
WARPSIM_SPARSE(cusparseSpSM_createDescr, (cusparseSpSMDescr_t* descr), make(descr))
WARPSIM_SPARSE(cusparseSpSM_destroyDescr, (cusparseSpSMDescr_t descr), destroy(descr))
#define WARPSIM_SPSM WARPSIM_H, WARPSIM_OPS, const void* alpha, WARPSIM_SP A, cusparseConstDnMatDescr_t B, cusparseDnMatDescr_t C, cudaDataType type, cusparseSpSMAlg_t algorithm, cusparseSpSMDescr_t descr
WARPSIM_SPARSE(cusparseSpSM_bufferSize, (WARPSIM_SPSM, size_t* bytes), give(bytes, kBuffer))
WARPSIM_SPARSE(cusparseSpSM_analysis, (WARPSIM_SPSM, void* buffer), ready(handle))
WARPSIM_SPARSE(cusparseSpSM_solve, (WARPSIM_SPSM), solve(handle, "cusparseSpSM_solve", opA, opB, alpha, *A, *B, *C, type))

#define WARPSIM_CSR2CSC WARPSIM_H, int m, int n, int nnz, const void* values, const int* offsets, const int* indices, void* to_values, int* to_offsets, int* to_indices, cudaDataType type, cusparseAction_t action, cusparseIndexBase_t base, cusparseCsr2CscAlg_t algorithm
WARPSIM_SPARSE(cusparseCsr2cscEx2_bufferSize, (WARPSIM_CSR2CSC, size_t* bytes), give(bytes, kBuffer))
WARPSIM_SPARSE(cusparseCsr2cscEx2, (WARPSIM_CSR2CSC, void* buffer), transpose(handle, m, n, nnz, values, offsets, indices, to_values, to_offsets, to_indices, type, action, base))
WARPSIM_SPARSE(cusparseCreateIdentityPermutation, (WARPSIM_H, int n, int* permutation), count_up(handle, n, permutation))
WARPSIM_SPARSE(cusparseXcsrsort_bufferSizeExt, (WARPSIM_H, int m, int n, int nnz, const int* offsets, const int* indices, size_t* bytes), give(bytes, kBuffer))
WARPSIM_SPARSE(cusparseXcsrsort, (WARPSIM_H, int m, int n, int nnz, const cusparseMatDescr_t descr, const int* offsets, int* indices, int* permutation, void* buffer), sort_rows(handle, m, nnz, descr->base, offsets, indices, permutation))

#define WARPSIM_SPARSE_TYPED(X, T) \
  WARPSIM_SPARSE(cusparse##X##nnz, (WARPSIM_H, cusparseDirection_t direction, int m, int n, const cusparseMatDescr_t descr, const T* A, int lda, int* counts, int* total), count_nonzero("cusparse" #X "nnz", handle, direction, m, n, A, lda, counts, total)) \
  WARPSIM_SPARSE(cusparse##X##csrilu02_bufferSize, (WARPSIM_H, int m, int nnz, const cusparseMatDescr_t descr, T* values, const int* offsets, const int* indices, csrilu02Info_t info, int* bytes), give(bytes, int(kBuffer))) \
  WARPSIM_SPARSE(cusparse##X##csrilu02_analysis, (WARPSIM_H, int m, int nnz, const cusparseMatDescr_t descr, const T* values, const int* offsets, const int* indices, csrilu02Info_t info, cusparseSolvePolicy_t policy, void* buffer), ready(handle)) \
  WARPSIM_SPARSE(cusparse##X##csrilu02, (WARPSIM_H, int m, int nnz, const cusparseMatDescr_t descr, T* values, const int* offsets, const int* indices, csrilu02Info_t info, cusparseSolvePolicy_t policy, void* buffer), incomplete_lu("cusparse" #X "csrilu02", handle, m, nnz, descr->base, values, offsets, indices, *info))
WARPSIM_SPARSE_TYPED(S, float)
WARPSIM_SPARSE_TYPED(D, double)
WARPSIM_SPARSE(cusparseCreateCsrilu02Info, (csrilu02Info_t* info), make(info))
WARPSIM_SPARSE(cusparseDestroyCsrilu02Info, (csrilu02Info_t info), destroy(info))
WARPSIM_SPARSE(cusparseXcsrilu02_zeroPivot, (WARPSIM_H, csrilu02Info_t info, int* position), zero_pivot(handle, *info, position))

#undef WARPSIM_H
#undef WARPSIM_SP
#undef WARPSIM_OPS
#undef WARPSIM_SPMV
#undef WARPSIM_SPMM
#undef WARPSIM_SDDMM
#undef WARPSIM_SPGEMM
#undef WARPSIM_SPSV
#undef WARPSIM_SPSM
#undef WARPSIM_CSR2CSC
#undef WARPSIM_SPARSE_TYPED
