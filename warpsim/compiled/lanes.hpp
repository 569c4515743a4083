// What instructions on registers have in common that are computed lane by lane.
#pragma once
#include <algorithm>
#include <cstring>
#include <type_traits>
#include <utility>

#include "interpreter.hpp"
#include "single.hpp"

namespace kx::lanewise {

using u8 = uint8_t;
using u16 = uint16_t;
using u32 = uint32_t;
using u64 = uint64_t;
using s8 = int8_t;
using s16 = int16_t;
using s32 = int32_t;
using s64 = int64_t;

template <class T>
constexpr int kBits = 8 * sizeof(T);
template <class T>
using Unsigned = std::make_unsigned_t<T>;

// Rows of a warp, of elements of so many bytes

using Buffers = char[kx::kSources][8 * kLanes];

template <class T>
KX_INLINE const void* gathered(const kx::Rows& operand, int64_t row, char* buffer) {
  for (int lane = 0; lane < kLanes; ++lane) {
    reinterpret_cast<T*>(buffer)[lane] = kx::load<T>(operand.at(row, lane));
  }
  return buffer;
}

// An operand where it lies, or gathered from the low parts of wider registers.
KX_INLINE const void* lanes_of(const kx::Rows& operand, int64_t row, int bytes, char* buffer) {
  if (operand.lane == bytes) return operand.at(row, 0);
  return bytes == 1   ? gathered<u8>(operand, row, buffer)
         : bytes == 2 ? gathered<u16>(operand, row, buffer)
                      : gathered<u32>(operand, row, buffer);
}

// How an instruction reads a source of 32 bits.
inline int sign_of(const Call& call, int source) {
  return call.instruction.signs >> kx::kSignBits * source & ((1 << kx::kSignBits) - 1);
}

KX_INLINE u32 read(u32 a, int sign) {
  if (sign & kx::kNegated) return 0 - a;
  if (sign & kx::kInverted) return ~a;
  if (sign & kx::kMagnitude) a &= 0x7FFFFFFF;
  return sign & kx::kFlipped ? a ^ 0x80000000 : a;
}

// The same of a sum's: minus x is ~x + 1, so that the sum carries as hardware's.
KX_INLINE u64 addend(u32 a, int sign) {
  if (sign & kx::kNegated) return u64(u32(~a)) + 1;
  return sign & kx::kInverted ? u32(~a) : a;
}

[[gnu::noinline]] inline void read_all(const u32* from, int sign, u32* to) {
  for (int lane = 0; lane < kLanes; ++lane) to[lane] = read(from[lane], sign);
}

// A source, operand `index`, with its sign: where it lies or in the buffer.
KX_INLINE const void* source_of(const Call& call, int source, int index, int64_t row, int bytes,
                                char* buffer) {
  const void* plain = lanes_of(call.operand(index), row, bytes, buffer);
  const int sign = sign_of(call, source);
  if (!sign) return plain;
  read_all(static_cast<const u32*>(plain), sign, reinterpret_cast<u32*>(buffer));
  return buffer;
}

// A predicate that counts as false if it is missing.
KX_INLINE bool bit(const Call& call, int index, int64_t row, int lane, int negated) {
  return call.has(index) && (*call.operand(index).at(row, lane) != 0) != negated;
}

template <class T>
KX_INLINE void blend(char* to, const u8* active, const void* values) {
  T* at = reinterpret_cast<T*>(to);
  for (int lane = 0; lane < kLanes; ++lane) {
    at[lane] = active[lane] ? static_cast<const T*>(values)[lane] : at[lane];
  }
}

// Writes whole registers of the active lanes; of several rows if all are active.
KX_INLINE void put(const kx::Rows& to, int64_t row, int64_t rows, const u8* active,
                   const void* values, int bytes) {
  char* at = to.at(row, 0);
  if (!active) {
    std::memcpy(at, values, rows * kLanes * bytes);
  } else if (bytes == 1) {
    blend<u8>(at, active, values);
  } else if (bytes == 2) {
    blend<u16>(at, active, values);
  } else if (bytes == 4) {
    blend<u32>(at, active, values);
  } else {
    blend<u64>(at, active, values);
  }
}

// result = F(sources...), by lane.
template <class F, class D, class... S, size_t... I>
KX_INLINE void each_lane(int count, D* __restrict result, const void* const* sources,
                         std::index_sequence<I...>) {
  for (int lane = 0; lane < count; ++lane) {
    result[lane] = static_cast<D>(F::of(static_cast<const S*>(sources[I])[lane]...));
  }
}

template <class F, class D, class... S>
void lanes(int count, void* result, const void* const* sources) {
  each_lane<F, D, S...>(count & -kLanes, static_cast<D*>(result), sources,
                        std::index_sequence_for<S...>());
}

#define FUNCTION(Name, result, ...)         \
  struct Name {                             \
    template <class T>                      \
    static KX_INLINE auto of(__VA_ARGS__) {    \
      return result;                        \
    }                                       \
  };

FUNCTION(Eq, a == b, T a, T b)
FUNCTION(Ne, a != b, T a, T b)
FUNCTION(Lt, a < b, T a, T b)
FUNCTION(Le, a <= b, T a, T b)
FUNCTION(Gt, a > b, T a, T b)
FUNCTION(Ge, a >= b, T a, T b)

// Warps that are computed at once, where their rows lie side by side.
constexpr int64_t kTogether = 16;

inline bool is_dense(const kx::Rows& operand, int bytes) {
  return operand.lane == bytes && operand.row == kLanes * bytes;
}

// destination = lanes(sources...), the first of which is operand `first`.
inline bool apply_from(int first, const Call& call, const kx::Named& named) {
  Buffers buffers;
  alignas(64) char result[kTogether * 8 * kLanes];
  const void* sources[kx::kSources];
  const kx::Rows to = call.operand(0);
  bool dense = call.set.rows > 1 && !call.on && !call.instruction.signs && is_dense(to, named.result);
  for (int i = 0; i < kx::kSources && named.sources[i]; ++i) {
    dense = dense && is_dense(call.operand(first + i), named.sources[i]);
  }
  for (int64_t row = 0; row < call.set.rows;) {
    const int64_t rows = dense ? std::min(kTogether, call.set.rows - row) : 1;
    for (int i = 0; i < kx::kSources && named.sources[i]; ++i) {
      sources[i] = source_of(call, i, first + i, row, named.sources[i], buffers[i]);
    }
    named.lanes(rows * kLanes, result, sources);
    put(to, row, rows, call.active(row), result, named.result);
    row += rows;
  }
  return true;
}

inline bool apply(const Call& call, const kx::Named& named) { return apply_from(1, call, named); }

// p|q, a, b, and a predicate c with which both are combined: by numbers[0] as 1 and, 2 or, 3 xor,
// negated if numbers[1].
inline bool set_predicates(const Call& call, const kx::Named& named) {
  if (!call.instruction.numbers[0] && !call.has(1)) return apply_from(2, call, named);
  alignas(64) u8 both[2][kLanes];
  Buffers buffers;
  const int combined = call.instruction.numbers[0], flip = call.instruction.numbers[1];
  for (int64_t row = 0; row < call.set.rows; ++row) {
    const void* sources[] = {source_of(call, 0, 2, row, named.sources[0], buffers[0]),
                             source_of(call, 1, 3, row, named.sources[1], buffers[1])};
    named.lanes(kLanes, both[0], sources);
    for (int lane = 0; lane < kLanes; ++lane) both[1][lane] = !both[0][lane];
    const char* with = combined ? call.operand(4).at(row, 0) : nullptr;
    for (int lane = 0; with && lane < kLanes; ++lane) {
      const u8 c = with[lane] ^ flip;
      for (u8* each : both) {
        each[lane] = combined == 1   ? each[lane] & c
                     : combined == 2 ? each[lane] | c
                                     : each[lane] ^ c;
      }
    }
    put(call.operand(0), row, 1, call.active(row), both[0], 1);
    if (call.has(1)) put(call.operand(1), row, 1, call.active(row), both[1], 1);
  }
  return true;
}

// The tables

template <class F, class D, class... S>
constexpr kx::Named of_lanes(const char* name, kx::Operation operation = apply) {
  return {name, operation, lanes<F, D, S...>, sizeof(D), {sizeof(S)...}};
}

constexpr kx::Named whole(const char* name, kx::Operation operation) {
  return {name, operation, nullptr, 0, {}};
}

#define UNARY(name, F, T) of_lanes<F, T, T>(name)
#define BINARY(name, F, T) of_lanes<F, T, T, T>(name)
#define TERNARY(name, F, T) of_lanes<F, T, T, T, T>(name)

}  // namespace kx::lanewise
