// Products of which nothing can be truncated, in vectors of kBytes, for tensor.cpp: included before
// products.hpp, which computes all others.
//
// Let t be the sum of the largest exponents of a row and of a column, and 2^(t - span) the product of
// their lowest bits. Every product of theirs is a multiple of that and below 2^(t + 2), and an
// element's largest exponent e is at most the larger of t and C's.
// - Products lose nothing where span <= F and C lies below 2^(t - span + F + 1).
// - C loses nothing where it is a multiple of 2^(t - F).
// - Their sum is exact in float32, in any order, where 2 + log2(depth) + span <= 24. A single
//   addition of C then truncates it, as the processor rounds toward zero here.
// With t within kExponents no power of two here is too large or too small for float32, and no result
// subnormal or infinite.

constexpr int kTogether = kWidest == 64 ? 8 : 4;  // rows, so that a vector of B is loaded once for them

// Sums of products of rows from `row` on with two vectors of columns.
template <int kBytes>
KX_INLINE void add_products(const Product& p, int64_t row, int64_t column,
                            typename Vectors<kBytes>::Floats (&sums)[kTogether][2]) {
  using Floats = typename Vectors<kBytes>::Floats;
  const char* others = reinterpret_cast<const char*>(p.right->values.data() + column * p.depth);
  const float* values = p.left->values.data() + row * p.depth;
  for (auto& sum : sums) sum[0] = sum[1] = Floats{};
  for (int64_t k = 0; k < p.depth; ++k, others += 2 * kBytes) {
    const Floats first = read<Floats>(others), second = read<Floats>(others + kBytes);
    for (int i = 0; i < kTogether; ++i) {
      const float value = values[i * p.depth + k];
      sums[i][0] += first * value;
      sums[i][1] += second * value;
    }
  }
}

// Columns [column, column + kBytes / 2) of these rows; false if any has to be computed again. The
// span is the longest of them.
template <int kBytes>
KX_INLINE bool multiply_exactly(const Product& p, int64_t row, int64_t column, int span) {
  using Floats = typename Vectors<kBytes>::Floats;
  using Integers = typename Vectors<kBytes>::Integers;
  Floats sums[kTogether][2];
  add_products<kBytes>(p, row, column, sums);
  const float limit = power(p.fraction + 1 - span), last = power(23 - p.fraction);
  const int32_t kept = -(1 << (24 - p.bits));
  Integers lossy = {};
  for (int i = 0; i < kTogether; ++i) {
    const char* c = p.c + (row + i) * p.c_stride + 4 * column;
    char* d = p.d + (row + i) * p.d_stride + 4 * column;
    for (int j = 0; j < 2; ++j) {
      Floats total = sums[i][j];
      if (p.c) {
        const float* powers = p.right->powers.data() + column + j * kBytes / 4;
        const Floats power = read<Floats>(powers) * p.left->powers[row + i];  // 2^t
        const Integers pattern = read<Integers>(c + j * kBytes);
        const Floats magnitude = reinterpret_cast<Floats>(pattern & 0x7FFFFFFF);
        const Floats step = power * last;  // whose last bit is 2^(t - F)
        const Integers whole = (magnitude + step - step == magnitude) | (magnitude >= step);
        lossy |= ~whole | ~(magnitude < power * limit);
        total += reinterpret_cast<Floats>(pattern);
      }
      const Integers result = reinterpret_cast<Integers>(total) & kept;
      __builtin_memcpy(d + j * kBytes, &result, sizeof result);
    }
  }
  return !any(lossy);
}

// What can be computed so of a product, whose B is decoded in blocks of `block` columns; marks what
// is left, [columns / block, rows], and says whether there is any.
bool exact(const Product& p, int64_t block, uint8_t* left_over) {
  int most = 22;
  while (int64_t{1} << (22 - most) < p.depth) --most;
  most = std::min(most, p.fraction);
  std::fill_n(left_over, p.n / block * p.m, 1);
  std::vector<Extent> columns;
  for (int64_t column = 0; column < p.n; column += block) {
    columns.push_back(extent(*p.right, column, block));
  }
  bool some_left = p.m % kTogether;
  for (int64_t row = 0; row + kTogether <= p.m; row += kTogether) {
    const Extent rows = extent(*p.left, row, kTogether);
    for (int64_t i = 0; i < p.n / block; ++i) {
      const int span = rows.span + columns[i].span;
      const bool fits = span <= most && rows.low + columns[i].low >= -kExponents &&
                        rows.high + columns[i].high <= kExponents;
      const int64_t column = i * block;
      const bool done = !fits                  ? false
                        : block == kWidest / 2 ? multiply_exactly<kWidest>(p, row, column, span)
                        : block == kWidest / 4
                            ? multiply_exactly<kWidest / 2>(p, row, column, span)
                            : multiply_exactly<16>(p, row, column, span);
      if (done) std::fill_n(left_over + i * p.m + row, kTogether, 0);
      some_left |= !done;
    }
  }
  return some_left;
}
