// NumPy arrays and the Python objects that they are, as far as the functions here need them. The
// layout is NumPy's ABI; the package checks it against an array before it uses the library.
#pragma once
#include <cstdint>

namespace kx {

struct Array {
  void* head[2];
  char* data;
  int dimensions;
  int64_t* shape;
  int64_t* strides;
};

inline int64_t* integers(const Array* a) { return reinterpret_cast<int64_t*>(a->data); }

// An operand of [warps, 32] in rows: its first element, and the bytes to the next row and lane.
struct Rows {
  char* data;
  int64_t row;
  int64_t lane;

  Rows(char* data, int64_t row, int64_t lane) : data(data), row(row), lane(lane) {}
  explicit Rows(const Array* a) : Rows(a->data, a->strides[0], a->strides[1]) {}
  char* at(int64_t i, int64_t j) const { return data + i * row + j * lane; }
};

template <class T>
T load(const char* at) {
  T value;
  __builtin_memcpy(&value, at, sizeof value);
  return value;
}

}  // namespace kx
