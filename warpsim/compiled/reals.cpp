// Instructions on floating point, by the names that PTX has for them: what ptx/isa says, by lane.
#include <cmath>
#include <limits>

#include "double.hpp"
#include "half.hpp"
#include "lanes.hpp"
#include "single.hpp"

namespace {

using namespace kx::lanewise;
using kx::Call;
using kx::kLanes;

// f32

struct FromReal {
  template <class T>
  static KX_INLINE T integral(double value, bool truncates) {
    const double rounded = truncates ? std::trunc(value) : std::rint(value);
    constexpr double kLow = std::numeric_limits<T>::min(), kHigh = std::numeric_limits<T>::max();
    if (!(rounded == rounded)) return 0;
    return rounded <= kLow ? std::numeric_limits<T>::min()
                           : rounded >= kHigh ? std::numeric_limits<T>::max() : T(rounded);
  }
};

template <class T, bool kTruncates>
struct ToInteger {
  static KX_INLINE T of(u32 a) { return FromReal::integral<T>(kx::value_of(a), kTruncates); }
};

FUNCTION(ToSingle, kx::bits_of(static_cast<float>(a)), T a)

using kx::Single;

template <class F>
struct Saturated {
  template <bool kFlush, class... S>
  static KX_INLINE u32 of(S... sources) {
    return kx::SaturateF32::of<kFlush>(F::template of<kFlush>(sources...));
  }
};

// Both halves of a pair of f32.
template <class F, bool kFlush>
struct SinglePair {
  template <class... S>
  static KX_INLINE u64 of(S... sources) {
    const u32 low = Single<F, kFlush>::of(u32(sources)...);
    const u32 high = Single<F, kFlush>::of(u32(sources >> 32)...);
    return u64(high) << 32 | low;
  }
};

// Both halves of a pair of f16 or bf16.
template <class F>
struct HalfPair {
  template <class... S>
  static KX_INLINE u32 of(S... sources) {
    return u32(F::of(u16(sources >> 16)...)) << 16 | F::of(u16(sources)...);
  }
};

enum class Integral { kNearest, kZero, kDown, kUp };

template <class T>
KX_INLINE T integral(Integral how, T x) {
  switch (how) {
    case Integral::kNearest: return std::nearbyint(x);
    case Integral::kZero: return std::trunc(x);
    case Integral::kDown: return std::floor(x);
    default: return std::ceil(x);
  }
}
template <Integral kHow>
struct IntegralF32 {
  template <bool>
  static KX_INLINE u32 of(u32 a) { return kx::bits_of(integral(kHow, kx::value_of(a))); }
};

template <class Format>
using MinHalf = kx::ThroughF32<Format, kx::MinF32>;
template <class Format>
using MaxHalf = kx::ThroughF32<Format, kx::MaxF32>;
template <class Format>
using NegHalf = kx::ThroughF32<Format, kx::NegF32>;
template <class Format>
using AbsHalf = kx::ThroughF32<Format, kx::AbsF32>;

// Of a comparison of f32.
template <class Format, class F>
struct OrderedHalf {
  static KX_INLINE bool of(u16 a, u16 b) { return F::of(Format::wide(a), Format::wide(b)); }
};

FUNCTION(PackBf16, kx::packed_bf16(a, b), T a, T b)
FUNCTION(PackF16, kx::f16_of(a) << 16 | kx::f16_of(b), T a, T b)
FUNCTION(ToBf16, kx::bf16_of(a), T a)
FUNCTION(ToF16, kx::f16_of(a), T a)
FUNCTION(OfBf16, u32(a) << 16, T a)
FUNCTION(OfF16, kx::f32_of(a), T a)
FUNCTION(OfHalf, kx::f32_of(u16(a >> b)), T a, T b)

// Comparisons

// kOfNan: what a comparison with a NaN gives.
template <class F, bool kFlush, bool kOfNan>
struct Ordered {
  static KX_INLINE bool of(u32 a, u32 b) {
    if (kFlush) a = kx::flushed(a), b = kx::flushed(b);
    const bool holds = F::of(kx::value_of(a), kx::value_of(b));
    return kx::is_nan(a) || kx::is_nan(b) ? kOfNan : holds;
  }
};

template <class F, bool kOfNan>
struct OrderedF64 {
  static KX_INLINE bool of(u64 a, u64 b) {
    const bool holds = F::of(kx::double_of(a), kx::double_of(b));
    return kx::is_nan(a) || kx::is_nan(b) ? kOfNan : holds;
  }
};

FUNCTION(ToDouble, kx::bits_of(static_cast<double>(a)), T a)
FUNCTION(WidenF32, kx::bits_of(static_cast<double>(kx::value_of(a))), T a)
FUNCTION(NarrowF64, kx::bits_of(static_cast<float>(kx::double_of(a))), T a)

template <class T>
struct TruncateF64 {
  static KX_INLINE T of(u64 a) {
    return kx::is_nan(a) ? T(0x80000000) : FromReal::integral<T>(kx::double_of(a), true);
  }
};

// Whole instructions

// 2^a or log2(a). Python's float64 and this one differ by a few units in the last place: where that
// may make another f32, it is left to Python.
template <double (*kFunction)(double), bool kFlush>
bool approximate(const Call& call, const kx::Named&) {
  u32* const results = call.machine.results;
  const kx::Rows from = call.operand(1);
  const int sign = sign_of(call, 0);
  for (int64_t row = 0; row < call.set.rows; ++row) {
    for (int lane = 0; lane < kLanes; ++lane) {
      const u32 a = read(kx::load<u32>(from.at(row, lane)), sign);
      const double value = kFunction(kx::value_of(kFlush ? kx::flushed(a) : a));
      const u32 low = kx::rounded_to_f32(value * (1 - 0x1p-50), kFlush);
      const u32 high = kx::rounded_to_f32(value * (1 + 0x1p-50), kFlush);
      if (low != high) return false;
      results[row * kLanes + lane] = kx::canonical(kx::rounded_to_f32(value, kFlush));
    }
  }
  for (int64_t row = 0; row < call.set.rows; ++row) {
    put(call.operand(0), row, 1, call.active(row), results + row * kLanes, sizeof(u32));
  }
  return true;
}

// The table

#define TO_F32(from, S) of_lanes<ToSingle, u32, S>("cvt.rn.f32." from)
#define ROUNDED(to, T) \
    of_lanes<ToInteger<T, true>, T, u32>("cvt.rzi." to ".f32"), \
    of_lanes<ToInteger<T, true>, T, u32>("cvt.rzi.ftz." to ".f32"), \
    of_lanes<ToInteger<T, false>, T, u32>("cvt.rni." to ".f32"), \
    of_lanes<ToInteger<T, false>, T, u32>("cvt.rni.ftz." to ".f32")
#define REAL(name, type, Form, F, ...) \
    of_lanes<Form<F, false>, __VA_ARGS__>(name "." type), \
    of_lanes<Form<F, true>, __VA_ARGS__>(name ".ftz." type)
#define REALS(name, F, ...) REAL(name, "f32", Single, F, __VA_ARGS__), \
    REAL(name ".rn", "f32", Single, F, __VA_ARGS__)
#define SATURATED(name, F, ...) \
    of_lanes<Single<Saturated<F>, false>, u32, __VA_ARGS__>(name ".sat.f32"), \
    of_lanes<Single<Saturated<F>, true>, u32, __VA_ARGS__>(name ".ftz.sat.f32")
#define SET_REAL(name, F, of_nan) \
    of_lanes<Ordered<F, false, of_nan>, u8, u32, u32>("setp." name ".f32", set_predicates), \
    of_lanes<Ordered<F, true, of_nan>, u8, u32, u32>("setp." name ".ftz.f32", set_predicates)
#define SET_F64(name, F, of_nan) \
    of_lanes<OrderedF64<F, of_nan>, u8, u64, u64>("setp." name ".f64", set_predicates)
#define HALF(name, F, count) count(name ".f16", F<kx::F16>, u16), \
    count(name ".bf16", F<kx::Bf16>, u16), count(name ".f16x2", HalfPair<F<kx::F16>>, u32), \
    count(name ".bf16x2", HalfPair<F<kx::Bf16>>, u32)
#define SET_HALF(name, F, of_nan) \
    of_lanes<OrderedHalf<kx::F16, Ordered<F, false, of_nan>>, u8, u16, u16>( \
        "setp." name ".f16", set_predicates), \
    of_lanes<OrderedHalf<kx::Bf16, Ordered<F, false, of_nan>>, u8, u16, u16>( \
        "setp." name ".bf16", set_predicates)
#define TO_F64(from, T) of_lanes<ToDouble, u64, T>("cvt.rn.f64." from)

const kx::Named kNamed[] = {
    SET_REAL("eq", Eq, false), SET_REAL("ne", Ne, false), SET_REAL("lt", Lt, false),
    SET_REAL("le", Le, false), SET_REAL("gt", Gt, false), SET_REAL("ge", Ge, false),
    SET_REAL("equ", Eq, true), SET_REAL("neu", Ne, true), SET_REAL("ltu", Lt, true),
    SET_REAL("leu", Le, true), SET_REAL("gtu", Gt, true), SET_REAL("geu", Ge, true),
    SET_F64("eq", Eq, false), SET_F64("ne", Ne, false), SET_F64("lt", Lt, false),
    SET_F64("le", Le, false), SET_F64("gt", Gt, false), SET_F64("ge", Ge, false),
    SET_F64("equ", Eq, true), SET_F64("neu", Ne, true), SET_F64("ltu", Lt, true),
    SET_F64("leu", Le, true), SET_F64("gtu", Gt, true), SET_F64("geu", Ge, true),
    BINARY("add.f64", kx::AddF64, u64), BINARY("add.rn.f64", kx::AddF64, u64),
    BINARY("sub.f64", kx::SubF64, u64), BINARY("sub.rn.f64", kx::SubF64, u64),
    BINARY("mul.f64", kx::MulF64, u64), BINARY("mul.rn.f64", kx::MulF64, u64),
    TERNARY("fma.rn.f64", kx::FmaF64, u64), BINARY("div.rn.f64", kx::DivF64, u64),
    UNARY("rcp.rn.f64", kx::RcpF64, u64), UNARY("sqrt.rn.f64", kx::SqrtF64, u64),
    UNARY("neg.f64", kx::NegF64, u64), UNARY("abs.f64", kx::AbsF64, u64),
    of_lanes<WidenF32, u64, u32>("cvt.f64.f32"), of_lanes<NarrowF64, u32, u64>("cvt.rn.f32.f64"),
    of_lanes<TruncateF64<u32>, u32, u64>("cvt.rzi.u32.f64"),
    of_lanes<TruncateF64<s32>, s32, u64>("cvt.rzi.s32.f64"), TO_F64("u32", u32), TO_F64("s32", s32),
    TO_F64("u64", u64), TO_F64("s64", s64), TO_F32("u8", u8), TO_F32("s8", s8), TO_F32("u16", u16),
    TO_F32("s16", s16), TO_F32("u32", u32), TO_F32("s32", s32), TO_F32("u64", u64),
    TO_F32("s64", s64), ROUNDED("u32", u32), ROUNDED("s32", s32),
    REALS("add", kx::AddF32, u32, u32, u32), REALS("sub", kx::SubF32, u32, u32, u32),
    REALS("mul", kx::MulF32, u32, u32, u32),
    REAL("fma.rn", "f32", Single, kx::FmaF32, u32, u32, u32, u32),
    REAL("fma.rz", "f32", Single, kx::FmaToF32<kx::Toward::kZero>, u32, u32, u32, u32),
    REAL("fma.rm", "f32", Single, kx::FmaToF32<kx::Toward::kDown>, u32, u32, u32, u32),
    REAL("fma.rp", "f32", Single, kx::FmaToF32<kx::Toward::kUp>, u32, u32, u32, u32),
    SATURATED("add", kx::AddF32, u32, u32), SATURATED("mul", kx::MulF32, u32, u32),
    SATURATED("fma.rn", kx::FmaF32, u32, u32, u32),
    REAL("min", "f32", Single, kx::MinF32, u32, u32, u32),
    REAL("max", "f32", Single, kx::MaxF32, u32, u32, u32),
    REAL("neg", "f32", Single, kx::NegF32, u32, u32),
    REAL("abs", "f32", Single, kx::AbsF32, u32, u32),
    REAL("div.rn", "f32", Single, kx::DivF32, u32, u32, u32),
    REAL("div.full", "f32", Single, kx::DivFullF32, u32, u32, u32),
    REAL("div.approx", "f32", Single, kx::DivApproxF32, u32, u32, u32),
    REAL("rcp.rn", "f32", Single, kx::RcpRoundedF32, u32, u32),
    REAL("sqrt.rn", "f32", Single, kx::SqrtRoundedF32, u32, u32),
    of_lanes<Single<kx::SaturateF32, false>, u32, u32>("cvt.sat.f32.f32"),
    REAL("rcp.approx", "f32", Single, kx::RcpF32, u32, u32),
    REAL("sqrt.approx", "f32", Single, kx::SqrtF32, u32, u32),
    REAL("rsqrt.approx", "f32", Single, kx::RsqrtF32, u32, u32),
    whole("ex2.approx.f32", approximate<std::exp2, false>),
    whole("ex2.approx.ftz.f32", approximate<std::exp2, true>),
    whole("lg2.approx.f32", approximate<std::log2, false>),
    whole("lg2.approx.ftz.f32", approximate<std::log2, true>),
    REAL("add.rn", "f32x2", SinglePair, kx::AddF32, u64, u64, u64),
    REAL("sub.rn", "f32x2", SinglePair, kx::SubF32, u64, u64, u64),
    REAL("mul.rn", "f32x2", SinglePair, kx::MulF32, u64, u64, u64),
    REAL("fma.rn", "f32x2", SinglePair, kx::FmaF32, u64, u64, u64, u64),
    of_lanes<PackBf16, u32, u32, u32>("cvt.rn.bf16x2.f32"),
    of_lanes<PackF16, u32, u32, u32>("cvt.rn.f16x2.f32"),
    of_lanes<ToBf16, u16, u32>("cvt.rn.bf16.f32"), of_lanes<ToF16, u16, u32>("cvt.rn.f16.f32"),
    HALF("add", kx::AddHalf, BINARY), HALF("add.rn", kx::AddHalf, BINARY),
    HALF("sub", kx::SubHalf, BINARY), HALF("sub.rn", kx::SubHalf, BINARY),
    HALF("mul", kx::MulHalf, BINARY), HALF("mul.rn", kx::MulHalf, BINARY),
    HALF("fma.rn", kx::FmaHalf, TERNARY), HALF("min", MinHalf, BINARY),
    HALF("max", MaxHalf, BINARY), HALF("neg", NegHalf, UNARY), HALF("abs", AbsHalf, UNARY),
    SET_HALF("eq", Eq, false), SET_HALF("ne", Ne, false), SET_HALF("lt", Lt, false),
    SET_HALF("le", Le, false), SET_HALF("gt", Gt, false), SET_HALF("ge", Ge, false),
    SET_HALF("neu", Ne, true),
    REAL("cvt.rni", "f32.f32", Single, IntegralF32<Integral::kNearest>, u32, u32),
    REAL("cvt.rzi", "f32.f32", Single, IntegralF32<Integral::kZero>, u32, u32),
    REAL("cvt.rmi", "f32.f32", Single, IntegralF32<Integral::kDown>, u32, u32),
    REAL("cvt.rpi", "f32.f32", Single, IntegralF32<Integral::kUp>, u32, u32),
    of_lanes<OfBf16, u32, u16>("cvt.f32.bf16"), of_lanes<OfF16, u32, u16>("cvt.f32.f16"),
    of_lanes<OfHalf, u32, u32, u32>("hadd2.f32"),
};

}  // namespace

const kx::Table kx::kReals = {kNamed, sizeof kNamed / sizeof *kNamed};
