// Products of the tensor core from codes to f32 patterns. tensor.py says what they are, and why
// float64 holds the sums exactly: the order of the additions does not matter.
#include <algorithm>
#include <cmath>
#include <cstring>
#include <vector>

#include "array.hpp"

namespace {

using kx::Array;

constexpr int kZero = -2000;  // the exponent of a zero: ZERO_EXPONENT

inline double power_of_two(int exponent) {
  const uint64_t biased = static_cast<uint64_t>(std::max(exponent + 1023, 1)) << 52;
  double value;
  std::memcpy(&value, &biased, sizeof value);
  return value;
}

// Values and exponents of every code of a type.
struct Table {
  const double* values;
  const int16_t* exponents;
  int code_bytes;
};

struct Decoded {
  std::vector<double> values;
  std::vector<int16_t> exponents;
};

// Elements [rows, depth], in the order given or, for `block` > 1, as [rows / block, depth, block];
// false if any is no finite number.
bool decode(const char* codes, const Table& table, int64_t rows, int64_t depth, int block,
            Decoded& to) {
  to.values.resize(rows * depth);
  to.exponents.resize(rows * depth);
  bool finite = true;
  for (int64_t row = 0; row < rows; ++row) {
    for (int64_t k = 0; k < depth; ++k) {
      const int64_t from = row * depth + k, at = (row / block * depth + k) * block + row % block;
      const unsigned code = table.code_bytes == 1
                                ? static_cast<unsigned char>(codes[from])
                                : kx::load<uint16_t>(codes + 2 * from);
      const double value = table.values[code];
      finite &= std::isfinite(value);
      to.values[at] = value;
      to.exponents[at] = table.exponents[code];
    }
  }
  return finite;
}

// One row of C as values and exponents; false if any is no finite number.
bool decode_addends(const char* patterns, int64_t n, double* values, int16_t* exponents) {
  bool finite = true;
  for (int64_t j = 0; j < n; ++j) {
    const uint32_t bits = kx::load<uint32_t>(patterns + 4 * j);
    const int field = bits >> 23 & 255;
    finite &= field != 255;
    values[j] = kx::load<float>(patterns + 4 * j);
    exponents[j] = bits << 1 ? std::max(field, 1) - 127 : kZero;
  }
  return finite;
}

// Sums toward zero to f32 patterns of `bits` significand bits, past the largest finite value to
// infinity; false if any is subnormal.
bool truncated(const double* sums, int64_t n, int bits, char* to) {
  bool plain = true;
  const uint64_t kept = ~((uint64_t{1} << (53 - bits)) - 1);
  for (int64_t j = 0; j < n; ++j) {
    const double magnitude = std::fabs(sums[j]);
    plain &= magnitude >= 0x1p-126 || magnitude == 0;
    uint64_t pattern;
    std::memcpy(&pattern, sums + j, sizeof pattern);
    pattern &= kept;
    double value;
    std::memcpy(&value, &pattern, sizeof value);
    const float result = static_cast<float>(magnitude == 0 ? 0.0 : value);
    std::memcpy(to + 4 * j, &result, sizeof result);
  }
  return plain;
}

// Work space, kept from call to call.
struct Space {
  Decoded left, right;
  std::vector<int16_t> top;
  std::vector<double> addend, sum;
};

// The sums of kBlock elements of a row, in registers; `others` and `powers` are [depth, kBlock].
template <int kBlock>
inline __attribute__((always_inline)) void block_of_row(
    const double* values, const int16_t* exponents, const double* others, const int16_t* powers,
    int64_t depth, int fraction, const double* addend, const int16_t* addend_exponents,
    double* sums) {
  int16_t top[kBlock];
  double unit[kBlock], inverse[kBlock], sum[kBlock];
  for (int j = 0; j < kBlock; ++j) top[j] = addend_exponents[j];
  for (int64_t k = 0; k < depth; ++k) {
    for (int j = 0; j < kBlock; ++j) {
      const int16_t power = static_cast<int16_t>(exponents[k] + powers[k * kBlock + j]);
      top[j] = power > top[j] ? power : top[j];
    }
  }
  for (int j = 0; j < kBlock; ++j) {
    unit[j] = power_of_two(top[j] - fraction);
    inverse[j] = 1.0 / unit[j];
    sum[j] = std::trunc(addend[j] * inverse[j]);
  }
  for (int64_t k = 0; k < depth; ++k) {
    for (int j = 0; j < kBlock; ++j) {
      sum[j] += std::trunc(inverse[j] * others[k * kBlock + j] * values[k]);
    }
  }
  for (int j = 0; j < kBlock; ++j) sums[j] = sum[j] * unit[j];
}

}  // namespace

// D [count, m, n] = A [count, m, depth] * B [count, n, depth]^T + C, each element's terms truncated
// to a multiple of 2^(its largest exponent - fraction), the sum to `bits` of f32; c may be no array
// (`adds` is 0). Returns 1, with D undefined, for what Python has to look at.
extern "C" KX_CLONES int kx_mma(int64_t count, int64_t m, int64_t n, int64_t depth, int fraction,
                                int bits, const Array* a, const double* a_values,
                                const int16_t* a_exponents, const Array* b, const double* b_values,
                                const int16_t* b_exponents, int code_bytes, const Array* c,
                                int adds, const Array* d) {
  if (n % 8) return 1;  // as no instruction has it
  const int block = n % 32 == 0 ? 32 : n % 16 == 0 ? 16 : 8;
  static Space s;
  s.top.resize(n);
  s.addend.resize(n);
  s.sum.resize(n);
  const Table left{a_values, a_exponents, code_bytes}, right{b_values, b_exponents, code_bytes};
  for (int64_t item = 0; item < count; ++item) {
    if (!decode(a->data + item * m * depth * code_bytes, left, m, depth, 1, s.left) ||
        !decode(b->data + item * n * depth * code_bytes, right, n, depth, block, s.right)) {
      return 1;
    }
    for (int64_t i = 0; i < m; ++i) {
      const int64_t row = 4 * n * (item * m + i);
      int16_t* top = s.top.data();
      double *addend = s.addend.data(), *sum = s.sum.data();
      if (!adds) {
        std::fill_n(addend, n, 0.0);
        std::fill_n(top, n, kZero);
      } else if (!decode_addends(c->data + row, n, addend, top)) {
        return 1;
      }
      const double* values = s.left.values.data() + i * depth;
      const int16_t* exponents = s.left.exponents.data() + i * depth;
      for (int64_t j = 0; j < n; j += block) {
        const double* others = s.right.values.data() + j * depth;
        const int16_t* powers = s.right.exponents.data() + j * depth;
        if (block == 32) {
          block_of_row<32>(values, exponents, others, powers, depth, fraction, addend + j,
                           top + j, sum + j);
        } else if (block == 16) {
          block_of_row<16>(values, exponents, others, powers, depth, fraction, addend + j,
                           top + j, sum + j);
        } else {
          block_of_row<8>(values, exponents, others, powers, depth, fraction, addend + j,
                           top + j, sum + j);
        }
      }
      if (!truncated(sum, n, bits, d->data + row)) return 1;
    }
  }
  return 0;
}
