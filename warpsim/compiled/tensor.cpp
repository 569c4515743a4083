// Products of the tensor core from codes to f32 patterns. tensor.py says what they are: the terms of
// an element, truncated to multiples of its unit, are integers, and are added here as such.
#include <algorithm>
#include <cfenv>
#include <cmath>
#include <vector>

#include "array.hpp"

namespace {

using kx::Array;

constexpr int kFraction = 25;  // the largest F
constexpr int kGap = 90;
constexpr int kDepth = kFraction + kGap + 2;
constexpr int kZero = -2000;  // the exponent of a zero: ZERO_EXPONENT
constexpr int kSpecial = INT16_MAX;
constexpr int kNone = -8192;  // the same below the largest of a row; int16 holds twice that
constexpr int64_t kTerms = 16;  // added in int32
constexpr int kExponents = 64;  // of two operands' product, for exact sums in float32

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

KX_INLINE float power(int exponent) { return static_cast<float>(power_of_two(exponent)); }

// What a code stands for: a float32 value; its exponent, kZero of a zero, kSpecial of what is no
// finite number; and, negated so that the larger one counts of this too, that of its lowest bit.
typedef int16_t Code __attribute__((vector_size(8)));
constexpr int kExponent = 2, kFineness = 3;

using Table = const Code*;  // by code

template <int kCodeBytes>
KX_INLINE unsigned code_at(const char* codes, int64_t i) {
  return kCodeBytes == 1 ? static_cast<unsigned char>(codes[i])
                         : kx::load<uint16_t>(codes + 2 * i);
}

#include "vectors.hpp"

// Rows of an operand, as [rows / block, depth, block].
struct Decoded {
  std::vector<float> values;
  std::vector<int16_t> unscaled;  // their exponents, kZero of zeros
  std::vector<int16_t> largest;  // exponent of each row, 0 if it is all zeros
  std::vector<int16_t> spans;    // of each row, from there to its lowest bit
  std::vector<float> powers;     // of two, with the largest exponents
  // For products that truncate:
  std::vector<double> factors;     // that scale each row
  std::vector<float> scaled;       // by the largest exponents
  std::vector<int16_t> exponents;  // below the largest ones
};

// Of some rows: the smallest and the highest of their largest exponents, and the longest span.
struct Extent {
  int low, high, span;
};

Extent extent(const Decoded& of, int64_t first, int64_t count) {
  Extent result{of.largest[first], of.largest[first], of.spans[first]};
  for (int64_t row = first + 1; row < first + count; ++row) {
    result.low = std::min<int>(result.low, of.largest[row]);
    result.high = std::max<int>(result.high, of.largest[row]);
    result.span = std::max<int>(result.span, of.spans[row]);
  }
  return result;
}

// What is known of a row from the largest of its codes.
bool describe(const Code& extremes, int64_t row, Decoded& to) {
  const bool none = extremes[kExponent] == kZero;
  const int largest = none ? 0 : extremes[kExponent], lowest = none ? 0 : -extremes[kFineness];
  if (largest > 127 || lowest < -149) return false;  // as float32 has no values for, or kSpecial
  to.largest[row] = static_cast<int16_t>(largest);
  to.spans[row] = static_cast<int16_t>(largest - lowest);
  to.powers[row] = power(largest);
  return true;
}

// False if any element is no finite number.
template <int kCodeBytes>
bool decode(const char* codes, Table table, int64_t rows, int64_t depth, int64_t block,
            Decoded& to) {
  to.values.resize(rows * depth);
  to.unscaled.resize(rows * depth);
  to.largest.resize(rows);
  to.spans.resize(rows);
  to.powers.resize(rows);
  for (int64_t row = 0; row < rows; row += block) {
    Code extremes[kWidest / 2];
    std::fill_n(extremes, block, Code{0, 0, kZero, kZero});
    float* value = to.values.data() + row * depth;
    int16_t* exponent = to.unscaled.data() + row * depth;
    for (int64_t k = 0; k < depth; ++k) {
      for (int64_t i = 0; i < block; ++i) {
        const Code code = table[code_at<kCodeBytes>(codes, (row + i) * depth + k)];
        __builtin_memcpy(value++, &code, sizeof *value);
        *exponent++ = code[kExponent];
        extremes[i] = code > extremes[i] ? code : extremes[i];
      }
    }
    for (int64_t i = 0; i < block; ++i) {
      if (!describe(extremes[i], row + i, to)) return false;
    }
  }
  return true;
}

// Of elements that follow each other: of one row, or of one column of a block's rows.
KX_INLINE void scale_some(const Decoded& from, int64_t first, int64_t count, const int16_t* largest,
                          const double* factors, int64_t step, Decoded& to) {
  const float* values = from.values.data() + first;
  const int16_t* powers = from.unscaled.data() + first;
  for (int64_t i = 0; i < count; ++i) {
    const int below = powers[i] - largest[i * step];
    const float value = static_cast<float>(values[i] * factors[i * step]);
    to.scaled[first + i] = below > -kDepth ? value : 0.0f;
    to.exponents[first + i] = static_cast<int16_t>(powers[i] == kZero ? kNone : below);
  }
}

void scale(int64_t rows, int64_t depth, int64_t block, Decoded& to) {
  to.scaled.resize(rows * depth);
  to.exponents.resize(rows * depth);
  to.factors.resize(rows);
  for (int64_t row = 0; row < rows; ++row) to.factors[row] = power_of_two(-to.largest[row]);
  for (int64_t row = 0; row < rows; row += block) {
    const int16_t* largest = to.largest.data() + row;
    const double* factors = to.factors.data() + row;
    if (block == 1) {
      scale_some(to, row * depth, depth, largest, factors, 0, to);
      continue;
    }
    for (int64_t k = 0; k < depth; ++k) {
      scale_some(to, row * depth + k * block, block, largest, factors, 1, to);
    }
  }
}

// A product of matrices [m, depth] and [n, depth] whose operands are decoded.
struct Product {
  int64_t m, n, depth;
  int fraction, bits;
  const Decoded *left, *right;
  const char* c;  // or none
  int64_t c_stride;  // bytes from row to row
  char* d;
  int64_t d_stride;
};

#if !defined(__clang__)
#pragma GCC push_options
#pragma GCC optimize("fp-contract=fast")  // changes no exact sum
#endif
#include "exact.hpp"
#include "products.hpp"
#if !defined(__clang__)
#pragma GCC pop_options
#endif

// One product after the other, of codes of so many bytes.
template <int kCodeBytes>
bool multiply_all(int64_t count, Product p, const char* a, Table of_a, const char* b,
                  Table of_b) {
  static Decoded left, right;  // kept from call to call
  static std::vector<uint8_t> left_over;
  int64_t block = kWidest / 2;
  while (p.n % block) block /= 2;
  left_over.resize(p.n / block * p.m);
  p.left = &left, p.right = &right;
  for (int64_t i = 0; i < count; ++i) {
    if (!decode<kCodeBytes>(a, of_a, p.m, p.depth, 1, left) ||
        !decode<kCodeBytes>(b, of_b, p.n, p.depth, block, right)) {
      return false;
    }
    std::fesetround(FE_TOWARDZERO);
    // A single addition, as exact() has it, does not say what it loses.
    if (!p.bits) std::fill(left_over.begin(), left_over.end(), 1);
    const bool some_left = !p.bits || exact(p, block, left_over.data());
    std::fesetround(FE_TONEAREST);
    if (some_left) {
      scale(p.m, p.depth, 1, left);
      scale(p.n, p.depth, block, right);
      if (!truncated(p, block, left_over.data())) return false;
    }
    a += p.m * p.depth * kCodeBytes, b += p.n * p.depth * kCodeBytes;
    p.c += p.c ? p.m * p.c_stride : 0, p.d += p.m * p.d_stride;
  }
  return true;
}

}  // namespace

// D [count, m, n] = A [count, m, depth] * B [count, n, depth]^T + C, each element's terms truncated
// to a multiple of 2^(its largest exponent - fraction), the sum to `bits` of f32 (0: 24, to odd); c may be no array
// (`adds` is 0), or D, one matrix. Returns 1, with D undefined unless it is C, for what Python has to
// look at.
extern "C" int kx_mma(int64_t count, int64_t m, int64_t n, int64_t depth, int fraction, int bits,
                      const Array* a, const void* a_codes, const Array* b, const void* b_codes,
                      int code_bytes, const Array* c, int adds, const Array* d) {
  if (n % 8 || fraction > kFraction) return 1;  // as no instruction has it
  const auto of_a = static_cast<Table>(a_codes), of_b = static_cast<Table>(b_codes);
  const bool in_place = adds && c->data == d->data;
  static std::vector<char> kept;  // D is C until it is known that Python has nothing to look at
  if (in_place) kept.resize(4 * m * n);
  const Product p{m, n, depth, fraction, bits, nullptr, nullptr, adds ? c->data : nullptr,
                  adds ? c->strides[c->dimensions - 2] : 0, in_place ? kept.data() : d->data,
                  in_place ? 4 * n : d->strides[d->dimensions - 2]};
  const auto multiply = code_bytes == 1 ? multiply_all<1> : multiply_all<2>;
  if (!multiply(count, p, a->data, of_a, b->data, of_b)) return 1;
  for (int64_t row = 0; in_place && row < m; ++row) {
    std::copy_n(p.d + 4 * n * row, 4 * n, d->data + row * d->strides[0]);
  }
  return 0;
}
