// Products of the tensor core from codes to f32 patterns. tensor.py says what they are: the terms of
// an element, truncated to multiples of its unit, are integers, and are added here as such.
#include <algorithm>
#include <cmath>
#include <vector>

#include "array.hpp"

namespace {

using kx::Array;

constexpr int kFraction = 25;  // the largest F
constexpr int kGap = 90;
constexpr int kDepth = kFraction + kGap + 2;
constexpr int kZero = -2000;  // the exponent of a zero: ZERO_EXPONENT
constexpr int kNone = -8192;  // the same below the largest of a row; int16 holds twice that
constexpr int64_t kTerms = 16;  // added in int32

#define KX_INLINE inline __attribute__((always_inline))

template <class To, class From>
KX_INLINE To bits_of(From value) {
  To bits;
  __builtin_memcpy(&bits, &value, sizeof bits);
  return bits;
}

// For exponents below the smallest normal one, the smallest normal power.
KX_INLINE double power_of_two(int exponent) {
  return bits_of<double>(static_cast<uint64_t>(std::max(exponent + 1023, 1)) << 52);
}

// Values and exponents of every code of a type.
struct Table {
  const double* values;
  const int16_t* exponents;
  int code_bytes;

  unsigned code(const char* codes, int64_t i) const {
    return code_bytes == 1 ? static_cast<unsigned char>(codes[i])
                           : kx::load<uint16_t>(codes + 2 * i);
  }
};

// Rows of an operand, as [rows / block, depth, block], scaled by their largest exponents.
struct Decoded {
  std::vector<float> values;
  std::vector<int16_t> exponents;
  std::vector<int16_t> largest;  // of each row
};

// False if any element is no finite number.
bool decode(const char* codes, const Table& table, int64_t rows, int64_t depth, int64_t block,
            Decoded& to) {
  to.values.resize(rows * depth);
  to.exponents.resize(rows * depth);
  to.largest.resize(rows);
  bool finite = true;
  for (int64_t row = 0; row < rows; ++row, codes += depth * table.code_bytes) {
    int largest = kZero;
    for (int64_t k = 0; k < depth; ++k) {
      largest = std::max<int>(largest, table.exponents[table.code(codes, k)]);
    }
    largest = largest == kZero ? 0 : largest;
    to.largest[row] = static_cast<int16_t>(largest);
    const double scale = power_of_two(-largest);
    for (int64_t k = 0; k < depth; ++k) {
      const unsigned code = table.code(codes, k);
      const int64_t at = (row / block * depth + k) * block + row % block;
      const int below = table.exponents[code] - largest;
      finite &= std::isfinite(table.values[code]);
      to.values[at] = below > -kDepth ? static_cast<float>(table.values[code] * scale) : 0.0f;
      to.exponents[at] = static_cast<int16_t>(table.exponents[code] == kZero ? kNone : below);
    }
  }
  return finite;
}

// A product of matrices [m, depth] and [n, depth] whose operands are decoded.
struct Product {
  int64_t m, n, depth;
  int fraction, bits;
  const Decoded *left, *right;
  const char* c;  // or none
  char* d;
};

namespace baseline {
#define KX_BYTES 16
#include "products.hpp"
#undef KX_BYTES
}  // namespace baseline

// The compiler chooses instructions for a vector before it clones a function for other processors,
// so that target_clones would be of no use here.
#if defined(__x86_64__) && !defined(__clang__)
#define KX_PROCESSORS
#pragma GCC push_options
#pragma GCC target("avx2")
namespace avx2 {
#define KX_BYTES 32
#include "products.hpp"
#undef KX_BYTES
}  // namespace avx2
#pragma GCC pop_options
#pragma GCC push_options
#pragma GCC target("avx512f,avx512bw,avx512dq,avx512vl,prefer-vector-width=512")
namespace avx512 {
#define KX_BYTES 64
#include "products.hpp"
#undef KX_BYTES
}  // namespace avx512
#pragma GCC pop_options
#endif

// How this processor multiplies.
struct Multiplier {
  bool (*product)(const Product&, int64_t);
  int columns;  // at once, at most
};

Multiplier multiplier() {
#ifdef KX_PROCESSORS
  if (__builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512dq") &&
      __builtin_cpu_supports("avx512vl")) {
    return {avx512::product, 32};
  }
  if (__builtin_cpu_supports("avx2")) return {avx2::product, 16};
#endif
  return {baseline::product, 8};
}

}  // namespace

// D [count, m, n] = A [count, m, depth] * B [count, n, depth]^T + C, each element's terms truncated
// to a multiple of 2^(its largest exponent - fraction), the sum to `bits` of f32; c may be no array
// (`adds` is 0). Returns 1, with D undefined, for what Python has to look at.
extern "C" int kx_mma(int64_t count, int64_t m, int64_t n, int64_t depth, int fraction, int bits,
                      const Array* a, const double* a_values, const int16_t* a_exponents,
                      const Array* b, const double* b_values, const int16_t* b_exponents,
                      int code_bytes, const Array* c, int adds, const Array* d) {
  if (n % 8 || fraction > kFraction) return 1;  // as no instruction has it
  static const Multiplier with = multiplier();
  static Decoded left, right;  // kept from call to call
  int64_t block = with.columns;
  while (n % block) block /= 2;
  const Table of_a{a_values, a_exponents, code_bytes}, of_b{b_values, b_exponents, code_bytes};
  for (int64_t item = 0; item < count; ++item) {
    if (!decode(a->data + item * m * depth * code_bytes, of_a, m, depth, 1, left) ||
        !decode(b->data + item * n * depth * code_bytes, of_b, n, depth, block, right)) {
      return 1;
    }
    const int64_t at = 4 * item * m * n;
    const Product product{m,     n,      depth, fraction, bits,
                          &left, &right, adds ? c->data + at : nullptr, d->data + at};
    if (!with.product(product, block)) return 1;
  }
  return 0;
}
