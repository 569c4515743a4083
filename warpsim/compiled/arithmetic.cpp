// Instructions on registers, by the names that PTX has for them: what ptx/isa says, lane by lane.
// Those on floating point are in reals.cpp.
#include <algorithm>
#include <type_traits>

#include "lanes.hpp"

namespace {

using namespace kx::lanewise;
using kx::Call;
using kx::kLanes;

FUNCTION(Move, a, T a)
FUNCTION(Add, Unsigned<T>(a) + Unsigned<T>(b), T a, T b)
FUNCTION(Sub, Unsigned<T>(a) - Unsigned<T>(b), T a, T b)
FUNCTION(Mul, u64(a) * u64(b), T a, T b)
FUNCTION(Add3, a + b + c, T a, T b, T c)
FUNCTION(Mad, u64(a) * u64(b) + u64(c), T a, T b, T c)
FUNCTION(Min, std::min(a, b), T a, T b)
FUNCTION(Max, std::max(a, b), T a, T b)
FUNCTION(Abs, a < 0 ? 0 - Unsigned<T>(a) : Unsigned<T>(a), T a)
FUNCTION(Neg, 0 - Unsigned<T>(a), T a)
FUNCTION(And, a & b, T a, T b)
FUNCTION(Or, a | b, T a, T b)
FUNCTION(Xor, a ^ b, T a, T b)
FUNCTION(Not, ~a, T a)
FUNCTION(NotBit, a ^ 1, T a)
FUNCTION(Shl, n < kBits<T> ? a << n : 0, T a, u32 n)
FUNCTION(Shr, n < kBits<T> ? a >> n : (a < 0 ? -1 : 0), T a, u32 n)
FUNCTION(Select, p ? a : b, T a, T b, u8 p)
FUNCTION(Popc, __builtin_popcountll(a), T a)
FUNCTION(Clz, a ? __builtin_clzll(a) - (64 - kBits<T>) : kBits<T>, T a)

template <class T>
using Wider = std::conditional_t<
    std::is_signed_v<T>,
    std::conditional_t<sizeof(T) == 2, s32, std::conditional_t<sizeof(T) == 4, s64, __int128>>,
    std::conditional_t<sizeof(T) == 2, u32,
                       std::conditional_t<sizeof(T) == 4, u64, unsigned __int128>>>;

FUNCTION(MulHi, (Wider<T>(a) * Wider<T>(b)) >> kBits<T>, T a, T b)
FUNCTION(MadHi, Unsigned<T>((Wider<T>(a) * Wider<T>(b)) >> kBits<T>) + Unsigned<T>(c), T a, T b,
         T c)
FUNCTION(MulWide, Wider<T>(a) * Wider<T>(b), T a, T b)

struct MadWide {
  template <class T, class W>
  static KX_INLINE W of(T a, T b, W c) {
    return W(Wider<T>(a) * Wider<T>(b)) + c;
  }
};

// Division by zero gives all ones.
struct Div {
  template <class T>
  static KX_INLINE Unsigned<T> of(T a, T b) {
    using U = Unsigned<T>;
    if (!b) return U(~U(0));
    const U x = a < 0 ? U(0) - U(a) : U(a), y = b < 0 ? U(0) - U(b) : U(b);
    const U quotient = x / y;
    return (a < 0) != (b < 0) ? U(0) - quotient : quotient;
  }
};
FUNCTION(Rem, Unsigned<T>(a) - u64(Div::of(a, b)) * Unsigned<T>(b), T a, T b)

template <bool kLeft, bool kWraps>
struct Funnel {
  static KX_INLINE u32 of(u32 a, u32 b, u32 n) {
    n = kWraps ? n & 31 : std::min<u32>(n, 32);
    const u64 both = u64(b) << 32 | a;
    return kLeft ? both << n >> 32 : both >> n;
  }
};

// Four bytes of {b, a}; bit 3 of a choice repeats the byte's sign.
struct Permute {
  static KX_INLINE u32 of(u32 a, u32 b, u32 selector) {
    const u64 both = u64(b) << 32 | a;
    u32 result = 0;
    for (int position = 0; position < 4; ++position) {
      const u32 chosen = selector >> 4 * position & 15;
      const u32 byte = both >> 8 * (chosen & 7) & 0xFF;
      result |= (chosen & 8 ? (byte >> 7) * 0xFF : byte) << 8 * position;
    }
    return result;
  }
};

template <class U>
KX_INLINE U ones(u32 count) {
  return !count ? 0 : U(~U(0)) >> (count < kBits<U> ? kBits<U> - count : 0);
}

// Position and length modulo 256 for 32 bits and unchanged for 64, as on an H200.
struct Extract {
  template <class T>
  static KX_INLINE Unsigned<T> of(T a, u32 position, u32 length) {
    using U = Unsigned<T>;
    constexpr u32 kMost = sizeof(T) == 4 ? 0xFF : 0xFFFFFFFF;
    const u32 p = position & kMost, n = length & kMost;
    const U shifted = Shr::of(a, p), kept = ones<U>(n);
    if (!n || !std::is_signed_v<T>) return shifted & kept;
    const u64 at = std::min<u64>(u64(p) + n - 1, kBits<T> - 1);
    return U(a) >> at & 1 ? shifted | U(~kept) : shifted & kept;
  }
};

struct Insert {
  template <class U>
  static KX_INLINE U of(U a, U b, u32 position, u32 length) {
    // Modulo 256 for 32 bits and unchanged for 64, as in ptx/isa/logic.py.
    const u32 most = sizeof(U) == 4 ? 0xFF : 0xFFFFFFFF, p = position & most;
    const U mask = Shl::of(ones<U>(length & most), p);
    return (b & ~mask) | (U(Shl::of(a, p)) & mask);
  }
};

// The same offset in the CTA of that rank of the cluster.
FUNCTION(MapShared, (a & 0xFFFFFF) | rank << 24, T a, T rank)

// From and to integers of fewer bits than a register has too.
struct Convert {
  template <class T>
  static KX_INLINE T of(T a) {
    return a;
  }
};

// The four products of bytes, added.
template <class A, class B>
struct DotOfBytes {
  static KX_INLINE u32 of(u32 a, u32 b, u32 c) {
    for (int shift = 0; shift < 32; shift += 8) c += u32(A(a >> shift)) * u32(B(b >> shift));
    return c;
  }
};

// Whole instructions

// Any logic function, by the truth table in numbers[0]; whether any bit is set goes to operand 4,
// where there is one, together with the predicate in operand 5: by numbers[1] 1 or, 2 and it, negated if
// numbers[2].
bool lop3(const Call& call, const kx::Named&) {
  const int32_t* numbers = call.instruction.numbers;
  const u32 table = numbers[0];
  alignas(64) u32 result[kLanes];
  alignas(64) u8 any[kLanes];
  Buffers buffers;
  for (int64_t row = 0; row < call.set.rows; ++row) {
    const u32* sources[3];
    for (int i = 0; i < 3; ++i) {
      sources[i] = static_cast<const u32*>(source_of(call, i, i + 1, row, 4, buffers[i]));
    }
    std::memset(result, 0, sizeof result);
    for (int index = 0; index < 8; ++index) {
      if (!(table >> index & 1)) continue;
      const u32 a = index & 4 ? 0 : ~0u, b = index & 2 ? 0 : ~0u, c = index & 1 ? 0 : ~0u;
      for (int lane = 0; lane < kLanes; ++lane) {
        result[lane] |= (sources[0][lane] ^ a) & (sources[1][lane] ^ b) & (sources[2][lane] ^ c);
      }
    }
    if (numbers[1]) {
      for (int lane = 0; lane < kLanes; ++lane) {
        const bool with = bit(call, 5, row, lane, numbers[2]), set = result[lane] != 0;
        any[lane] = numbers[1] == 2 ? set & with : set | with;
      }
      put(call.operand(4), row, 1, call.active(row), any, 1);
    }
    put(call.operand(0), row, 1, call.active(row), result, sizeof *result);
  }
  return true;
}

// p|q: functions of three predicates, by the tables in numbers[0] and [1]; numbers[2] has a bit for
// each source that is negated.
bool plop3(const Call& call, const kx::Named&) {
  const int32_t* numbers = call.instruction.numbers;
  alignas(64) u8 results[2][kLanes];
  for (int64_t row = 0; row < call.set.rows; ++row) {
    for (int lane = 0; lane < kLanes; ++lane) {
      int index = 0;
      for (int i = 0; i < 3; ++i) {
        index = index << 1 | bit(call, 2 + i, row, lane, numbers[2] >> i & 1);
      }
      for (int i = 0; i < 2; ++i) results[i][lane] = numbers[i] >> index & 1;
    }
    for (int i = 0; i < 2; ++i) {
      if (call.has(i)) put(call.operand(i), row, 1, call.active(row), results[i], 1);
    }
  }
  return true;
}

// Writes sums and, to operands 1 and 2 where there are any, whether they reach 2^32 and 2^33.
void put_sums(const Call& call, int64_t row, const u64* sums) {
  alignas(64) u32 result[kLanes];
  alignas(64) u8 carries[2][kLanes];
  for (int lane = 0; lane < kLanes; ++lane) {
    result[lane] = u32(sums[lane]);
    for (u64 i = 0; i < 2; ++i) carries[i][lane] = sums[lane] >= (i + 1) << 32;
  }
  for (int i = 0; i < 2; ++i) {
    if (call.has(1 + i)) put(call.operand(1 + i), row, 1, call.active(row), carries[i], 1);
  }
  put(call.operand(0), row, 1, call.active(row), result, sizeof *result);
}

// d, two carries, a + b + c and two carries more, negated by the bits of numbers[0].
bool add_with_carries(const Call& call, const kx::Named&) {
  alignas(64) u64 sums[kLanes];
  Buffers buffers;
  for (int64_t row = 0; row < call.set.rows; ++row) {
    for (int lane = 0; lane < kLanes; ++lane) {
      sums[lane] = 0;
      for (int i = 0; i < 2; ++i) {
        sums[lane] += bit(call, 6 + i, row, lane, call.instruction.numbers[0] >> i & 1);
      }
    }
    for (int i = 0; i < 3; ++i) {
      const u32* a = static_cast<const u32*>(lanes_of(call.operand(3 + i), row, 4, buffers[i]));
      for (int lane = 0; lane < kLanes; ++lane) sums[lane] += addend(a[lane], sign_of(call, i));
    }
    put_sums(call, row, sums);
  }
  return true;
}

// d, a carry, nothing, (a << numbers[0]) + b, or where numbers[1] the upper word of {c, a} << numbers[0], or
// of a with its sign where there is no c; and a carry, operand 6, negated if numbers[2].
bool lea(const Call& call, const kx::Named&) {
  const int32_t* numbers = call.instruction.numbers;
  const int shift = numbers[0];
  alignas(64) u64 sums[kLanes];
  Buffers buffers;
  for (int64_t row = 0; row < call.set.rows; ++row) {
    const u32* a = static_cast<const u32*>(source_of(call, 0, 3, row, 4, buffers[0]));
    const u32* b = static_cast<const u32*>(lanes_of(call.operand(4), row, 4, buffers[1]));
    for (int lane = 0; lane < kLanes; ++lane) {
      u64 moved = u32(a[lane] << shift);
      if (numbers[1]) {
        const u64 whole = call.has(5) ? u64(kx::load<u32>(call.operand(5).at(row, lane))) << 32 | a[lane]
                                      : u64(s64(s32(a[lane])));
        moved = u32(whole >> (32 - shift));
      }
      sums[lane] = moved + addend(b[lane], sign_of(call, 1)) + bit(call, 6, row, lane, numbers[2]);
    }
    put_sums(call, row, sums);
  }
  return true;
}

// d = a * b + c and a carry, negated if numbers[0].
bool mad_with_carry(const Call& call, const kx::Named&) {
  alignas(64) u32 result[kLanes];
  Buffers buffers;
  for (int64_t row = 0; row < call.set.rows; ++row) {
    const u32* sources[3];
    for (int i = 0; i < 3; ++i) {
      sources[i] = static_cast<const u32*>(source_of(call, i, 1 + i, row, 4, buffers[i]));
    }
    for (int lane = 0; lane < kLanes; ++lane) {
      result[lane] = sources[0][lane] * sources[1][lane] + sources[2][lane] +
                     bit(call, 4, row, lane, call.instruction.numbers[0]);
    }
    put(call.operand(0), row, 1, call.active(row), result, sizeof *result);
  }
  return true;
}

// The lower and the upper word, either of which may be missing, and the carry, of a * b + {upper c,
// lower c} and a carry: unsigned if numbers[0], the carry negated if numbers[1].
bool mad_wide(const Call& call, const kx::Named&) {
  const int32_t* numbers = call.instruction.numbers;
  alignas(64) u32 words[2][kLanes];
  alignas(64) u8 carried[kLanes];
  for (int64_t row = 0; row < call.set.rows; ++row) {
    for (int lane = 0; lane < kLanes; ++lane) {
      const auto word = [&](int index) { return kx::load<u32>(call.operand(index).at(row, lane)); };
      const u64 product = numbers[0] ? u64(word(3)) * word(4) : u64(s64(s32(word(3))) * s32(word(4)));
      const u64 sum = product + (u64(word(6)) << 32 | word(5));
      const u64 whole = sum + bit(call, 7, row, lane, numbers[1]);
      words[0][lane] = u32(whole);
      words[1][lane] = u32(whole >> 32);
      carried[lane] = sum < product || whole < sum;
    }
    for (int i = 0; i < 2; ++i) {
      if (call.has(i)) put(call.operand(i), row, 1, call.active(row), words[i], sizeof(u32));
    }
    if (call.has(2)) put(call.operand(2), row, 1, call.active(row), carried, 1);
  }
  return true;
}

// A word of {b, a} shifted by n: d, a, n, b. numbers: left, bits that the shift is limited to, signed,
// whether it wraps there, whether the upper word is kept.
bool funnel(const Call& call, const kx::Named&) {
  const int32_t* numbers = call.instruction.numbers;
  const u32 width = numbers[1];
  alignas(64) u32 result[kLanes];
  Buffers buffers;
  for (int64_t row = 0; row < call.set.rows; ++row) {
    const u32* sources[3];
    for (int i = 0; i < 3; ++i) {
      sources[i] = static_cast<const u32*>(lanes_of(call.operand(1 + i), row, 4, buffers[i]));
    }
    for (int lane = 0; lane < kLanes; ++lane) {
      const u64 both = u64(sources[2][lane]) << 32 | sources[0][lane];
      const u32 shift = sources[1][lane];
      const u32 count = numbers[3] ? shift & (width - 1) : std::min(shift, width);
      u64 moved = count >= 64 ? 0 : numbers[0] ? both << count : both >> count;
      if (numbers[2] && !numbers[0]) moved = u64(s64(both) >> std::min<u32>(count, 63));
      result[lane] = u32(numbers[4] ? moved >> 32 : moved);
    }
    put(call.operand(0), row, 1, call.active(row), result, sizeof *result);
  }
  return true;
}

// The first active lane's value, in all lanes of a warp that has one.
bool first_lane(const Call& call, const kx::Named&) {
  alignas(64) u32 result[kLanes];
  for (int64_t row = 0; row < call.set.rows; ++row) {
    const u8* active = call.active(row);
    int first = 0;
    while (active && first < kLanes && !active[first]) ++first;
    if (first == kLanes) continue;
    std::fill_n(result, kLanes, kx::load<u32>(call.operand(1).at(row, first)));
    put(call.operand(0), row, 1, nullptr, result, sizeof *result);
  }
  return true;
}

// A ballot, which may be missing, and whether any active lane says yes, or by numbers[0] 1 all of them
// do, 2 all alike: numbers[1] if no counts, numbers[2] if all lanes of a warp get them.
bool vote(const Call& call, const kx::Named&) {
  const int32_t* numbers = call.instruction.numbers;
  alignas(64) u32 result[kLanes];
  alignas(64) u8 holds[kLanes];
  for (int64_t row = 0; row < call.set.rows; ++row) {
    const u8* active = call.active(row);
    u32 ballot = 0, here = 0;
    for (int lane = 0; lane < kLanes; ++lane) {
      const u32 is_here = !active || active[lane];
      here |= is_here << lane;
      ballot |= (is_here & bit(call, 2, row, lane, numbers[1])) << lane;
    }
    if (!here) continue;
    const bool all = ballot == here;
    std::fill_n(result, kLanes, ballot);
    std::fill_n(holds, kLanes, numbers[0] == 0 ? ballot != 0 : numbers[0] == 1 ? all : all || !ballot);
    const u8* to = numbers[2] ? nullptr : active;
    if (call.has(0)) put(call.operand(0), row, 1, to, result, sizeof *result);
    if (call.has(1)) put(call.operand(1), row, 1, to, holds, 1);
  }
  return true;
}

bool nothing(const Call&, const kx::Named&) { return true; }

// d|p, a, b, c, member mask: shfl.sync by its modes.
enum class Mode { kUp, kDown, kXor, kIndex };

struct Source {
  int lane;  // its own, where that is out of range
  bool in_range;
};

template <Mode kMode>
Source source(const Call& call, int64_t row, int lane) {
  const int b = kx::load<u32>(call.operand(3).at(row, lane)) & 31;
  const u32 c = kx::load<u32>(call.operand(4).at(row, lane));
  const int segment = c >> 8 & 31, highest = (lane & segment) | (c & 31 & ~segment);
  const int from = kMode == Mode::kUp     ? lane - b
                   : kMode == Mode::kDown ? lane + b
                   : kMode == Mode::kXor  ? lane ^ b
                                          : (lane & segment) | (b & ~segment);
  const bool in_range = kMode == Mode::kUp ? from >= highest : from <= highest;
  return {in_range ? from : lane, in_range};
}

// Whether every active lane is named by its own member mask, and takes from a lane that is active
// and named by it.
template <Mode kMode>
bool all_take_part(const Call& call) {
  for (int64_t row = 0; row < call.set.rows; ++row) {
    const u8* active = call.active(row);
    for (int lane = 0; lane < kLanes; ++lane) {
      if (active && !active[lane]) continue;
      const u32 members = kx::load<u32>(call.operand(5).at(row, lane));
      if (!active && members == ~0u) continue;
      const int from = source<kMode>(call, row, lane).lane;
      if (!(members >> lane & members >> from & 1) || (active && !active[from])) return false;
    }
  }
  return true;
}

template <Mode kMode>
bool shuffle(const Call& call, const kx::Named&) {
  if (!all_take_part<kMode>(call)) return false;
  alignas(64) u32 result[kLanes];
  u8 found[kLanes];
  for (int64_t row = 0; row < call.set.rows; ++row) {
    for (int lane = 0; lane < kLanes; ++lane) {
      const Source taken = source<kMode>(call, row, lane);
      found[lane] = taken.in_range;
      result[lane] = kx::load<u32>(call.operand(2).at(row, taken.lane));
    }
    put(call.operand(0), row, 1, call.active(row), result, sizeof *result);
    if (call.has(1)) put(call.operand(1), row, 1, call.active(row), found, 1);
  }
  return true;
}

// One register from several, the first of which becomes the low part.
template <class D, class S>
bool pack(const Call& call, const kx::Named&) {
  alignas(64) D result[kLanes];
  for (int64_t row = 0; row < call.set.rows; ++row) {
    std::memset(result, 0, sizeof result);
    for (int part = 0; part < int(sizeof(D) / sizeof(S)); ++part) {
      const kx::Rows from = call.operand(part + 1);
      for (int lane = 0; lane < kLanes; ++lane) {
        result[lane] |= D(kx::load<S>(from.at(row, lane))) << part * kBits<S>;
      }
    }
    put(call.operand(0), row, 1, call.active(row), result, sizeof *result);
  }
  return true;
}

// Several registers from one, the last operand.
template <class D, class S>
bool unpack(const Call& call, const kx::Named&) {
  constexpr int kParts = sizeof(S) / sizeof(D);
  alignas(64) S whole[kLanes];
  alignas(64) D result[kLanes];
  for (int64_t row = 0; row < call.set.rows; ++row) {
    const kx::Rows from = call.operand(kParts);
    for (int lane = 0; lane < kLanes; ++lane) whole[lane] = kx::load<S>(from.at(row, lane));
    for (int part = 0; part < kParts; ++part) {
      if (!call.has(part)) continue;
      for (int lane = 0; lane < kLanes; ++lane) result[lane] = D(whole[lane] >> part * kBits<D>);
      put(call.operand(part), row, 1, call.active(row), result, sizeof *result);
    }
  }
  return true;
}

// The table

#define SIGNED(ARITY, name, F) ARITY(name ".s16", F, s16), ARITY(name ".s32", F, s32), \
    ARITY(name ".s64", F, s64)
#define UNSIGNED(ARITY, name, F) ARITY(name ".u16", F, u16), ARITY(name ".u32", F, u32), \
    ARITY(name ".u64", F, u64)
#define INTEGERS(ARITY, name, F) SIGNED(ARITY, name, F), UNSIGNED(ARITY, name, F)
// Where the sign makes no difference.
#define WORDS(ARITY, name, F) UNSIGNED(ARITY, name, F), ARITY(name ".s16", F, u16), \
    ARITY(name ".s32", F, u32), ARITY(name ".s64", F, u64)
#define BITS(ARITY, name, F) ARITY(name ".b16", F, u16), ARITY(name ".b32", F, u32), \
    ARITY(name ".b64", F, u64)
#define SHIFT(name, F, T) of_lanes<F, T, T, u32>(name)
#define SELECT(name, F, T) of_lanes<F, T, T, T, u8>(name)
#define WIDE(name, F, D, T) of_lanes<F, D, T, T>(name)
#define WIDE_MAD(name, F, D, T) of_lanes<F, D, T, T, D>(name)
#define SET(name, F, T) of_lanes<F, u8, T, T>("setp." name, set_predicates)
#define SETS(name, F) INTEGERS(SET, name, F), BITS(SET, name, F)
#define CVT_FROM(to, D, from, S) of_lanes<Convert, D, S>("cvt." to "." from)
#define CVT(to, D) CVT_FROM(to, D, "u8", u8), CVT_FROM(to, D, "s8", s8), \
    CVT_FROM(to, D, "u16", u16), CVT_FROM(to, D, "s16", s16), CVT_FROM(to, D, "u32", u32), \
    CVT_FROM(to, D, "s32", s32), CVT_FROM(to, D, "u64", u64), CVT_FROM(to, D, "s64", s64)

const kx::Named kNamed[] = {
    BITS(UNARY, "mov", Move), UNARY("mov.pred", Move, u8), WORDS(BINARY, "add", Add),
    WORDS(BINARY, "sub", Sub), WORDS(BINARY, "mul.lo", Mul), WORDS(TERNARY, "mad.lo", Mad),
    INTEGERS(BINARY, "mul.hi", MulHi), INTEGERS(TERNARY, "mad.hi", MadHi),
    WIDE("mul.wide.u16", MulWide, u32, u16), WIDE("mul.wide.s16", MulWide, u32, s16),
    WIDE("mul.wide.u32", MulWide, u64, u32), WIDE("mul.wide.s32", MulWide, u64, s32),
    WIDE_MAD("mad.wide.u16", MadWide, u32, u16), WIDE_MAD("mad.wide.s16", MadWide, u32, s16),
    WIDE_MAD("mad.wide.u32", MadWide, u64, u32), WIDE_MAD("mad.wide.s32", MadWide, u64, s32),
    INTEGERS(BINARY, "div", Div), INTEGERS(BINARY, "rem", Rem), INTEGERS(BINARY, "min", Min),
    INTEGERS(BINARY, "max", Max), SIGNED(UNARY, "abs", Abs), SIGNED(UNARY, "neg", Neg),
    BITS(BINARY, "and", And), BITS(BINARY, "or", Or), BITS(BINARY, "xor", Xor),
    BITS(UNARY, "not", Not), BINARY("and.pred", And, u8), BINARY("or.pred", Or, u8),
    BINARY("xor.pred", Xor, u8), UNARY("not.pred", NotBit, u8), BITS(SHIFT, "shl", Shl),
    BITS(SHIFT, "shr", Shr), INTEGERS(SHIFT, "shr", Shr),
    of_lanes<Funnel<true, true>, u32, u32, u32, u32>("shf.l.wrap.b32"),
    of_lanes<Funnel<true, false>, u32, u32, u32, u32>("shf.l.clamp.b32"),
    of_lanes<Funnel<false, true>, u32, u32, u32, u32>("shf.r.wrap.b32"),
    of_lanes<Funnel<false, false>, u32, u32, u32, u32>("shf.r.clamp.b32"),
    TERNARY("prmt.b32", Permute, u32), whole("lop3.b32", lop3), TERNARY("add3.u32", Add3, u32),
    whole("add3.cc.u32", add_with_carries), whole("lea.u32", lea),
    whole("mad.cc.u32", mad_with_carry), whole("mad.wide.cc.u64", mad_wide),
    whole("shf.b64", funnel), whole("plop3.pred", plop3), whole("first.b32", first_lane),
    whole("vote.b32", vote), whole("nothing", nothing), of_lanes<Popc, u32, u32>("popc.b32"),
    of_lanes<Popc, u32, u64>("popc.b64"), of_lanes<Clz, u32, u32>("clz.b32"),
    of_lanes<Clz, u32, u64>("clz.b64"), of_lanes<Extract, u32, u32, u32, u32>("bfe.u32"),
    of_lanes<Extract, u32, s32, u32, u32>("bfe.s32"),
    of_lanes<Extract, u64, u64, u32, u32>("bfe.u64"),
    of_lanes<Extract, u64, s64, u32, u32>("bfe.s64"),
    of_lanes<Insert, u32, u32, u32, u32, u32>("bfi.b32"),
    of_lanes<Insert, u64, u64, u64, u32, u32>("bfi.b64"), BITS(SELECT, "selp", Select),
    WORDS(SELECT, "selp", Select), SELECT("selp.f32", Select, u32), SELECT("selp.f64", Select, u64),
    SETS("eq", Eq), SETS("ne", Ne), SETS("lt", Lt), SETS("le", Le), SETS("gt", Gt), SETS("ge", Ge),
    SETS("lo", Lt), SETS("ls", Le), SETS("hi", Gt), SETS("hs", Ge),
    whole("pack.b64.b32", pack<u64, u32>), whole("pack.b32.b16", pack<u32, u16>),
    whole("pack.b64.b16", pack<u64, u16>), whole("pack.b16.b8", pack<u16, u8>),
    whole("pack.b32.b8", pack<u32, u8>), whole("unpack.b64.b32", unpack<u32, u64>),
    whole("unpack.b32.b16", unpack<u16, u32>), whole("unpack.b64.b16", unpack<u16, u64>),
    CVT("u16", u16), CVT("s16", u16), CVT("u32", u32), CVT("s32", u32), CVT("u64", u64),
    CVT("s64", u64), of_lanes<MapShared, u32, u32, u32>("mapa.shared::cluster.u32"),
    whole("shfl.sync.up.b32", shuffle<Mode::kUp>),
    whole("shfl.sync.down.b32", shuffle<Mode::kDown>),
    whole("shfl.sync.bfly.b32", shuffle<Mode::kXor>),
    whole("shfl.sync.idx.b32", shuffle<Mode::kIndex>),
    of_lanes<DotOfBytes<u8, u8>, u32, u32, u32, u32>("dp4a.u32.u32"),
    of_lanes<DotOfBytes<s8, s8>, u32, u32, u32, u32>("dp4a.s32.s32"),
    of_lanes<DotOfBytes<u8, s8>, u32, u32, u32, u32>("dp4a.u32.s32"),
    of_lanes<DotOfBytes<s8, u8>, u32, u32, u32, u32>("dp4a.s32.u32"),
};

}  // namespace

const kx::Table kx::kArithmetic = {kNamed, sizeof kNamed / sizeof *kNamed};
