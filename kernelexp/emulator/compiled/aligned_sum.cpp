// The tensor core's aligned sum in compiled code. tensor.py says what it computes, and why float64
// holds it exactly: the order of the additions does not matter.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <vector>

#include "array.hpp"

namespace {

double power_of_two(int exponent) {
  const uint64_t biased = static_cast<uint64_t>(std::max(exponent + 1023, 1)) << 52;
  double value;
  std::memcpy(&value, &biased, sizeof value);
  return value;
}

}  // namespace

// total[m, n] = sum over k of left[m, k] * right[k, n], and addend[m, n]: each term truncated to a
// multiple of 2^(its element's largest exponent - fraction).
extern "C" KX_CLONES int kx_aligned_sum(int64_t m, int64_t n, int64_t depth, int64_t fraction,
                                        const kx::Array* left_values,
                                        const kx::Array* right_values,
                                        const kx::Array* left_powers,
                                        const kx::Array* right_powers, const kx::Array* addends,
                                        const kx::Array* addend_powers, const kx::Array* totals) {
  const auto* left = reinterpret_cast<const double*>(left_values->data);
  const auto* right = reinterpret_cast<const double*>(right_values->data);
  const auto* left_exponents = reinterpret_cast<const int16_t*>(left_powers->data);
  const auto* right_exponents = reinterpret_cast<const int16_t*>(right_powers->data);
  const auto* addend = reinterpret_cast<const double*>(addends->data);
  const auto* addend_exponents = reinterpret_cast<const int16_t*>(addend_powers->data);
  auto* total = reinterpret_cast<double*>(totals->data);
  std::vector<int16_t> highest(n);
  std::vector<double> unit(n), inverse(n), sum(n);
  for (int64_t i = 0; i < m; ++i) {
    int16_t* top = highest.data();
    std::copy_n(addend_exponents + i * n, n, top);
    for (int64_t k = 0; k < depth; ++k) {
      const int16_t own = left_exponents[i * depth + k];
      const int16_t* others = right_exponents + k * n;
      for (int64_t j = 0; j < n; ++j) {
        top[j] = std::max<int16_t>(top[j], static_cast<int16_t>(own + others[j]));
      }
    }
    for (int64_t j = 0; j < n; ++j) {
      unit[j] = power_of_two(top[j] - fraction);
      inverse[j] = 1.0 / unit[j];
      sum[j] = std::trunc(addend[i * n + j] * inverse[j]);
    }
    for (int64_t k = 0; k < depth; ++k) {
      const double own = left[i * depth + k];
      const double* others = right + k * n;
      for (int64_t j = 0; j < n; ++j) {
        sum[j] += std::trunc(inverse[j] * others[j] * own);
      }
    }
    for (int64_t j = 0; j < n; ++j) {
      total[i * n + j] = sum[j] * unit[j];
    }
  }
  return 0;
}
