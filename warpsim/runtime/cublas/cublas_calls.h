// The functions, of all types: WARPSIM_CALL(name, parameters, how it is computed) for those whose
// symbol ends in _v2, WARPSIM_PLAIN for others. Declared by cublas_v2.h, defined by cublas.cpp.
WARPSIM_CALL(cublasCreate, (cublasHandle_t* handle), make_handle(handle))
WARPSIM_CALL(cublasDestroy, (cublasHandle_t handle), destroy_handle(handle))
WARPSIM_CALL(cublasGetVersion, (cublasHandle_t handle, int* version), version_of(handle, version))
WARPSIM_CALL(cublasSetStream, (cublasHandle_t handle, cudaStream_t stream), set(handle, &cublasContext::stream, stream))
WARPSIM_CALL(cublasGetStream, (cublasHandle_t handle, cudaStream_t* stream), get(handle, &cublasContext::stream, stream))
WARPSIM_CALL(cublasSetPointerMode, (cublasHandle_t handle, cublasPointerMode_t mode), set(handle, &cublasContext::scalars, mode))
WARPSIM_CALL(cublasGetPointerMode, (cublasHandle_t handle, cublasPointerMode_t* mode), get(handle, &cublasContext::scalars, mode))
WARPSIM_CALL(cublasSetWorkspace, (cublasHandle_t handle, void* workspace, size_t bytes), ignored(handle, workspace, bytes))
WARPSIM_PLAIN(cublasSetMathMode, (cublasHandle_t handle, cublasMath_t mode), set(handle, &cublasContext::math, mode))
WARPSIM_PLAIN(cublasGetMathMode, (cublasHandle_t handle, cublasMath_t* mode), get(handle, &cublasContext::math, mode))
WARPSIM_PLAIN(cublasSetAtomicsMode, (cublasHandle_t handle, cublasAtomicsMode_t mode), set(handle, &cublasContext::atomics, mode))
WARPSIM_PLAIN(cublasSetVector, (int n, int size, const void* x, int incx, void* y, int incy), copy_vector(n, size, x, incx, y, incy, cudaMemcpyHostToDevice))
WARPSIM_PLAIN(cublasGetVector, (int n, int size, const void* x, int incx, void* y, int incy), copy_vector(n, size, x, incx, y, incy, cudaMemcpyDeviceToHost))
WARPSIM_PLAIN(cublasSetMatrix, (int m, int n, int size, const void* A, int lda, void* B, int ldb), copy_matrix(m, n, size, A, lda, B, ldb, cudaMemcpyHostToDevice))
WARPSIM_PLAIN(cublasGetMatrix, (int m, int n, int size, const void* A, int lda, void* B, int ldb), copy_matrix(m, n, size, A, lda, B, ldb, cudaMemcpyDeviceToHost))
WARPSIM_PLAIN(cublasGemmEx, (cublasHandle_t handle, cublasOperation_t ta, cublasOperation_t tb, int m, int n, int k, const void* alpha, const void* A, cudaDataType a_type, int lda, const void* B, cudaDataType b_type, int ldb, const void* beta, void* C, cudaDataType c_type, int ldc, cublasComputeType_t compute, cublasGemmAlgo_t algo), gemm_ex(handle, {ta, tb, m, n, k, lda, ldb, ldc}, alpha, {A, a_type}, {B, b_type}, beta, {C, c_type}, compute, algo))
WARPSIM_PLAIN(cublasGemmStridedBatchedEx, (cublasHandle_t handle, cublasOperation_t ta, cublasOperation_t tb, int m, int n, int k, const void* alpha, const void* A, cudaDataType a_type, int lda, long long stride_a, const void* B, cudaDataType b_type, int ldb, long long stride_b, const void* beta, void* C, cudaDataType c_type, int ldc, long long stride_c, int count, cublasComputeType_t compute, cublasGemmAlgo_t algo), gemm_ex(handle, {ta, tb, m, n, k, lda, ldb, ldc, stride_a, stride_b, stride_c, count}, alpha, {A, a_type}, {B, b_type}, beta, {C, c_type}, compute, algo))
WARPSIM_PLAIN(cublasSgemmEx, (cublasHandle_t handle, cublasOperation_t ta, cublasOperation_t tb, int m, int n, int k, const float* alpha, const void* A, cudaDataType a_type, int lda, const void* B, cudaDataType b_type, int ldb, const float* beta, void* C, cudaDataType c_type, int ldc), gemm_ex(handle, {ta, tb, m, n, k, lda, ldb, ldc}, alpha, {A, a_type}, {B, b_type}, beta, {C, c_type}, CUBLAS_COMPUTE_32F, CUBLAS_GEMM_DEFAULT))
WARPSIM_PLAIN(cublasDotEx, (cublasHandle_t handle, int n, const void* x, cudaDataType x_type, int incx, const void* y, cudaDataType y_type, int incy, void* result, cudaDataType result_type, cudaDataType execution), dot_ex(handle, n, {x, x_type}, incx, {y, y_type}, incy, {result, result_type}, execution))
WARPSIM_PLAIN(cublasNrm2Ex, (cublasHandle_t handle, int n, const void* x, cudaDataType x_type, int incx, void* result, cudaDataType result_type, cudaDataType execution), nrm2_ex(handle, n, {x, x_type}, incx, {result, result_type}, execution))

#define WARPSIM_GEMMS(X, T, CALL) \
  CALL(cublas##X##gemm, (cublasHandle_t handle, cublasOperation_t ta, cublasOperation_t tb, int m, int n, int k, const T* alpha, const T* A, int lda, const T* B, int ldb, const T* beta, T* C, int ldc), gemm("cublas" #X "gemm", handle, {ta, tb, m, n, k, lda, ldb, ldc}, alpha, A, B, beta, C)) \
  WARPSIM_PLAIN(cublas##X##gemmStridedBatched, (cublasHandle_t handle, cublasOperation_t ta, cublasOperation_t tb, int m, int n, int k, const T* alpha, const T* A, int lda, long long stride_a, const T* B, int ldb, long long stride_b, const T* beta, T* C, int ldc, long long stride_c, int count), gemm("cublas" #X "gemmStridedBatched", handle, {ta, tb, m, n, k, lda, ldb, ldc, stride_a, stride_b, stride_c, count}, alpha, A, B, beta, C)) \
  WARPSIM_PLAIN(cublas##X##gemmBatched, (cublasHandle_t handle, cublasOperation_t ta, cublasOperation_t tb, int m, int n, int k, const T* alpha, const T* const* A, int lda, const T* const* B, int ldb, const T* beta, T* const* C, int ldc, int count), gemm_batched("cublas" #X "gemmBatched", handle, {ta, tb, m, n, k, lda, ldb, ldc, 0, 0, 0, count}, alpha, A, B, beta, C))

#define WARPSIM_TYPED(X, x, T) \
  WARPSIM_CALL(cublas##X##axpy, (cublasHandle_t handle, int n, const T* alpha, const T* x_, int incx, T* y, int incy), axpy("cublas" #X "axpy", handle, n, alpha, x_, incx, y, incy)) \
  WARPSIM_CALL(cublas##X##copy, (cublasHandle_t handle, int n, const T* x_, int incx, T* y, int incy), copy("cublas" #X "copy", handle, n, x_, incx, y, incy)) \
  WARPSIM_CALL(cublas##X##swap, (cublasHandle_t handle, int n, T* x_, int incx, T* y, int incy), swap("cublas" #X "swap", handle, n, x_, incx, y, incy)) \
  WARPSIM_CALL(cublas##X##scal, (cublasHandle_t handle, int n, const T* alpha, T* x_, int incx), scal("cublas" #X "scal", handle, n, alpha, x_, incx)) \
  WARPSIM_CALL(cublas##X##dot, (cublasHandle_t handle, int n, const T* x_, int incx, const T* y, int incy, T* result), dot<T>("cublas" #X "dot", handle, n, x_, incx, y, incy, result)) \
  WARPSIM_CALL(cublas##X##nrm2, (cublasHandle_t handle, int n, const T* x_, int incx, T* result), nrm2<T>("cublas" #X "nrm2", handle, n, x_, incx, result)) \
  WARPSIM_CALL(cublas##X##asum, (cublasHandle_t handle, int n, const T* x_, int incx, T* result), asum("cublas" #X "asum", handle, n, x_, incx, result)) \
  WARPSIM_CALL(cublasI##x##amax, (cublasHandle_t handle, int n, const T* x_, int incx, int* result), furthest("cublasI" #x "amax", handle, n, x_, incx, result, true)) \
  WARPSIM_CALL(cublasI##x##amin, (cublasHandle_t handle, int n, const T* x_, int incx, int* result), furthest("cublasI" #x "amin", handle, n, x_, incx, result, false)) \
  WARPSIM_CALL(cublas##X##gemv, (cublasHandle_t handle, cublasOperation_t ta, int m, int n, const T* alpha, const T* A, int lda, const T* x_, int incx, const T* beta, T* y, int incy), gemv("cublas" #X "gemv", handle, ta, m, n, alpha, A, lda, x_, incx, beta, y, incy)) \
  WARPSIM_CALL(cublas##X##ger, (cublasHandle_t handle, int m, int n, const T* alpha, const T* x_, int incx, const T* y, int incy, T* A, int lda), ger("cublas" #X "ger", handle, m, n, alpha, x_, incx, y, incy, A, lda)) \
  WARPSIM_GEMMS(X, T, WARPSIM_CALL) \
  WARPSIM_CALL(cublas##X##trsm, (cublasHandle_t handle, cublasSideMode_t side, cublasFillMode_t part, cublasOperation_t ta, cublasDiagType_t diagonal, int m, int n, const T* alpha, const T* A, int lda, T* B, int ldb), trsm("cublas" #X "trsm", handle, side, part, ta, diagonal, m, n, alpha, A, lda, B, ldb)) \
  WARPSIM_PLAIN(cublas##X##geam, (cublasHandle_t handle, cublasOperation_t ta, cublasOperation_t tb, int m, int n, const T* alpha, const T* A, int lda, const T* beta, const T* B, int ldb, T* C, int ldc), geam("cublas" #X "geam", handle, ta, tb, m, n, alpha, A, lda, beta, B, ldb, C, ldc)) \
  WARPSIM_PLAIN(cublas##X##getrfBatched, (cublasHandle_t handle, int n, T* const* A, int lda, int* pivots, int* info, int count), getrf("cublas" #X "getrfBatched", handle, n, A, lda, pivots, info, count)) \
  WARPSIM_PLAIN(cublas##X##getriBatched, (cublasHandle_t handle, int n, const T* const* A, int lda, const int* pivots, T* const* C, int ldc, int* info, int count), getri("cublas" #X "getriBatched", handle, n, A, lda, pivots, C, ldc, info, count))

WARPSIM_TYPED(S, s, float)
WARPSIM_TYPED(D, d, double)
WARPSIM_GEMMS(H, __half, WARPSIM_PLAIN)
#undef WARPSIM_TYPED
#undef WARPSIM_GEMMS
