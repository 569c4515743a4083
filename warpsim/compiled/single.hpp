// f32 on bit patterns: NVIDIA's NaN, and subnormals flushed where an instruction says so.
#pragma once
#include <cmath>
#include <cstdint>

// Into clones too, which compilers would not inline it into otherwise.
#define KX_INLINE inline __attribute__((always_inline))

namespace kx {

constexpr uint32_t kSign = 0x80000000, kNan = 0x7FFFFFFF, kInfinity = 0x7F800000;
constexpr uint32_t kLeast = 0x00800000;  // the smallest normal number

KX_INLINE uint32_t bits_of(float x) {
  uint32_t bits;
  __builtin_memcpy(&bits, &x, sizeof bits);
  return bits;
}

KX_INLINE float value_of(uint32_t bits) {
  float x;
  __builtin_memcpy(&x, &bits, sizeof x);
  return x;
}

KX_INLINE bool is_nan(uint32_t a) { return (a & ~kSign) > kInfinity; }
KX_INLINE uint32_t canonical(uint32_t a) { return is_nan(a) ? kNan : a; }
KX_INLINE uint32_t flushed(uint32_t a) { return (a & ~kSign) < kLeast ? a & kSign : a; }

// The f32 of an exact result, or of one rounded to odd. Flushed are those that 24 bits with any
// exponent would not round up to the smallest normal number (formats.py, flush_tiny).
template <bool kFlush>
KX_INLINE uint32_t rounded(double exact) {
  const double tiny = 0x1p-126 * (1 - 0x1p-25);
  return bits_of(static_cast<float>(kFlush && std::fabs(exact) < tiny ? std::copysign(0.0, exact)
                                                                      : exact));
}

// a + b rounded to odd: rounding it once more to f32 then is rounding the sum once.
KX_INLINE double sum_to_odd(double a, double b) {
  const double total = a + b, part = total - a;
  const double error = (a - (total - part)) + (b - part);
  int64_t bits;
  __builtin_memcpy(&bits, &total, sizeof bits);
  const bool finite = std::fabs(total) < __builtin_inf();
  if (finite && error != 0 && !(bits & 1)) {
    bits += std::signbit(error) == std::signbit(total) ? 1 : -1;
  }
  double odd;
  __builtin_memcpy(&odd, &bits, sizeof odd);
  return odd;
}

// Unsigned keys in the order of the values, -0 before +0.
KX_INLINE uint32_t order(uint32_t a) { return a & kSign ? ~a : a | kSign; }

struct AddF32 {
  template <bool kFlush>
  static KX_INLINE uint32_t of(uint32_t a, uint32_t b) {
    const uint32_t sum = bits_of(value_of(a) + value_of(b));  // subnormal sums are exact
    return kFlush ? flushed(sum) : sum;
  }
};
struct SubF32 {
  template <bool kFlush>
  static KX_INLINE uint32_t of(uint32_t a, uint32_t b) {
    return AddF32::of<kFlush>(a, b ^ kSign);
  }
};
struct MulF32 {
  template <bool kFlush>
  static KX_INLINE uint32_t of(uint32_t a, uint32_t b) {
    if (!kFlush) return bits_of(value_of(a) * value_of(b));
    return rounded<kFlush>(static_cast<double>(value_of(a)) * value_of(b));
  }
};
struct FmaF32 {
  template <bool kFlush>
  static KX_INLINE uint32_t of(uint32_t a, uint32_t b, uint32_t c) {
    if (!kFlush) return bits_of(std::fma(value_of(a), value_of(b), value_of(c)));
    return rounded<kFlush>(
        sum_to_odd(static_cast<double>(value_of(a)) * value_of(b), value_of(c)));
  }
};

// Rounded to the neighbour in a direction, as rounded() to the nearest.
enum class Toward { kZero, kDown, kUp };

template <Toward kToward, bool kFlush>
KX_INLINE uint32_t rounded_to(double exact) {
  const bool negative = std::signbit(exact);
  const bool away = kToward == Toward::kDown ? negative : kToward == Toward::kUp && !negative;
  const double magnitude = std::fabs(exact);
  if (kFlush && (away ? magnitude <= 0x1p-126 * (1 - 0x1p-24) : magnitude < 0x1p-126)) {
    return negative ? kSign : 0;
  }
  const float nearest = static_cast<float>(exact);
  const double found = std::fabs(nearest);
  return bits_of(nearest) + (away && found < magnitude) - (!away && found > magnitude);
}

// An exact zero of opposite signs is -0 downwards.
template <Toward kToward>
struct FmaToF32 {
  template <bool kFlush>
  static KX_INLINE uint32_t of(uint32_t a, uint32_t b, uint32_t c) {
    const double product = static_cast<double>(value_of(a)) * value_of(b), addend = value_of(c);
    const double total = sum_to_odd(product, addend);
    const bool plus = product == 0 && !std::signbit(product) && !std::signbit(addend);
    const bool minus = kToward == Toward::kDown && total == 0 && !plus;
    return rounded_to<kToward, kFlush>(minus ? -0.0 : total);
  }
};
struct DivF32 {
  template <bool kFlush>
  static KX_INLINE uint32_t of(uint32_t a, uint32_t b) {
    if (!kFlush) return bits_of(value_of(a) / value_of(b));
    return rounded<kFlush>(static_cast<double>(value_of(a)) / value_of(b));
  }
};
struct RcpRoundedF32 {
  template <bool kFlush>
  static KX_INLINE uint32_t of(uint32_t a) {
    return DivF32::of<kFlush>(0x3F800000, a);
  }
};
struct SqrtRoundedF32 {
  template <bool kFlush>
  static KX_INLINE uint32_t of(uint32_t a) {
    return bits_of(std::sqrt(value_of(a)));
  }
};
// To [0, 1], NaN to 0.
struct SaturateF32 {
  template <bool kFlush>
  static KX_INLINE uint32_t of(uint32_t a) {
    const float value = value_of(a);
    return value > 0 ? bits_of(value < 1 ? value : 1) : 0;
  }
};
struct MinF32 {
  template <bool kFlush>
  static KX_INLINE uint32_t of(uint32_t a, uint32_t b) {
    return (order(a) < order(b) && !is_nan(a)) || is_nan(b) ? a : b;
  }
};
struct MaxF32 {
  template <bool kFlush>
  static KX_INLINE uint32_t of(uint32_t a, uint32_t b) {
    return (order(a) > order(b) && !is_nan(a)) || is_nan(b) ? a : b;
  }
};
struct NegF32 {
  template <bool kFlush>
  static KX_INLINE uint32_t of(uint32_t a) {
    return a ^ kSign;
  }
};
struct AbsF32 {
  template <bool kFlush>
  static KX_INLINE uint32_t of(uint32_t a) {
    return a & ~kSign;
  }
};

// Approximations: float64's value, rounded.
KX_INLINE uint32_t rounded_to_f32(double value, bool flush) {
  const uint32_t result = bits_of(static_cast<float>(value));
  return flush ? flushed(result) : result;
}
struct RcpF32 {
  template <bool kFlush>
  static KX_INLINE uint32_t of(uint32_t a) {
    return rounded_to_f32(1 / static_cast<double>(value_of(a)), kFlush);
  }
};
struct SqrtF32 {
  template <bool kFlush>
  static KX_INLINE uint32_t of(uint32_t a) {
    return rounded_to_f32(std::sqrt(static_cast<double>(value_of(a))), kFlush);
  }
};
struct DivFullF32 {
  template <bool kFlush>
  static KX_INLINE uint32_t of(uint32_t a, uint32_t b) {
    return rounded_to_f32(static_cast<double>(value_of(a)) / value_of(b), kFlush);
  }
};
// Divisors beyond 2^126 give zeros.
struct DivApproxF32 {
  template <bool kFlush>
  static KX_INLINE uint32_t of(uint32_t a, uint32_t b) {
    const uint32_t divisor = b & ~kSign, zero = (a ^ b) & kSign;
    if (divisor <= 0x7E800000 || divisor >= kInfinity) return DivFullF32::of<kFlush>(a, b);
    return (a & ~kSign) < kInfinity ? zero : kNan;
  }
};
struct RsqrtF32 {
  template <bool kFlush>
  static KX_INLINE uint32_t of(uint32_t a) {
    return rounded_to_f32(1 / std::sqrt(static_cast<double>(value_of(a))), kFlush);
  }
};

// An operation on f32, of operands that are flushed where it flushes, with the hardware's NaN.
template <class F, bool kFlush>
struct Single {
  template <class... S>
  static KX_INLINE uint32_t of(S... sources) {
    return canonical(F::template of<kFlush>((kFlush ? flushed(sources) : sources)...));
  }
};

// Rounded to the upper half of the pattern.
KX_INLINE uint32_t bf16_of(uint32_t a) {
  return is_nan(a) ? 0x7FFF : (a + 0x7FFF + (a >> 16 & 1)) >> 16;
}

KX_INLINE uint32_t packed_bf16(uint32_t high, uint32_t low) {
  return bf16_of(high) << 16 | bf16_of(low);
}

// Rounded to f16: a subnormal result is rounded by adding a number whose last place is f16's.
KX_INLINE uint32_t f16_of(uint32_t a) {
  const uint32_t sign = a >> 16 & 0x8000, magnitude = a & ~kSign;
  const uint32_t normal = (magnitude + 0xFFF + (magnitude >> 13 & 1) - 0x38000000) >> 13;
  const uint32_t tiny = bits_of(value_of(magnitude) + 0.5f) - bits_of(0.5f);
  const uint32_t finite = magnitude < 0x38800000 ? tiny : normal;
  const uint32_t rounded = magnitude >= 0x47800000 ? 0x7C00 : finite;
  return is_nan(a) ? 0x7FFF : sign | rounded;
}

KX_INLINE uint32_t f32_of(uint16_t a) {
  const uint32_t sign = (a & 0x8000u) << 16, magnitude = a & 0x7FFF;
  const uint32_t normal = (magnitude << 13) + 0x38000000;
  const uint32_t tiny = bits_of(static_cast<float>(magnitude) * 0x1p-24f);
  const uint32_t finite = magnitude < 0x400 ? tiny : normal;
  const uint32_t special = magnitude > 0x7C00 ? kNan : sign | kInfinity;
  return magnitude >= 0x7C00 ? special : sign | finite;
}

}  // namespace kx
