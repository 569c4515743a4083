// f32 arithmetic on patterns, element by element: the commonest forms of single.py and ieee.py.
#include <cmath>
#include <initializer_list>

#include "array.hpp"

namespace {

constexpr uint32_t kSign = 0x80000000, kNan = 0x7FFFFFFF, kInfinity = 0x7F800000;
constexpr uint32_t kLeast = 0x00800000;  // the smallest normal number

inline uint32_t bits_of(float x) {
  uint32_t bits;
  __builtin_memcpy(&bits, &x, sizeof bits);
  return bits;
}

inline float value_of(uint32_t bits) {
  float x;
  __builtin_memcpy(&x, &bits, sizeof x);
  return x;
}

inline bool is_nan(uint32_t a) { return (a & ~kSign) > kInfinity; }
inline uint32_t flushed(uint32_t a) { return (a & ~kSign) < kLeast ? a & kSign : a; }

// Unsigned keys in the order of the values, -0 before +0.
inline uint32_t order(uint32_t a) { return a & kSign ? ~a : a | kSign; }

struct Add {
  static uint32_t of(uint32_t a, uint32_t b, uint32_t) { return bits_of(value_of(a) + value_of(b)); }
};
struct Mul {
  static uint32_t of(uint32_t a, uint32_t b, uint32_t) { return bits_of(value_of(a) * value_of(b)); }
};
struct Fma {
  static uint32_t of(uint32_t a, uint32_t b, uint32_t c) {
    return bits_of(std::fma(value_of(a), value_of(b), value_of(c)));
  }
};
struct Min {
  static uint32_t of(uint32_t a, uint32_t b, uint32_t) {
    return (order(a) < order(b) && !is_nan(a)) || is_nan(b) ? a : b;
  }
};
struct Max {
  static uint32_t of(uint32_t a, uint32_t b, uint32_t) {
    return (order(a) > order(b) && !is_nan(a)) || is_nan(b) ? a : b;
  }
};

// One row; false if flushing has to know more than the rounded result: one that is no larger than
// the smallest normal number and no zero.
template <class Operation>
inline __attribute__((always_inline)) bool row_of(const uint32_t* a, const uint32_t* b,
                                                  const uint32_t* c, int64_t n, bool flush,
                                                  uint32_t* to) {
  bool plain = true;
  for (int64_t i = 0; i < n; ++i) {
    const uint32_t result = flush ? Operation::of(flushed(a[i]), flushed(b[i]), flushed(c[i]))
                                  : Operation::of(a[i], b[i], c[i]);
    plain &= !flush || (result & ~kSign) > kLeast || !(result & ~kSign);
    to[i] = is_nan(result) ? kNan : result;
  }
  return plain;
}

// Rounded to the upper half of the pattern.
inline uint32_t bf16_of(uint32_t a) {
  return is_nan(a) ? 0x7FFF : (a + 0x7FFF + (a >> 16 & 1)) >> 16;
}

inline __attribute__((always_inline)) void pack_row(const uint32_t* high, const uint32_t* low,
                                                    int64_t n, uint32_t* to) {
  for (int64_t i = 0; i < n; ++i) to[i] = bf16_of(high[i]) << 16 | bf16_of(low[i]);
}

}  // namespace

// d = a op b (op c), all uint32 [rows, columns] with columns side by side; operations by the order
// of native.py. Returns 1 if Python has to do it.
extern "C" KX_CLONES int kx_single(int operation, const kx::Array* a, const kx::Array* b,
                                   const kx::Array* c, int flush, const kx::Array* d) {
  for (const kx::Array* each : {a, b, c}) {
    if (each->dimensions != 2 || each->shape[0] != d->shape[0] ||
        each->shape[1] != d->shape[1] || each->strides[1] != 4) {
      return 1;
    }
  }
  bool plain = true;
  const int64_t n = d->shape[1];
  for (int64_t row = 0; row < d->shape[0]; ++row) {
    const auto at = [row](const kx::Array* x) {
      return reinterpret_cast<uint32_t*>(x->data + row * x->strides[0]);
    };
    const uint32_t *x = at(a), *y = at(b), *z = at(c);
    switch (operation) {
      case 0: plain &= row_of<Add>(x, y, z, n, flush, at(d)); break;
      case 1: plain &= row_of<Mul>(x, y, z, n, flush, at(d)); break;
      case 2: plain &= row_of<Fma>(x, y, z, n, flush, at(d)); break;
      case 3: plain &= row_of<Min>(x, y, z, n, flush, at(d)); break;
      case 4: plain &= row_of<Max>(x, y, z, n, flush, at(d)); break;
      default: pack_row(x, y, n, at(d)); break;
    }
  }
  return !plain;
}
