// Atomic updates of words of a memory, lane after lane: atomics.py and reductions.py.
#include <cstring>

#include "array.hpp"
#include "double.hpp"
#include "single.hpp"

namespace {

using kx::Array;
using u32 = uint32_t;
using u64 = uint64_t;
using s32 = int32_t;
using s64 = int64_t;

// What one update works on; operands and old values are contiguous, [lanes].
struct Update {
  char* data;
  const int64_t* offsets;
  const char* lanes;  // a byte each; null: all
  int64_t count;
  const char *operands, *others;
  char* old;
};

template <class T, class F>
void each(const Update& u) {
  for (int64_t lane = 0; lane < u.count; ++lane) {
    if (u.lanes && !u.lanes[lane]) continue;
    char* at = u.data + u.offsets[lane];
    const T before = kx::load<T>(at);
    std::memcpy(u.old + lane * sizeof(T), &before, sizeof(T));
    const T after = F::of(before, kx::load<T>(u.operands + lane * sizeof(T)),
                          kx::load<T>(u.others + lane * sizeof(T)));
    std::memcpy(at, &after, sizeof(T));
  }
}

#define UPDATE(name, expression) \
  struct name {                  \
    template <class T>           \
    static T of(T a, T b, T c) { \
      (void)c;                   \
      return expression;         \
    }                            \
  }

UPDATE(Add, a + b);
UPDATE(Min, b < a ? b : a);
UPDATE(Max, b > a ? b : a);
UPDATE(And, a& b);
UPDATE(Or, a | b);
UPDATE(Xor, a ^ b);
UPDATE(Inc, a >= b ? 0 : a + 1);
UPDATE(Dec, a == 0 || a > b ? b : a - 1);
UPDATE(Exchange, b);
UPDATE(Swap, a == b ? c : a);
UPDATE(AddReals, (kx::Single<kx::AddF32, false>::of(a, b)));
UPDATE(AddRealsFlushed, (kx::Single<kx::AddF32, true>::of(a, b)));
UPDATE(AddDoubles, kx::AddF64::of(a, b));
UPDATE(AddDoublesRaw, kx::is_nan(a) ? a : kx::is_nan(b) ? b : kx::AddF64::of(a, b));

struct Named {
  const char* name;
  void (*act)(const Update&);
};

#define OF_BITS(name, F) {name ".b32", each<u32, F>}, {name ".b64", each<u64, F>}
#define OF_INTEGERS(name, F) \
  {name ".u32", each<u32, F>}, {name ".s32", each<s32, F>}, {name ".u64", each<u64, F>}, \
      {name ".s64", each<s64, F>}

const Named kNamed[] = {
    {"add.u32", each<u32, Add>},
    {"add.s32", each<u32, Add>},
    {"add.u64", each<u64, Add>},
    {"add.s64", each<u64, Add>},
    OF_INTEGERS("min", Min),
    OF_INTEGERS("max", Max),
    OF_BITS("and", And),
    OF_BITS("or", Or),
    OF_BITS("xor", Xor),
    OF_BITS("exch", Exchange),
    OF_BITS("cas", Swap),
    {"inc.u32", each<u32, Inc>},
    {"dec.u32", each<u32, Dec>},
    {"add.f32", each<u32, AddReals>},
    {"add.f64", each<u64, AddDoubles>},
    {"add.ftz.f32", each<u32, AddRealsFlushed>},
    {"add.raw.f64", each<u64, AddDoublesRaw>},
};

}  // namespace

// Updates words of `data` at offsets (int64) in the order of lanes, for those that `lanes` has (bool,
// if masked); all arrays are contiguous. `others` is what a compare and swap stores. Nonzero, and
// nothing is done, where there is no operation of that name.
extern "C" int kx_update(const char* name, const Array* data, const Array* offsets,
                         const Array* lanes, int masked, int64_t count, const Array* operands,
                         const Array* others, const Array* old) {
  for (const Named& named : kNamed) {
    if (std::strcmp(named.name, name)) continue;
    named.act({data->data, kx::integers(offsets), masked ? lanes->data : nullptr, count,
               operands->data, others->data, old->data});
    return 0;
  }
  return 1;
}
