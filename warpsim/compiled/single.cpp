// f32 arithmetic on arrays of patterns: the commonest forms of single.py and ieee.py.
#include "single.hpp"

#include <initializer_list>

#include "array.hpp"

namespace {

template <class F, bool kFlush, class... S>
inline __attribute__((always_inline)) void compute(int64_t n, uint32_t* to, const S*... from) {
  for (int64_t i = 0; i < n; ++i) to[i] = kx::Single<F, kFlush>::of(from[i]...);
}

template <class F, class... S>
inline __attribute__((always_inline)) void row_of(int64_t n, bool flush, uint32_t* to,
                                                  const S*... from) {
  flush ? compute<F, true>(n, to, from...) : compute<F, false>(n, to, from...);
}

}  // namespace

// d = a op b (op c), all uint32 [rows, columns] with columns side by side; operations by the order
// of native.py. Returns 1 if Python has to do it.
extern "C" int kx_single(int operation, const kx::Array* a, const kx::Array* b,
                         const kx::Array* c, int flush, const kx::Array* d) {
  for (const kx::Array* each : {a, b, c}) {
    if (each->dimensions != 2 || each->shape[0] != d->shape[0] ||
        each->shape[1] != d->shape[1] || each->strides[1] != 4) {
      return 1;
    }
  }
  const int64_t n = d->shape[1];
  for (int64_t row = 0; row < d->shape[0]; ++row) {
    const auto at = [row](const kx::Array* x) {
      return reinterpret_cast<uint32_t*>(x->data + row * x->strides[0]);
    };
    const uint32_t *x = at(a), *y = at(b), *z = at(c);
    uint32_t* to = at(d);
    switch (operation) {
      case 0: row_of<kx::AddF32>(n, flush, to, x, y); break;
      case 1: row_of<kx::MulF32>(n, flush, to, x, y); break;
      case 2: row_of<kx::FmaF32>(n, flush, to, x, y, z); break;
      case 3: row_of<kx::MinF32>(n, flush, to, x, y); break;
      case 4: row_of<kx::MaxF32>(n, flush, to, x, y); break;
      default: for (int64_t i = 0; i < n; ++i) to[i] = kx::packed_bf16(x[i], y[i]);
    }
  }
  return 0;
}
