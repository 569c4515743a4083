// f16 and bf16 on bit patterns, rounded to the nearest: half.py. Every result goes through f32, which
// holds sums exactly enough, and products and fused ones where they are rounded to odd.
#pragma once
#include <cmath>
#include <cstdint>

#include "single.hpp"

namespace kx {

struct F16 {
  static KX_INLINE uint32_t wide(uint16_t a) { return f32_of(a); }
  static KX_INLINE uint16_t narrow(uint32_t a) { return f16_of(a); }
};
struct Bf16 {
  static KX_INLINE uint32_t wide(uint16_t a) { return uint32_t(a) << 16; }
  static KX_INLINE uint16_t narrow(uint32_t a) { return bf16_of(a); }
};

// The f32 of an exact result, or of one rounded to odd, rounded to odd.
KX_INLINE uint32_t rounded_to_odd(double exact) {
  const float nearest = static_cast<float>(exact);
  const uint32_t bits = bits_of(nearest);
  const double found = std::fabs(static_cast<double>(nearest)), magnitude = std::fabs(exact);
  if (!(found != magnitude)) return bits;
  return (bits - (found > magnitude)) | 1;
}

template <class Format>
struct AddHalf {
  static KX_INLINE uint16_t of(uint16_t a, uint16_t b) {
    return Format::narrow(AddF32::of<false>(Format::wide(a), Format::wide(b)));
  }
};
template <class Format>
struct SubHalf {
  static KX_INLINE uint16_t of(uint16_t a, uint16_t b) { return AddHalf<Format>::of(a, b ^ 0x8000); }
};
template <class Format>
struct MulHalf {
  static KX_INLINE uint16_t of(uint16_t a, uint16_t b) {
    const double product = value_of(Format::wide(a)) * double(value_of(Format::wide(b)));
    return Format::narrow(rounded_to_odd(product));
  }
};
template <class Format>
struct FmaHalf {
  static KX_INLINE uint16_t of(uint16_t a, uint16_t b, uint16_t c) {
    const double product = value_of(Format::wide(a)) * double(value_of(Format::wide(b)));
    return Format::narrow(rounded_to_odd(sum_to_odd(product, value_of(Format::wide(c)))));
  }
};
// What is done in f32 and is exact there.
template <class Format, class F>
struct ThroughF32 {
  template <class... S>
  static KX_INLINE uint16_t of(S... sources) {
    return Format::narrow(Single<F, false>::of(Format::wide(sources)...));
  }
};

}  // namespace kx
