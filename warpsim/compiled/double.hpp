// f64 on bit patterns, rounded to the nearest. Of several NaN operands the result is the first that
// is named here, made quiet; where none is one, it is NVIDIA's own NaN.
#pragma once
#include <cmath>
#include <cstdint>

#include "single.hpp"

namespace kx {

constexpr uint64_t kSign64 = uint64_t(1) << 63, kInfinity64 = uint64_t(0x7FF) << 52;
constexpr uint64_t kQuiet64 = uint64_t(1) << 51, kNan64 = kSign64 | kInfinity64 | kQuiet64;

KX_INLINE uint64_t bits_of(double x) {
  uint64_t bits;
  __builtin_memcpy(&bits, &x, sizeof bits);
  return bits;
}

KX_INLINE double double_of(uint64_t bits) {
  double x;
  __builtin_memcpy(&x, &bits, sizeof x);
  return x;
}

KX_INLINE bool is_nan(uint64_t a) { return (a & ~kSign64) > kInfinity64; }

KX_INLINE uint64_t first_nan() { return kNan64; }
template <class... Others>
KX_INLINE uint64_t first_nan(uint64_t a, Others... others) {
  return is_nan(a) ? a | kQuiet64 : first_nan(others...);
}

template <class... Operands>
KX_INLINE uint64_t with_nan(double result, Operands... operands) {
  const uint64_t bits = bits_of(result);
  return is_nan(bits) ? first_nan(operands...) : bits;
}

struct AddF64 {
  static KX_INLINE uint64_t of(uint64_t a, uint64_t b) {
    return with_nan(double_of(a) + double_of(b), b, a);
  }
};
struct SubF64 {
  static KX_INLINE uint64_t of(uint64_t a, uint64_t b) {
    return AddF64::of(a, is_nan(b) ? b : b ^ kSign64);
  }
};
struct MulF64 {
  static KX_INLINE uint64_t of(uint64_t a, uint64_t b) {
    return with_nan(double_of(a) * double_of(b), b, a);
  }
};
struct FmaF64 {
  static KX_INLINE uint64_t of(uint64_t a, uint64_t b, uint64_t c) {
    return with_nan(std::fma(double_of(a), double_of(b), double_of(c)), b, c, a);
  }
};
struct DivF64 {
  static KX_INLINE uint64_t of(uint64_t a, uint64_t b) {
    return with_nan(double_of(a) / double_of(b), a, b);
  }
};
struct RcpF64 {
  static KX_INLINE uint64_t of(uint64_t a) { return with_nan(1 / double_of(a), a); }
};
struct SqrtF64 {
  static KX_INLINE uint64_t of(uint64_t a) { return with_nan(std::sqrt(double_of(a)), a); }
};
struct NegF64 {
  static KX_INLINE uint64_t of(uint64_t a) {
    return is_nan(a) ? a | kQuiet64 : a ^ kSign64;
  }
};
struct AbsF64 {
  static KX_INLINE uint64_t of(uint64_t a) {
    return is_nan(a) ? a | kQuiet64 : a & ~kSign64;
  }
};

}  // namespace kx
