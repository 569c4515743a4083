// The functions of cusparse_calls.h, in f32 and f64.
#include "cusparse.h"

#include <algorithm>
#include <map>
#include <numeric>
#include <vector>

#include "../cudart/operands.hpp"

struct cusparseContext {
  cudaStream_t stream = nullptr;
  cusparsePointerMode_t scalars = CUSPARSE_POINTER_MODE_HOST;
};
struct cusparseMatDescr {
  cusparseMatrixType_t type = CUSPARSE_MATRIX_TYPE_GENERAL;
  cusparseFillMode_t fill = CUSPARSE_FILL_MODE_LOWER;
  cusparseDiagType_t diagonal = CUSPARSE_DIAG_TYPE_NON_UNIT;
  cusparseIndexBase_t base = CUSPARSE_INDEX_BASE_ZERO;
};
struct cusparseSpVecDescr {
  int64_t size, nnz;
  void *indices, *values;
  cusparseIndexType_t index_type;
  cusparseIndexBase_t base;
  cudaDataType type;
};
struct cusparseDnVecDescr {
  int64_t size;
  void* values;
  cudaDataType type;
};
struct cusparseDnMatDescr {
  int64_t rows, columns, ld;
  void* values;
  cudaDataType type;
  cusparseOrder_t order;
  int64_t count = 1, stride = 0;
};
// Of COO, `offsets` are the indices of rows.
struct cusparseSpMatDescr {
  cusparseFormat_t format;
  int64_t rows, columns, nnz;
  void *offsets, *indices, *values;
  cusparseIndexType_t offset_type, index_type;
  cusparseIndexBase_t base;
  cudaDataType type;
  cusparseFillMode_t fill = CUSPARSE_FILL_MODE_LOWER;
  cusparseDiagType_t diagonal = CUSPARSE_DIAG_TYPE_NON_UNIT;
  int64_t count = 1, stride = 0, offset_stride = 0;
};
// Between cusparseSpGEMM_compute and _copy.
struct cusparseSpGEMMDescr {
  std::vector<int64_t> offsets, columns;
  std::vector<double> values;
};
struct cusparseSpSVDescr {};
struct cusparseSpSMDescr {};
struct csrilu02Info {
  int zero = -1;
};

using namespace warpsim;

namespace {

constexpr size_t kBuffer = 256;
using Status = cusparseStatus_t;
using Dense = cusparseDnMatDescr;
using Sparse = cusparseSpMatDescr;

template <class T>
Status make(T** descr, T initial = {}) {
  *descr = new T(initial);
  return CUSPARSE_STATUS_SUCCESS;
}

template <class T>
Status destroy(T* descr) {
  delete descr;
  return CUSPARSE_STATUS_SUCCESS;
}

template <class T>
Status give(T* to, T value) {
  if (!to) return CUSPARSE_STATUS_INVALID_VALUE;
  *to = value;
  return CUSPARSE_STATUS_SUCCESS;
}

Status ready(cusparseHandle_t handle) {
  return handle ? CUSPARSE_STATUS_SUCCESS : CUSPARSE_STATUS_NOT_INITIALIZED;
}

Status batch(Dense* descr, int count, int64_t stride, int64_t) {
  descr->count = count, descr->stride = stride;
  return CUSPARSE_STATUS_SUCCESS;
}

Status batch(Sparse* descr, int count, int64_t stride, int64_t offset_stride) {
  descr->count = count, descr->stride = stride, descr->offset_stride = offset_stride;
  return CUSPARSE_STATUS_SUCCESS;
}

Status set_pointers(Sparse* descr, void* offsets, void* indices, void* values) {
  descr->offsets = offsets, descr->indices = indices, descr->values = values;
  return CUSPARSE_STATUS_SUCCESS;
}

Status set_attribute(Sparse* descr, cusparseSpMatAttribute_t attribute, const void* value, size_t size) {
  if (size != sizeof(int)) return CUSPARSE_STATUS_INVALID_VALUE;
  if (attribute == CUSPARSE_SPMAT_FILL_MODE) {
    descr->fill = *static_cast<const cusparseFillMode_t*>(value);
  } else {
    descr->diagonal = *static_cast<const cusparseDiagType_t*>(value);
  }
  return CUSPARSE_STATUS_SUCCESS;
}

// In the order of the handle's stream.
Status in_stream(const std::string& name, cusparseHandle_t handle, const std::function<void()>& work) {
  if (!handle) return CUSPARSE_STATUS_NOT_INITIALIZED;
  return compute(name, handle->stream, work) == cudaSuccess ? CUSPARSE_STATUS_SUCCESS
                                                            : CUSPARSE_STATUS_EXECUTION_FAILED;
}

// The same for what the host asks for: it is done when the call returns.
Status at_once(const std::string& name, cusparseHandle_t handle, const std::function<void()>& work) {
  const Status status = in_stream(name, handle, work);
  if (status != CUSPARSE_STATUS_SUCCESS) return status;
  return cudaStreamSynchronize(handle->stream) == cudaSuccess ? status
                                                              : CUSPARSE_STATUS_EXECUTION_FAILED;
}

// `act` of a number of the type, if all of `types` are that one.
template <class F>
Status typed(std::initializer_list<cudaDataType> types, F act) {
  const cudaDataType type = *types.begin();
  if (std::any_of(types.begin(), types.end(), [&](cudaDataType each) { return each != type; })) {
    return CUSPARSE_STATUS_NOT_SUPPORTED;
  }
  if (type == CUDA_R_32F) return act(float());
  if (type == CUDA_R_64F) return act(double());
  return CUSPARSE_STATUS_NOT_SUPPORTED;
}

// A scalar of the host's, read now; or one of the device's, read when the work is done.
template <class T>
std::function<T()> scalar(cusparseHandle_t handle, const std::string& name, const void* pointer) {
  if (handle && handle->scalars == CUSPARSE_POINTER_MODE_DEVICE) {
    return [=] { return *elements<const T>(name + " reads a scalar", pointer, 1, true); };
  }
  const T value = *static_cast<const T*>(pointer);
  return [value] { return value; };
}

template <class T>
void* after(void* pointer, int64_t count) {
  return static_cast<T*>(pointer) + count;
}

template <class I>
std::vector<int64_t> indices_of(const std::string& what, const void* from, int64_t n, int base) {
  const I* first = elements<const I>(what, from, n, true);
  std::vector<int64_t> all(first, first + n);
  for (int64_t& each : all) each -= base;
  return all;
}

std::vector<int64_t> indices(const std::string& what, const void* from, cusparseIndexType_t type,
                             int64_t n, int base) {
  if (type == CUSPARSE_INDEX_64I) return indices_of<int64_t>(what, from, n, base);
  if (type == CUSPARSE_INDEX_16U) return indices_of<uint16_t>(what, from, n, base);
  return indices_of<int32_t>(what, from, n, base);
}

void write_indices(const std::string& what, void* to, cusparseIndexType_t type,
                   const std::vector<int64_t>& all, int base) {
  const int64_t n = all.size();
  if (type == CUSPARSE_INDEX_64I) {
    std::transform(all.begin(), all.end(), elements<int64_t>(what, to, n, false),
                   [=](int64_t each) { return each + base; });
  } else {
    std::transform(all.begin(), all.end(), elements<int32_t>(what, to, n, false),
                   [=](int64_t each) { return int32_t(each + base); });
  }
}

// Where a number of a sparse matrix belongs, and its place among the values.
struct Entry {
  int64_t row, column, at;
};

// Its entries in their order.
std::vector<Entry> entries(const std::string& name, const Sparse& A, int64_t which, bool turned) {
  const int64_t step = A.index_type == CUSPARSE_INDEX_64I ? 8 : 4;
  const int64_t offset_step = A.offset_type == CUSPARSE_INDEX_64I ? 8 : 4;
  const void* first = static_cast<char*>(A.offsets) + which * A.offset_stride * offset_step;
  const void* second = static_cast<char*>(A.indices) + which * A.stride * step;
  const auto inner = indices(name + " reads indices", second, A.index_type, A.nnz, A.base);
  std::vector<Entry> all(A.nnz);
  if (A.format == CUSPARSE_FORMAT_COO) {
    const auto outer = indices(name + " reads indices", first, A.offset_type, A.nnz, A.base);
    for (int64_t i = 0; i < A.nnz; ++i) all[i] = {outer[i], inner[i], i};
  } else {
    const int64_t lines = A.format == CUSPARSE_FORMAT_CSR ? A.rows : A.columns;
    const auto offsets = indices(name + " reads offsets", first, A.offset_type, lines + 1, A.base);
    for (int64_t line = 0; line < lines; ++line) {
      for (int64_t i = offsets[line]; i < offsets[line + 1] && i < A.nnz; ++i) all[i] = {line, inner[i], i};
    }
  }
  for (Entry& each : all) {
    if (A.format == CUSPARSE_FORMAT_CSC) std::swap(each.row, each.column);
    if (each.row < 0 || each.row >= A.rows || each.column < 0 || each.column >= A.columns) {
      const std::string place = std::to_string(each.row) + ", " + std::to_string(each.column);
      __warpsim_report("copy-out-of-bounds", (name + " has an entry at " + place + ", outside its matrix of " + std::to_string(A.rows) + " x " + std::to_string(A.columns) + ".").c_str());
      throw Elsewhere{};
    }
    if (turned) std::swap(each.row, each.column);
  }
  return all;
}

template <class T>
const T* values_of(const std::string& name, const Sparse& A, int64_t which) {
  return elements<const T>(name + " reads values", after<T>(A.values, which * A.stride), A.nnz, true);
}

// op(A), dense.
template <class T>
class Grid {
 public:
  Grid(const std::string& what, const Dense& A, int64_t which, bool turned, bool read)
      : turned_(turned != (A.order == CUSPARSE_ORDER_ROW)),
        all_(what, static_cast<T*>(A.values) + which * A.stride,
             A.order == CUSPARSE_ORDER_ROW ? A.columns : A.rows,
             A.order == CUSPARSE_ORDER_ROW ? A.rows : A.columns, A.ld, read) {}
  T& operator()(int64_t row, int64_t column) const {
    return turned_ ? all_(column, row) : all_(row, column);
  }

 private:
  bool turned_;
  Matrix<T> all_;
};

bool turns(cusparseOperation_t op) { return op != CUSPARSE_OPERATION_NON_TRANSPOSE; }

// Whether op(A) op(B) has the extents of C.
template <class Left, class Right, class Result>
bool fit(cusparseOperation_t op_a, const Left& A, cusparseOperation_t op_b, const Right& B, const Result& C) {
  return (turns(op_a) ? A.columns : A.rows) == C.rows && (turns(op_b) ? B.rows : B.columns) == C.columns &&
         (turns(op_a) ? A.rows : A.columns) == (turns(op_b) ? B.columns : B.rows);
}

Status axpby(cusparseHandle_t handle, const void* alpha, const cusparseSpVecDescr& x,
             const void* beta, const cusparseDnVecDescr& y) {
  return typed({x.type, y.type}, [&](auto number) {
    using T = decltype(number);
    const std::string name = "cusparseAxpby";
    return in_stream(name, handle, [=, a = scalar<T>(handle, name, alpha), b = scalar<T>(handle, name, beta)] {
      const auto at = indices(name + " reads indices", x.indices, x.index_type, x.nnz, x.base);
      const T* from = elements<const T>(name + " reads values", x.values, x.nnz, true);
      T* to = elements<T>(name + " reads y", y.values, y.size, true);
      const T factor = b();
      std::for_each(to, to + y.size, [=](T& each) { each *= factor; });
      for (int64_t i = 0; i < x.nnz; ++i) to[at[i]] += a() * from[i];
    });
  });
}

Status gather(cusparseHandle_t handle, const cusparseDnVecDescr& y, const cusparseSpVecDescr& x) {
  return typed({x.type, y.type}, [&](auto number) {
    using T = decltype(number);
    return in_stream("cusparseGather", handle, [=] {
      const auto at = indices("cusparseGather reads indices", x.indices, x.index_type, x.nnz, x.base);
      T* to = elements<T>("cusparseGather writes values", x.values, x.nnz, false);
      const T* from = static_cast<const T*>(y.values);
      for (int64_t i = 0; i < x.nnz; ++i) to[i] = *elements<const T>("cusparseGather reads y", from + at[i], 1, true);
    });
  });
}

Status scatter(cusparseHandle_t handle, const cusparseSpVecDescr& x, const cusparseDnVecDescr& y) {
  return typed({x.type, y.type}, [&](auto number) {
    using T = decltype(number);
    return in_stream("cusparseScatter", handle, [=] {
      const auto at = indices("cusparseScatter reads indices", x.indices, x.index_type, x.nnz, x.base);
      const T* from = elements<const T>("cusparseScatter reads values", x.values, x.nnz, true);
      for (int64_t i = 0; i < x.nnz; ++i) {
        *elements<T>("cusparseScatter writes y", static_cast<T*>(y.values) + at[i], 1, false) = from[i];
      }
    });
  });
}

// C = alpha op(A) op(B) + beta C of each matrix of a batch.
template <class T>
Status multiply(const std::string& name, cusparseHandle_t handle, cusparseOperation_t op_a,
                cusparseOperation_t op_b, const void* alpha, const Sparse& A, const Dense& B,
                const void* beta, const Dense& C) {
  if (!fit(op_a, A, op_b, B, C)) return CUSPARSE_STATUS_INVALID_VALUE;
  return in_stream(name, handle, [=, a = scalar<T>(handle, name, alpha), b = scalar<T>(handle, name, beta)] {
    const T scale = a(), keep = b();
    for (int64_t which = 0; which < C.count; ++which) {
      const auto all = entries(name, A, which, turns(op_a));
      const T* values = values_of<T>(name, A, which);
      const Grid<const T> from(name + " reads B", {B.rows, B.columns, B.ld, B.values, B.type, B.order, B.count, B.stride}, which, turns(op_b), true);
      if (keep != T(0)) Grid<T>(name + " reads C", C, which, false, true);
      const Grid<T> to(name + " writes C", C, which, false, false);
      std::vector<T> sums(C.rows);
      for (int64_t j = 0; j < C.columns; ++j) {
        std::fill(sums.begin(), sums.end(), T(0));
        for (const Entry& each : all) sums[each.row] += values[each.at] * from(each.column, j);
        for (int64_t i = 0; i < C.rows; ++i) {
          to(i, j) = scale * sums[i] + (keep != T(0) ? keep * to(i, j) : T(0));
        }
      }
    }
  });
}

Dense one_column(const cusparseDnVecDescr& x) {
  return {x.size, 1, x.size, x.values, x.type, CUSPARSE_ORDER_COL};
}

Status multiply_vector(cusparseHandle_t handle, cusparseOperation_t op, const void* alpha,
                       const Sparse& A, const cusparseDnVecDescr& x, const void* beta,
                       const cusparseDnVecDescr& y, cudaDataType type) {
  return typed({type, A.type, x.type, y.type}, [&](auto number) {
    return multiply<decltype(number)>("cusparseSpMV", handle, op, CUSPARSE_OPERATION_NON_TRANSPOSE,
                                      alpha, A, one_column(x), beta, one_column(y));
  });
}

Status multiply_dense(cusparseHandle_t handle, cusparseOperation_t op_a, cusparseOperation_t op_b,
                      const void* alpha, const Sparse& A, const Dense& B, const void* beta,
                      const Dense& C, cudaDataType type) {
  return typed({type, A.type, B.type, C.type}, [&](auto number) {
    return multiply<decltype(number)>("cusparseSpMM", handle, op_a, op_b, alpha, A, B, beta, C);
  });
}

// C = alpha (op(A) op(B)) + beta C where C has entries.
Status sampled(cusparseHandle_t handle, cusparseOperation_t op_a, cusparseOperation_t op_b,
               const void* alpha, const Dense& A, const Dense& B, const void* beta, const Sparse& C,
               cudaDataType type) {
  if (!fit(op_a, A, op_b, B, C)) return CUSPARSE_STATUS_INVALID_VALUE;
  return typed({type, A.type, B.type, C.type}, [&](auto number) {
    using T = decltype(number);
    const std::string name = "cusparseSDDMM";
    const int64_t depth = turns(op_a) ? A.rows : A.columns;
    return in_stream(name, handle, [=, a = scalar<T>(handle, name, alpha), b = scalar<T>(handle, name, beta)] {
      const T scale = a(), keep = b();
      for (int64_t which = 0; which < C.count; ++which) {
        const Grid<T> left(name + " reads A", A, which, turns(op_a), true);
        const Grid<T> right(name + " reads B", B, which, turns(op_b), true);
        T* to = elements<T>(name + " reads C", after<T>(C.values, which * C.stride), C.nnz, keep != T(0));
        for (const Entry& each : entries(name, C, which, false)) {
          T sum = 0;
          for (int64_t k = 0; k < depth; ++k) sum += left(each.row, k) * right(k, each.column);
          to[each.at] = scale * sum + (keep != T(0) ? keep * to[each.at] : T(0));
        }
      }
    });
  });
}

Status multiply_sparse(cusparseHandle_t handle, cusparseOperation_t op_a, cusparseOperation_t op_b,
                       const void* alpha, const Sparse& A, const Sparse& B, const void* beta,
                       Sparse& C, cudaDataType type, cusparseSpGEMMDescr& product) {
  if (!fit(op_a, A, op_b, B, C)) return CUSPARSE_STATUS_INVALID_VALUE;
  return typed({type, A.type, B.type, C.type}, [&](auto number) {
    using T = decltype(number);
    const std::string name = "cusparseSpGEMM_compute";
    const auto a = scalar<T>(handle, name, alpha), b = scalar<T>(handle, name, beta);
    return at_once(name, handle, [&] {
      std::vector<std::vector<Entry>> rows(turns(op_b) ? B.columns : B.rows);
      for (const Entry& each : entries(name, B, 0, turns(op_b))) rows[each.row].push_back(each);
      const T *left = values_of<T>(name, A, 0), *right = values_of<T>(name, B, 0);
      std::vector<std::map<int64_t, T>> sums(C.rows);
      for (const Entry& each : entries(name, A, 0, turns(op_a))) {
        for (const Entry& other : rows[each.column]) {
          sums[each.row][other.column] += a() * left[each.at] * right[other.at];
        }
      }
      if (b() != T(0) && C.nnz) {
        const T* before = values_of<T>(name, C, 0);
        for (const Entry& each : entries(name, C, 0, false)) sums[each.row][each.column] += b() * before[each.at];
      }
      product = {{0}, {}, {}};
      for (const auto& row : sums) {
        for (const auto& [column, sum] : row) product.columns.push_back(column), product.values.push_back(sum);
        product.offsets.push_back(product.columns.size());
      }
      C.nnz = product.columns.size();
    });
  });
}

Status copy_product(cusparseHandle_t handle, const Sparse& C, const cusparseSpGEMMDescr& product) {
  return typed({C.type}, [&](auto number) {
    using T = decltype(number);
    const std::string name = "cusparseSpGEMM_copy";
    return at_once(name, handle, [&] {
      write_indices(name + " writes offsets", C.offsets, C.offset_type, product.offsets, C.base);
      write_indices(name + " writes indices", C.indices, C.index_type, product.columns, C.base);
      T* to = elements<T>(name + " writes values", C.values, C.nnz, false);
      std::copy(product.values.begin(), product.values.end(), to);
    });
  });
}

Status to_dense(cusparseHandle_t handle, const Sparse& A, const Dense& B) {
  if (A.rows != B.rows || A.columns != B.columns) return CUSPARSE_STATUS_INVALID_VALUE;
  return typed({A.type, B.type}, [&](auto number) {
    using T = decltype(number);
    const std::string name = "cusparseSparseToDense";
    return in_stream(name, handle, [=] {
      const T* values = values_of<T>(name, A, 0);
      const Grid<T> to(name + " writes B", B, 0, false, false);
      for (int64_t j = 0; j < B.columns; ++j) {
        for (int64_t i = 0; i < B.rows; ++i) to(i, j) = 0;
      }
      for (const Entry& each : entries(name, A, 0, false)) to(each.row, each.column) = values[each.at];
    });
  });
}

// What of A is not zero, in the order of B's format.
template <class T>
std::vector<Entry> nonzero(const Grid<T>& from, const Sparse& B) {
  std::vector<Entry> all;
  const bool by_columns = B.format == CUSPARSE_FORMAT_CSC;
  const int64_t lines = by_columns ? B.columns : B.rows, others = by_columns ? B.rows : B.columns;
  for (int64_t line = 0; line < lines; ++line) {
    for (int64_t other = 0; other < others; ++other) {
      if ((by_columns ? from(other, line) : from(line, other)) != T(0)) all.push_back({line, other, int64_t(all.size())});
    }
  }
  return all;
}

Status count_dense(cusparseHandle_t handle, const Dense& A, Sparse& B) {
  return typed({A.type, B.type}, [&](auto number) {
    using T = decltype(number);
    const std::string name = "cusparseDenseToSparse_analysis";
    return at_once(name, handle, [&] {
      const auto all = nonzero(Grid<T>(name + " reads A", A, 0, false, true), B);
      B.nnz = all.size();
      if (B.format == CUSPARSE_FORMAT_COO) return;
      std::vector<int64_t> offsets((B.format == CUSPARSE_FORMAT_CSC ? B.columns : B.rows) + 1);
      for (const Entry& each : all) ++offsets[each.row + 1];
      std::partial_sum(offsets.begin(), offsets.end(), offsets.begin());
      write_indices(name + " writes offsets", B.offsets, B.offset_type, offsets, B.base);
    });
  });
}

Status to_sparse(cusparseHandle_t handle, const Dense& A, const Sparse& B) {
  return typed({A.type, B.type}, [&](auto number) {
    using T = decltype(number);
    const std::string name = "cusparseDenseToSparse_convert";
    return in_stream(name, handle, [=] {
      const Grid<T> from(name + " reads A", A, 0, false, true);
      const auto all = nonzero(from, B);
      const bool by_columns = B.format == CUSPARSE_FORMAT_CSC;
      std::vector<int64_t> lines, others;
      T* to = elements<T>(name + " writes values", B.values, B.nnz, false);
      for (const Entry& each : all) {
        lines.push_back(each.row), others.push_back(each.column);
        to[each.at] = by_columns ? from(each.column, each.row) : from(each.row, each.column);
      }
      write_indices(name + " writes indices", B.indices, B.index_type, others, B.base);
      if (B.format == CUSPARSE_FORMAT_COO) write_indices(name + " writes indices", B.offsets, B.offset_type, lines, B.base);
    });
  });
}

// op(A) Y = alpha op(X), A a triangle.
Status solve(cusparseHandle_t handle, const std::string& name, cusparseOperation_t op_a,
             cusparseOperation_t op_b, const void* alpha, const Sparse& A, const Dense& X,
             const Dense& Y, cudaDataType type) {
  if (A.rows != A.columns || !fit(op_a, A, op_b, X, Y)) return CUSPARSE_STATUS_INVALID_VALUE;
  return typed({type, A.type, X.type, Y.type}, [&](auto number) {
    using T = decltype(number);
    return in_stream(name, handle, [=, a = scalar<T>(handle, name, alpha)] {
      const bool upper = (A.fill == CUSPARSE_FILL_MODE_UPPER) != turns(op_a);
      const bool unit = A.diagonal == CUSPARSE_DIAG_TYPE_UNIT;
      std::vector<std::vector<Entry>> rows(A.rows);
      for (const Entry& each : entries(name, A, 0, turns(op_a))) rows[each.row].push_back(each);
      const T* values = values_of<T>(name, A, 0);
      const Grid<T> from(name + " reads the right side", X, 0, turns(op_b), true);
      const Grid<T> to(name + " writes the solution", Y, 0, false, false);
      for (int64_t j = 0; j < Y.columns; ++j) {
        for (int64_t step = 0; step < A.rows; ++step) {
          const int64_t i = upper ? A.rows - 1 - step : step;
          T sum = a() * from(i, j), diagonal = 1;
          for (const Entry& each : rows[i]) {
            if (each.column == i && !unit) diagonal = values[each.at];
            if (upper ? each.column > i : each.column < i) sum -= values[each.at] * to(each.column, j);
          }
          to(i, j) = sum / diagonal;
        }
      }
    });
  });
}

Status transpose(cusparseHandle_t handle, int m, int n, int nnz, const void* values,
                 const int* offsets, const int* columns, void* to_values, int* to_offsets,
                 int* to_indices, cudaDataType type, cusparseAction_t action, int base) {
  return typed({type}, [&](auto number) {
    using T = decltype(number);
    const std::string name = "cusparseCsr2cscEx2";
    return in_stream(name, handle, [=] {
      const Sparse A{CUSPARSE_FORMAT_CSR, m, n, nnz, const_cast<int*>(offsets), const_cast<int*>(columns), const_cast<void*>(values),
                     CUSPARSE_INDEX_32I, CUSPARSE_INDEX_32I, cusparseIndexBase_t(base), type};
      auto all = entries(name, A, 0, true);
      std::stable_sort(all.begin(), all.end(), [](const Entry& x, const Entry& y) { return x.row < y.row; });
      std::vector<int64_t> first(n + 1), rows;
      for (const Entry& each : all) ++first[each.row + 1], rows.push_back(each.column);
      std::partial_sum(first.begin(), first.end(), first.begin());
      write_indices(name + " writes offsets", to_offsets, CUSPARSE_INDEX_32I, first, base);
      write_indices(name + " writes indices", to_indices, CUSPARSE_INDEX_32I, rows, base);
      if (action != CUSPARSE_ACTION_NUMERIC) return;
      const T* from = values_of<T>(name, A, 0);
      T* to = elements<T>(name + " writes values", to_values, nnz, false);
      for (const Entry& each : all) *to++ = from[each.at];
    });
  });
}

Status count_up(cusparseHandle_t handle, int n, int* permutation) {
  return in_stream("cusparseCreateIdentityPermutation", handle, [=] {
    int* to = elements<int>("cusparseCreateIdentityPermutation writes", permutation, n, false);
    std::iota(to, to + n, 0);
  });
}

Status sort_rows(cusparseHandle_t handle, int m, int nnz, int base, const int* offsets, int* columns,
                 int* permutation) {
  const std::string name = "cusparseXcsrsort";
  return in_stream(name, handle, [=] {
    const auto first = indices(name + " reads offsets", offsets, CUSPARSE_INDEX_32I, m + 1, base);
    int* to = elements<int>(name + " reads indices", columns, nnz, true);
    int* other = permutation ? elements<int>(name + " reads the permutation", permutation, nnz, true) : nullptr;
    for (int row = 0; row < m; ++row) {
      std::vector<std::pair<int, int>> line;
      for (int64_t i = first[row]; i < first[row + 1]; ++i) line.push_back({to[i], other ? other[i] : 0});
      std::stable_sort(line.begin(), line.end(), [](auto x, auto y) { return x.first < y.first; });
      for (size_t i = 0; i < line.size(); ++i) {
        to[first[row] + i] = line[i].first;
        if (other) other[first[row] + i] = line[i].second;
      }
    }
  });
}

template <class T>
Status count_nonzero(const std::string& name, cusparseHandle_t handle, cusparseDirection_t direction,
                     int m, int n, const T* A, int lda, int* counts, int* total) {
  int sum = 0;
  const bool by_rows = direction == CUSPARSE_DIRECTION_ROW;
  const bool on_device = handle && handle->scalars == CUSPARSE_POINTER_MODE_DEVICE;
  const Status status = at_once(name, handle, [&] {
    const Matrix<const T> from(name + " reads A", A, m, n, lda, true);
    int* to = elements<int>(name + " writes counts", counts, by_rows ? m : n, false);
    std::fill(to, to + (by_rows ? m : n), 0);
    for (int j = 0; j < n; ++j) {
      for (int i = 0; i < m; ++i) {
        if (from(i, j) != T(0)) ++to[by_rows ? i : j], ++sum;
      }
    }
    if (on_device) *elements<int>(name + " writes the total", total, 1, false) = sum;
  });
  if (!on_device) *total = sum;
  return status;
}

// The columns of each line have to rise.
void require_sorted(const std::string& name, const std::vector<int64_t>& offsets,
                    const std::vector<int64_t>& columns) {
  for (size_t line = 0; line + 1 < offsets.size(); ++line) {
    for (int64_t at = offsets[line] + 1; at < offsets[line + 1] && at < int64_t(columns.size()); ++at) {
      if (columns[at - 1] < columns[at]) continue;
      __warpsim_report("unsorted-indices", (name + " takes rows that are sorted by column: in row " + std::to_string(line) + ", column " + std::to_string(columns[at]) + " comes after " + std::to_string(columns[at - 1]) + ".").c_str());
      throw Elsewhere{};
    }
  }
}

// In place, without new entries.
template <class T>
Status incomplete_lu(const std::string& name, cusparseHandle_t handle, int m, int nnz, int base,
                     T* values, const int* offsets, const int* columns, csrilu02Info& info) {
  return at_once(name, handle, [&] {
    const auto first = indices(name + " reads offsets", offsets, CUSPARSE_INDEX_32I, m + 1, base);
    const auto column = indices(name + " reads indices", columns, CUSPARSE_INDEX_32I, nnz, base);
    require_sorted(name, first, column);
    T* value = elements<T>(name + " reads values", values, nnz, true);
    std::vector<int64_t> diagonal(m, -1), place(m, -1);
    info.zero = -1;
    for (int i = 0; i < m; ++i) {
      for (int64_t at = first[i]; at < first[i + 1]; ++at) place[column[at]] = at;
      for (int64_t at = first[i]; at < first[i + 1]; ++at) {
        const int64_t k = column[at];
        if (k == i) diagonal[i] = at;
        if (k >= i || diagonal[k] < 0) continue;
        value[at] /= value[diagonal[k]];
        for (int64_t other = diagonal[k] + 1; other < first[k + 1]; ++other) {
          if (place[column[other]] >= 0) value[place[column[other]]] -= value[at] * value[other];
        }
      }
      for (int64_t at = first[i]; at < first[i + 1]; ++at) place[column[at]] = -1;
      if (info.zero < 0 && (diagonal[i] < 0 || value[diagonal[i]] == T(0))) info.zero = i + base;
    }
  });
}

Status zero_pivot(cusparseHandle_t handle, const csrilu02Info& info, int* position) {
  *position = info.zero;
  return info.zero < 0 ? ready(handle) : CUSPARSE_STATUS_ZERO_PIVOT;
}

constexpr const char* kNames[] = {
    "CUSPARSE_STATUS_SUCCESS", "CUSPARSE_STATUS_NOT_INITIALIZED", "CUSPARSE_STATUS_ALLOC_FAILED",
    "CUSPARSE_STATUS_INVALID_VALUE", "CUSPARSE_STATUS_ARCH_MISMATCH", "CUSPARSE_STATUS_MAPPING_ERROR",
    "CUSPARSE_STATUS_EXECUTION_FAILED", "CUSPARSE_STATUS_INTERNAL_ERROR",
    "CUSPARSE_STATUS_MATRIX_TYPE_NOT_SUPPORTED", "CUSPARSE_STATUS_ZERO_PIVOT",
    "CUSPARSE_STATUS_NOT_SUPPORTED", "CUSPARSE_STATUS_INSUFFICIENT_RESOURCES"};

}  // namespace

extern "C" {
#define WARPSIM_SPARSE(name, parameters, body) \
  cusparseStatus_t name parameters { return body; }
#include "cusparse_calls.h"

const char* cusparseGetErrorName(cusparseStatus_t status) {
  return status >= 0 && status < int(std::size(kNames)) ? kNames[status] : "unknown status";
}
const char* cusparseGetErrorString(cusparseStatus_t status) { return cusparseGetErrorName(status); }
cusparseMatrixType_t cusparseGetMatType(const cusparseMatDescr_t descr) { return descr->type; }
cusparseFillMode_t cusparseGetMatFillMode(const cusparseMatDescr_t descr) { return descr->fill; }
cusparseDiagType_t cusparseGetMatDiagType(const cusparseMatDescr_t descr) { return descr->diagonal; }
cusparseIndexBase_t cusparseGetMatIndexBase(const cusparseMatDescr_t descr) { return descr->base; }
}
