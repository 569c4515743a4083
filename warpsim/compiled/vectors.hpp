// Vectors of kBytes, for tensor.cpp.

// Bytes of the largest that this processor computes with.
#if defined(__AVX512BW__) && defined(__AVX512DQ__) && defined(__AVX512VL__)
constexpr int kWidest = 64;
#elif defined(__AVX2__) && defined(__FMA__)
constexpr int kWidest = 32;
#else
constexpr int kWidest = 16;
#endif

template <int kBytes>
struct Vectors {
  typedef float Floats __attribute__((vector_size(kBytes)));
  typedef int32_t Integers __attribute__((vector_size(kBytes)));
  typedef int16_t Shorts __attribute__((vector_size(kBytes)));
  typedef double Doubles __attribute__((vector_size(kBytes)));
  typedef int64_t Longs __attribute__((vector_size(kBytes)));
  typedef int16_t HalfShorts __attribute__((vector_size(kBytes / 2)));
  typedef int32_t HalfIntegers __attribute__((vector_size(kBytes / 2)));
  typedef float HalfFloats __attribute__((vector_size(kBytes / 2)));
};

template <class To>
KX_INLINE To read(const void* from) {
  To to;
  __builtin_memcpy(&to, from, sizeof to);
  return to;
}

// Half `i` of a vector.
template <class Half, class Vector>
KX_INLINE Half half_of(const Vector& vector, int i) {
  return read<Half>(reinterpret_cast<const char*>(&vector) + i * sizeof(Half));
}

template <class Vector>
KX_INLINE bool any(Vector mask) {
  bool found = false;
  for (unsigned i = 0; i < sizeof mask / sizeof mask[0]; ++i) found |= mask[i] != 0;
  return found;
}
