// Products of decoded operands in vectors of kBytes, for tensor.cpp.
//
// Why int32 and float32 hold the terms of an element. Let e be their largest exponent and F <= 25,
// so that the unit is 2^(e - F). An operand's significand lies in [0, 2) and has at most 11 bits.
// - A product has at most 22 bits, and scaling by powers of two changes none: float32's 24 hold it.
//   It is below 4 * 2^e, hence below 2^27 units: int32 holds 16 truncated ones, and float64 the sum
//   of such sums.
// - Operands are scaled by the largest exponents of their row and column, so that they lie below 2,
//   and B also by 2^(F + gap), for the element's unit: gap = row's + column's largest - e. Where
//   gap <= kGap, that is below 2^(1 + F + kGap) = 2^116. An operand kDepth or more binades below
//   its row's largest then makes terms below 1 unit only, which are truncated to zero, as it is
//   itself; any other is at least 2^(1 - kDepth - 10) = 2^-126, a normal float32. A product that is
//   not normal is below 1 unit too, however it is rounded.
// A product with a larger gap anywhere is left to Python.

// What elements of a row of D have beside A and B.
template <int kBytes>
struct Aligned {
  typename Vectors<kBytes>::Integers exponents;  // e
  typename Vectors<kBytes>::Integers units;      // C in units
  typename Vectors<kBytes>::Floats scales;       // 2^(F + gap)
  typename Vectors<kBytes>::Integers deep;       // whether the gap is too large
  typename Vectors<kBytes>::Integers special;    // whether C is no finite number
};

// highest: the largest exponent of the products, below `both`, the row's and column's largest.
template <int kBytes>
KX_INLINE Aligned<kBytes> align(typename Vectors<kBytes>::Integers highest,
                                typename Vectors<kBytes>::Integers both, const char* c,
                                int fraction) {
  using Integers = typename Vectors<kBytes>::Integers;
  using Floats = typename Vectors<kBytes>::Floats;
  Integers pattern = {};
  if (c) pattern = read<Integers>(c);
  const Integers field = pattern >> 23 & 255, normal = field > 0;
  const Integers own = (pattern & 0x7FFFFFFF) == 0 ? Integers{} + kZero : field + normal - 126;
  const Integers product = highest + both, e = product > own ? product : own;
  // 26 bits, of which the upper F + 1 count where C's exponent is e.
  const Integers significand = ((pattern & 0x7FFFFF) | (normal & 0x800000)) << 2;
  const Integers below = e - own + (kFraction - fraction);
  const Integers kept = significand >> (below < 31 ? below : 31);
  const Integers gap = both - e;
  const Integers biased = (gap < kGap ? gap : kGap) + (fraction + 127);
  return {e, pattern < 0 ? -kept : kept,
          reinterpret_cast<Floats>((biased > 1 ? biased : 1) << 23),
          (highest > kNone / 2) & (gap > kGap), field == 255};
}

// Sums in units of 2^(e - F) toward zero to f32 patterns of `bits` significand bits, past the
// largest finite value to infinity; marks those that are subnormal. 0 bits: 24, the last of them 1
// where anything was lost, so that rounding them to f16 rounds the sum.
template <int kBytes>
KX_INLINE void truncate(typename Vectors<kBytes>::Doubles sums,
                        typename Vectors<kBytes>::HalfIntegers exponents, int fraction, int bits,
                        char* to, typename Vectors<kBytes>::Longs& subnormal) {
  using V = Vectors<kBytes>;
  using Doubles = typename V::Doubles;
  using Longs = typename V::Longs;
  const typename V::HalfIntegers biased = exponents + (1023 - fraction);
  const Longs units = __builtin_convertvector(biased > 1 ? biased : 1, Longs) << 52;
  const Longs pattern = reinterpret_cast<Longs>(sums * reinterpret_cast<Doubles>(units));
  const Longs magnitude = pattern & INT64_MAX;
  subnormal |= (magnitude < int64_t{1023 - 126} << 52) & (magnitude != 0);
  const int64_t last = int64_t{1} << (53 - (bits ? bits : 24));
  const Longs lost = pattern & (last - 1);
  const Longs kept = (pattern ^ lost) | (bits ? Longs{} : (lost != 0) & last);
  const auto result =
      __builtin_convertvector(reinterpret_cast<Doubles>(kept), typename V::HalfFloats);
  __builtin_memcpy(to, &result, sizeof result);
}

// The largest exponent of a row's products with each of columns [depth, kBytes / 2].
template <int kBytes>
KX_INLINE void find_highest(const int16_t* exponents, const char* powers, int64_t depth,
                            int16_t* to) {
  using Shorts = typename Vectors<kBytes>::Shorts;
  Shorts highest = Shorts{} + static_cast<int16_t>(2 * kNone);
#pragma GCC unroll 16
  for (int64_t k = 0; k < depth; ++k) {
    const Shorts power = read<Shorts>(powers + k * kBytes) + exponents[k];
    highest = power > highest ? power : highest;
  }
  __builtin_memcpy(to, &highest, sizeof highest);
}

// The sum of a row's terms with half of these columns.
template <int kBytes>
KX_INLINE typename Vectors<kBytes>::Integers sum_of(const float* values, const char* others,
                                                    int64_t terms,
                                                    typename Vectors<kBytes>::Floats scales) {
  using Floats = typename Vectors<kBytes>::Floats;
  using Integers = typename Vectors<kBytes>::Integers;
  Integers sum = {};
#pragma GCC unroll 16
  for (int64_t k = 0; k < terms; ++k) {
    const Floats product = scales * read<Floats>(others + 2 * k * kBytes) * values[k];
    sum += __builtin_convertvector(product, Integers);
  }
  return sum;
}

// Columns [column, column + kBytes / 2) of the rows that are left over; false for what Python has to
// look at.
template <int kBytes>
KX_INLINE bool multiply(const Product& p, int64_t column, const uint8_t* left_over) {
  using V = Vectors<kBytes>;
  using Integers = typename V::Integers;
  using Doubles = typename V::Doubles;
  using HalfIntegers = typename V::HalfIntegers;
  const char* powers = reinterpret_cast<const char*>(p.right->exponents.data() + column * p.depth);
  const char* others = reinterpret_cast<const char*>(p.right->scaled.data() + column * p.depth);
  const int16_t* largest = p.right->largest.data() + column;
  Integers refused = {};
  typename V::Longs subnormal = {};
  for (int64_t row = 0; row < p.m; ++row) {
    if (!left_over[row]) continue;
    const int16_t* exponents = p.left->exponents.data() + row * p.depth;
    const float* values = p.left->scaled.data() + row * p.depth;
    const char* c = p.c ? p.c + row * p.c_stride + 4 * column : nullptr;
    char* d = p.d + row * p.d_stride + 4 * column;
    int16_t highest[kBytes / 2];
    find_highest<kBytes>(exponents, powers, p.depth, highest);
    Aligned<kBytes> half[2];
    for (int i = 0; i < 2; ++i) {
      const auto below = read<typename V::HalfShorts>(highest + i * kBytes / 4);
      const auto top = read<typename V::HalfShorts>(largest + i * kBytes / 4);
      half[i] = align<kBytes>(__builtin_convertvector(below, Integers),
                              __builtin_convertvector(top, Integers) + p.left->largest[row],
                              c ? c + i * kBytes : nullptr, p.fraction);
      refused |= half[i].deep | half[i].special;
    }
    Doubles sums[4];
    for (int i = 0; i < 4; ++i) {
      const auto units = half_of<HalfIntegers>(half[i / 2].units, i % 2);
      sums[i] = __builtin_convertvector(units, Doubles);
    }
    for (int64_t first = 0; first < p.depth; first += kTerms) {
      const int64_t terms = std::min(p.depth - first, kTerms);
      Integers sum[2];
      for (int i = 0; i < 2; ++i) {
        sum[i] = sum_of<kBytes>(values + first, others + (2 * first + i) * kBytes, terms,
                                half[i].scales);
      }
      for (int i = 0; i < 4; ++i) {
        const auto part = half_of<HalfIntegers>(sum[i / 2], i % 2);
        sums[i] += __builtin_convertvector(part, Doubles);
      }
    }
    for (int i = 0; i < 4; ++i) {
      const auto e = half_of<HalfIntegers>(half[i / 2].exponents, i % 2);
      truncate<kBytes>(sums[i], e, p.fraction, p.bits, d + i * kBytes / 2, subnormal);
    }
  }
  return !any(refused) && !any(subnormal);
}

// What exact() has left of a product.
bool truncated(const Product& p, int64_t block, const uint8_t* left_over) {
  for (int64_t column = 0; column < p.n; column += block, left_over += p.m) {
    const bool plain = block == kWidest / 2   ? multiply<kWidest>(p, column, left_over)
                       : block == kWidest / 4 ? multiply<kWidest / 2>(p, column, left_over)
                                              : multiply<16>(p, column, left_over);
    if (!plain) return false;
  }
  return true;
}
