#include "array.hpp"

// Whether arrays are laid out as these functions take them to be: data, shape and strides of a
// matrix as the caller knows them.
extern "C" int kx_is_array(const kx::Array* a, const char* data, int64_t rows, int64_t columns,
                           int64_t row, int64_t column) {
  return a->dimensions == 2 && a->data == data && a->shape[0] == rows && a->shape[1] == columns &&
         a->strides[0] == row && a->strides[1] == column;
}
