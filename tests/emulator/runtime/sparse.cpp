// Calls of cuSPARSE on random operands, each against double precision on the host: prints those whose
// results differ, and how many there were.
#include <cuda_runtime.h>
#include <cusparse.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <vector>

using Values = std::vector<double>;
constexpr int m = 9, n = 7, k = 5;
int calls = 0;

template <class T>
T* device(const std::vector<T>& all) {
  T* made;
  cudaMalloc(&made, all.size() * sizeof(T) + 1);
  cudaMemcpy(made, all.data(), all.size() * sizeof(T), cudaMemcpyHostToDevice);
  return made;
}

template <class T>
void expect(const char* name, const T* result, const Values& wanted) {
  std::vector<T> all(wanted.size());
  cudaMemcpy(all.data(), result, all.size() * sizeof(T), cudaMemcpyDeviceToHost);
  ++calls;
  for (size_t i = 0; i < all.size(); ++i) {
    if (!(std::fabs(double(all[i]) - wanted[i]) <= 1e-5 * (1 + std::fabs(wanted[i])))) {
      printf("%s: element %zu is %g, not %g\n", name, i, double(all[i]), wanted[i]);
      return;
    }
  }
}

// A third of the elements are zero; the diagonal is large.
struct Both {
  Both(int rows, int columns) : rows(rows), columns(columns), dense(rows * columns), offsets(1) {
    for (int i = 0; i < rows; ++i) {
      for (int j = 0; j < columns; ++j) {
        if (i != j && rand() % 3 == 0) continue;
        dense[i * columns + j] = float(rand() / double(RAND_MAX) + (i == j ? 4 : 0));
        indices.push_back(j), values.push_back(float(dense[i * columns + j]));
      }
      offsets.push_back(int(indices.size()));
    }
    cusparseCreateCsr(&descr, rows, columns, indices.size(), device(offsets), device(indices), device(values),
                      CUSPARSE_INDEX_32I, CUSPARSE_INDEX_32I, CUSPARSE_INDEX_BASE_ZERO, CUDA_R_32F);
  }
  double operator()(int i, int j) const { return dense[i * columns + j]; }
  int rows, columns;
  Values dense;
  std::vector<int> offsets, indices;
  std::vector<float> values;
  cusparseSpMatDescr_t descr;
};

int main() {
  const auto N = CUSPARSE_OPERATION_NON_TRANSPOSE, T = CUSPARSE_OPERATION_TRANSPOSE;
  cusparseHandle_t handle;
  cusparseCreate(&handle);
  const Both A(m, n), B(n, k);
  const float alpha = 1.5f, beta = -0.5f, none = 0;
  std::vector<float> x(64);
  for (float& each : x) each = rand() / float(RAND_MAX);
  for (auto op : {N, T}) {
    const int rows = op == N ? m : n, columns = op == N ? n : m;
    cusparseDnVecDescr_t in, out;
    float* to = device(x);
    cusparseCreateDnVec(&in, columns, device(x), CUDA_R_32F);
    cusparseCreateDnVec(&out, rows, to, CUDA_R_32F);
    Values wanted(rows);
    for (int i = 0; i < rows; ++i) {
      wanted[i] = beta * x[i];
      for (int j = 0; j < columns; ++j) wanted[i] += alpha * (op == N ? A(i, j) : A(j, i)) * x[j];
    }
    size_t bytes;
    cusparseSpMV_bufferSize(handle, op, &alpha, A.descr, in, &beta, out, CUDA_R_32F, CUSPARSE_SPMV_ALG_DEFAULT, &bytes);
    cusparseSpMV(handle, op, &alpha, A.descr, in, &beta, out, CUDA_R_32F, CUSPARSE_SPMV_ALG_DEFAULT, nullptr);
    expect("SpMV", to, wanted);
  }
  cusparseDnMatDescr_t right, result;  // B by rows, C by columns, which nobody has written
  std::vector<float> b(B.dense.begin(), B.dense.end());
  float* c;
  cudaMalloc(&c, m * k * sizeof(float));
  cusparseCreateDnMat(&right, n, k, k, device(b), CUDA_R_32F, CUSPARSE_ORDER_ROW);
  cusparseCreateDnMat(&result, m, k, m, c, CUDA_R_32F, CUSPARSE_ORDER_COL);
  cusparseSpMM(handle, N, N, &alpha, A.descr, right, &none, result, CUDA_R_32F, CUSPARSE_SPMM_ALG_DEFAULT, nullptr);
  Values product(m * k), by_columns(m * k);
  for (int i = 0; i < m; ++i) {
    for (int j = 0; j < k; ++j) {
      for (int p = 0; p < n; ++p) product[i * k + j] += alpha * A(i, p) * B(p, j);
      by_columns[i + j * m] = product[i * k + j];
    }
  }
  expect("SpMM", c, by_columns);

  cusparseSpMatDescr_t sparse;
  int* offsets;
  cudaMalloc(&offsets, (m + 1) * sizeof(int));
  cusparseCreateCsr(&sparse, m, k, 0, offsets, nullptr, nullptr, CUSPARSE_INDEX_32I, CUSPARSE_INDEX_32I,
                    CUSPARSE_INDEX_BASE_ZERO, CUDA_R_32F);
  cusparseSpGEMMDescr_t work;
  cusparseSpGEMM_createDescr(&work);
  size_t bytes = 0;
  cusparseSpGEMM_compute(handle, N, N, &alpha, A.descr, B.descr, &none, sparse, CUDA_R_32F, CUSPARSE_SPGEMM_DEFAULT,
                         work, &bytes, nullptr);
  void* buffer;
  cudaMalloc(&buffer, bytes);
  cusparseSpGEMM_compute(handle, N, N, &alpha, A.descr, B.descr, &none, sparse, CUDA_R_32F, CUSPARSE_SPGEMM_DEFAULT,
                         work, &bytes, buffer);
  int64_t rows, columns, nnz;
  cusparseSpMatGetSize(sparse, &rows, &columns, &nnz);
  int* indices;
  float* values;
  cudaMalloc(&indices, nnz * sizeof(int));
  cudaMalloc(&values, nnz * sizeof(float));
  cusparseCsrSetPointers(sparse, offsets, indices, values);
  cusparseSpGEMM_copy(handle, N, N, &alpha, A.descr, B.descr, &none, sparse, CUDA_R_32F, CUSPARSE_SPGEMM_DEFAULT, work);
  float* dense;
  cudaMalloc(&dense, m * k * sizeof(float));
  cusparseDnMatDescr_t again;
  cusparseCreateDnMat(&again, m, k, k, dense, CUDA_R_32F, CUSPARSE_ORDER_ROW);
  cusparseSparseToDense(handle, sparse, again, CUSPARSE_SPARSETODENSE_ALG_DEFAULT, nullptr);
  expect("SpGEMM and SparseToDense", dense, product);

  cusparseSpMatDescr_t columns_of;  // the same product, by columns
  int* starts;
  cudaMalloc(&starts, (k + 1) * sizeof(int));
  cusparseCreateCsc(&columns_of, m, k, 0, starts, indices, values, CUSPARSE_INDEX_32I, CUSPARSE_INDEX_32I,
                    CUSPARSE_INDEX_BASE_ONE, CUDA_R_32F);
  cusparseDenseToSparse_analysis(handle, again, columns_of, CUSPARSE_DENSETOSPARSE_ALG_DEFAULT, nullptr);
  cusparseDenseToSparse_convert(handle, again, columns_of, CUSPARSE_DENSETOSPARSE_ALG_DEFAULT, nullptr);
  cudaMemset(dense, 0, m * k * sizeof(float));
  cusparseSparseToDense(handle, columns_of, again, CUSPARSE_SPARSETODENSE_ALG_DEFAULT, nullptr);
  expect("DenseToSparse", dense, product);

  float* sampled = device(A.values);
  cusparseCsrSetPointers(sparse, device(A.offsets), device(A.indices), sampled);
  cusparseSpMatDescr_t pattern;
  cusparseCreateCsr(&pattern, m, n, A.indices.size(), device(A.offsets), device(A.indices), sampled,
                    CUSPARSE_INDEX_32I, CUSPARSE_INDEX_32I, CUSPARSE_INDEX_BASE_ZERO, CUDA_R_32F);
  cusparseSDDMM(handle, N, T, &alpha, result, right, &beta, pattern, CUDA_R_32F, CUSPARSE_SDDMM_ALG_DEFAULT, nullptr);
  Values at_pattern;
  for (int i = 0; i < m; ++i) {
    for (int at = A.offsets[i]; at < A.offsets[i + 1]; ++at) {
      double sum = beta * A.values[at];
      for (int p = 0; p < k; ++p) sum += alpha * product[i * k + p] * B(A.indices[at], p);
      at_pattern.push_back(sum);
    }
  }
  expect("SDDMM", sampled, at_pattern);

  const Both S(n, n);  // an incomplete LU, and its two triangles solved
  cusparseMatDescr_t general;
  cusparseCreateMatDescr(&general);
  csrilu02Info_t info;
  cusparseCreateCsrilu02Info(&info);
  float* lu = device(S.values);
  const int* s_offsets = device(S.offsets);
  const int* s_indices = device(S.indices);
  cusparseScsrilu02(handle, n, S.values.size(), general, lu, s_offsets, s_indices, info,
                    CUSPARSE_SOLVE_POLICY_USE_LEVEL, nullptr);
  int zero;
  if (cusparseXcsrilu02_zeroPivot(handle, info, &zero) != CUSPARSE_STATUS_SUCCESS) printf("zero pivot %d\n", zero);
  Values factors = S.dense;
  for (int i = 0; i < n; ++i) {
    for (int p = 0; p < i; ++p) {
      if (S(i, p) == 0) continue;
      factors[i * n + p] /= factors[p * n + p];
      for (int j = p + 1; j < n; ++j) {
        if (S(i, j) != 0) factors[i * n + j] -= factors[i * n + p] * factors[p * n + j];
      }
    }
  }
  Values stored;
  for (double each : factors) {
    if (each != 0) stored.push_back(each);
  }
  expect("csrilu02", lu, stored);
  cusparseSpSVDescr_t solver;
  cusparseSpSV_createDescr(&solver);
  cusparseDnVecDescr_t in, out;
  float* solution;
  cudaMalloc(&solution, n * sizeof(float));
  cusparseCreateDnVec(&in, n, device(x), CUDA_R_32F);
  cusparseCreateDnVec(&out, n, solution, CUDA_R_32F);
  for (auto op : {N, T}) {
    for (auto fill : {CUSPARSE_FILL_MODE_LOWER, CUSPARSE_FILL_MODE_UPPER}) {
      cusparseSpMatDescr_t triangle;
      cusparseCreateCsr(&triangle, n, n, S.values.size(), (void*)s_offsets, (void*)s_indices, lu, CUSPARSE_INDEX_32I,
                        CUSPARSE_INDEX_32I, CUSPARSE_INDEX_BASE_ZERO, CUDA_R_32F);
      auto diagonal = fill == CUSPARSE_FILL_MODE_LOWER ? CUSPARSE_DIAG_TYPE_UNIT : CUSPARSE_DIAG_TYPE_NON_UNIT;
      cusparseSpMatSetAttribute(triangle, CUSPARSE_SPMAT_FILL_MODE, &fill, sizeof fill);
      cusparseSpMatSetAttribute(triangle, CUSPARSE_SPMAT_DIAG_TYPE, &diagonal, sizeof diagonal);
      cusparseSpSV_solve(handle, op, &alpha, triangle, in, out, CUDA_R_32F, CUSPARSE_SPSV_ALG_DEFAULT, solver);
      std::vector<float> y(n);
      cudaMemcpy(y.data(), solution, n * sizeof(float), cudaMemcpyDeviceToHost);
      Values back(n), given(n);
      for (int i = 0; i < n; ++i) {
        for (int j = 0; j < n; ++j) {
          const int row = op == N ? i : j, column = op == N ? j : i;
          const bool inside = fill == CUSPARSE_FILL_MODE_LOWER ? column < row : column > row;
          if (row == column) back[i] += (diagonal == CUSPARSE_DIAG_TYPE_UNIT ? 1 : factors[i * n + i]) * y[j];
          if (inside) back[i] += factors[row * n + column] * y[j];
        }
        given[i] = alpha * x[i];
      }
      std::vector<float> rounded(back.begin(), back.end());
      expect("SpSV", device(rounded), given);
    }
  }

  std::vector<int> turned_offsets(n + 1), shuffled = A.indices;
  int *to_offsets = device(turned_offsets), *to_rows = device(A.indices);
  float* to_values = device(A.values);
  cusparseCsr2cscEx2(handle, m, n, A.values.size(), device(A.values), device(A.offsets), device(A.indices), to_values,
                     to_offsets, to_rows, CUDA_R_32F, CUSPARSE_ACTION_NUMERIC, CUSPARSE_INDEX_BASE_ZERO,
                     CUSPARSE_CSR2CSC_ALG1, nullptr);
  Values columns_first;
  for (int j = 0; j < n; ++j) {
    for (int i = 0; i < m; ++i) {
      if (A(i, j) != 0) columns_first.push_back(A(i, j));
    }
  }
  expect("Csr2csc", to_values, columns_first);
  std::swap(shuffled[0], shuffled[1]);
  int *sorted = device(shuffled), *permutation = device(shuffled);
  cusparseCreateIdentityPermutation(handle, shuffled.size(), permutation);
  cusparseXcsrsort(handle, m, n, shuffled.size(), general, device(A.offsets), sorted, permutation, nullptr);
  expect("csrsort", sorted, Values(A.indices.begin(), A.indices.end()));
  expect("its permutation", permutation, {1, 0, 2, 3});
  int total, *counts = device(std::vector<int>(k));
  cusparseSnnz(handle, CUSPARSE_DIRECTION_ROW, k, n, general, device(b), k, counts, &total);
  expect("nnz", device(std::vector<int>{total}), {double(B.values.size())});
  cusparseSpVecDescr_t few;
  cusparseCreateSpVec(&few, n, 2, device(std::vector<int>{1, 3}), device(std::vector<float>{10, 20}),
                      CUSPARSE_INDEX_32I, CUSPARSE_INDEX_BASE_ZERO, CUDA_R_32F);
  cusparseDnVecDescr_t zeros;
  float* few_dense = device(std::vector<float>(n));
  cusparseCreateDnVec(&zeros, n, few_dense, CUDA_R_32F);
  cusparseScatter(handle, few, zeros);
  cusparseAxpby(handle, &alpha, few, &beta, zeros);
  expect("Axpby", few_dense, {0, 10, 0, 20, 0});
  cusparseStatus_t status = cusparseSpMV(handle, N, &alpha, A.descr, zeros, &beta, in, CUDA_R_32F,
                                         CUSPARSE_SPMV_ALG_DEFAULT, nullptr);
  if (status != CUSPARSE_STATUS_INVALID_VALUE) printf("of other extents: %d\n", status);
  cusparseSpMatDescr_t beyond;  // its second entry lies in column 7 of 7
  cusparseCreateCoo(&beyond, n, n, 2, device(std::vector<int>{1, 2}), device(std::vector<int>{1, 7}),
                    device(std::vector<float>{1, 2}), CUSPARSE_INDEX_32I, CUSPARSE_INDEX_BASE_ZERO, CUDA_R_32F);
  cusparseSpMV(handle, N, &alpha, beyond, zeros, &none, in, CUDA_R_32F, CUSPARSE_SPMV_ALG_DEFAULT, nullptr);
  std::vector<int> backward = S.indices;
  std::reverse(backward.begin(), backward.end());
  cusparseScsrilu02(handle, n, backward.size(), general, lu, s_offsets, device(backward), info,
                    CUSPARSE_SOLVE_POLICY_USE_LEVEL, nullptr);
  printf("%d calls\n", calls);
}
