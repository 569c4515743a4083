// Operands in device memory, for libraries whose calls are computed on the CPU.
#pragma once
#include <cuda_runtime_api.h>

#include <cstdlib>
#include <functional>
#include <string>

#include "libraries.hpp"

namespace warpsim {

// Thrown by an operand that is not all in one allocation: the finding has been reported.
struct Elsewhere {};

// Columns of `rows` elements, each `ld` elements after the last.
template <class T>
class Matrix {
 public:
  // what: the call and the operand, as in "cublasSgemm reads A".
  Matrix(const std::string& what, const T* pointer, int64_t rows, int64_t columns, int64_t ld,
         bool read)
      : ld_(ld) {
    if (rows <= 0 || columns <= 0) return;
    const int64_t reach = (columns - 1) * ld + rows;
    uint8_t* states = nullptr;
    char* bytes = nullptr;
    if (!__warpsim_reach(pointer, reach * sizeof(T), what.c_str(), &bytes, &states)) throw Elsewhere{};
    data_ = reinterpret_cast<T*>(bytes);
    bool written = true;
    for (int64_t column = 0; column < columns && written; ++column) {
      uint8_t* first = states + column * ld * sizeof(T);
      if (read) {
        written = __warpsim_read(what.c_str(), pointer, first, rows * sizeof(T));
      } else {
        __warpsim_written(first, rows * sizeof(T));
      }
    }
  }
  T& operator()(int64_t row, int64_t column) const { return data_[row + column * ld_]; }

 private:
  T* data_ = nullptr;
  int64_t ld_;
};

// Elements `step` apart; those of a negative step are counted from its far end.
template <class T>
class Vector {
 public:
  Vector(const std::string& what, const T* pointer, int64_t n, int64_t step, bool read)
      : all_(what, pointer, 1, n, std::abs(step), read), n_(n), backward_(step < 0) {}
  T& operator()(int64_t i) const { return all_(0, backward_ ? n_ - 1 - i : i); }

 private:
  Matrix<T> all_;
  int64_t n_;
  bool backward_;
};

// `n` elements, one after the other.
template <class T>
T* elements(const std::string& what, const void* pointer, int64_t n, bool read) {
  const Matrix<T> all(what, static_cast<const T*>(pointer), n, 1, n, read);
  return n > 0 ? &all(0, 0) : nullptr;
}

// In the order of the stream.
inline cudaError_t compute(const std::string& name, cudaStream_t stream,
                           const std::function<void()>& work) {
  const std::function<bool()> guarded = [work] {
    try {
      work();
      return true;
    } catch (const Elsewhere&) {
      return false;
    }
  };
  return __warpsim_compute(name.c_str(), stream, guarded);
}

}  // namespace warpsim
