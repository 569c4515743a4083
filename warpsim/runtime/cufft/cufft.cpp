// The functions of cufft.h. Transforms are computed in f64, whatever the data is.
#include "cufft.h"

#include <cmath>
#include <complex>
#include <map>
#include <mutex>
#include <numeric>
#include <vector>

#include "../cudart/operands.hpp"

using namespace warpsim;

namespace {

using Complex = std::complex<double>;
using Extents = std::vector<int64_t>;

// How the numbers of a batch lie: by extents of the whole array, steps of its last dimension, and
// the distance of two batches. Empty extents: packed, of real numbers in place with padding.
struct Layout {
  Extents extents;
  int64_t step = 1, distance = 0;
};

struct Plan {
  Extents n;
  Layout in, out;
  cufftType type = CUFFT_C2C;
  int64_t batch = 1;
  cudaStream_t stream = nullptr;
};

std::mutex mutex;
std::map<cufftHandle, Plan>& plans() {
  static auto& all = *new std::map<cufftHandle, Plan>;
  return all;
}

// Of a power of two, in place.
void transform_power(std::vector<Complex>& data, int sign) {
  const size_t n = data.size();
  for (size_t i = 1, j = 0; i < n; ++i) {
    size_t bit = n >> 1;
    for (; j & bit; bit >>= 1) j ^= bit;
    if (i < (j ^= bit)) std::swap(data[i], data[j]);
  }
  std::vector<Complex> roots(n / 2);
  for (size_t i = 0; i < n / 2; ++i) roots[i] = std::polar(1.0, sign * 2 * M_PI * double(i) / double(n));
  for (size_t length = 2; length <= n; length *= 2) {
    for (size_t first = 0; first < n; first += length) {
      for (size_t i = 0; i < length / 2; ++i) {
        const Complex odd = data[first + i + length / 2] * roots[i * (n / length)];
        data[first + i + length / 2] = data[first + i] - odd;
        data[first + i] += odd;
      }
    }
  }
}

// Of any length: other lengths as a convolution of a power of two (Bluestein).
void transform(std::vector<Complex>& data, int sign) {
  const int64_t n = data.size();
  if ((n & (n - 1)) == 0) return transform_power(data, sign);
  int64_t padded = 1;
  while (padded < 2 * n) padded *= 2;
  std::vector<Complex> chirp(n), left(padded), right(padded);
  for (int64_t i = 0; i < n; ++i) chirp[i] = std::polar(1.0, sign * M_PI * double(i * i % (2 * n)) / double(n));
  for (int64_t i = 0; i < n; ++i) {
    left[i] = data[i] * chirp[i];
    right[i] = right[(padded - i) % padded] = std::conj(chirp[i]);
  }
  transform_power(left, -1), transform_power(right, -1);
  for (int64_t i = 0; i < padded; ++i) left[i] *= right[i];
  transform_power(left, 1);
  for (int64_t i = 0; i < n; ++i) data[i] = left[i] * chirp[i] / double(padded);
}

int64_t product(const Extents& n) {
  return std::accumulate(n.begin(), n.end(), int64_t(1), std::multiplies<int64_t>());
}

// Along each dimension of a packed array in turn.
void transform_all(std::vector<Complex>& data, const Extents& n, int sign) {
  int64_t step = 1;
  for (size_t dimension = n.size(); dimension-- > 0; step *= n[dimension]) {
    std::vector<Complex> line(n[dimension]);
    for (int64_t first = 0; first < int64_t(data.size()); ++first) {
      if (first / step % n[dimension]) continue;
      for (int64_t i = 0; i < n[dimension]; ++i) line[i] = data[first + i * step];
      transform(line, sign);
      for (int64_t i = 0; i < n[dimension]; ++i) data[first + i * step] = line[i];
    }
  }
}

// Of the numbers of one batch, packed, their places in memory.
std::vector<int64_t> places(const Extents& shape, const Layout& layout, const Extents& packed) {
  const Extents& extents = layout.extents.empty() ? packed : layout.extents;
  std::vector<int64_t> all(product(shape));
  for (int64_t i = 0; i < int64_t(all.size()); ++i) {
    int64_t rest = i, step = layout.step;
    for (size_t dimension = shape.size(); dimension-- > 0; step *= extents[dimension]) {
      all[i] += rest % shape[dimension] * step;
      rest /= shape[dimension];
    }
  }
  return all;
}

// `from` and `to` are scalars of T each for a real number, two for a complex one.
template <class T>
void execute(const std::string& name, const Plan& plan, const T* from, T* to, int from_parts, int to_parts,
             int sign) {
  const bool in_place = from == to;
  Extents half = plan.n, padded = plan.n;
  half.back() = plan.n.back() / 2 + 1;
  padded.back() = in_place ? 2 * half.back() : plan.n.back();
  const Extents& in_shape = to_parts == 1 ? half : plan.n;
  const Extents& out_shape = from_parts == 1 ? half : plan.n;
  const Extents& in_packed = from_parts == 1 ? padded : in_shape;
  const Extents& out_packed = to_parts == 1 ? padded : out_shape;
  const auto in = places(in_shape, plan.in, in_packed), out = places(out_shape, plan.out, out_packed);
  const int64_t in_step = plan.in.extents.empty() ? product(in_packed) : plan.in.distance;
  const int64_t out_step = plan.out.extents.empty() ? product(out_packed) : plan.out.distance;
  for (int64_t batch = 0; batch < plan.batch; ++batch) {
    const T* source = from + batch * in_step * from_parts;
    T* target = to + batch * out_step * to_parts;
    std::vector<Complex> data(product(plan.n));
    for (size_t i = 0; i < in.size(); ++i) {
      const T* number = elements<const T>(name + " reads its input", source + in[i] * from_parts, from_parts, true);
      const Complex value(number[0], from_parts == 2 ? number[1] : T(0));
      if (to_parts == 2) {
        data[i] = value;
        continue;
      }
      // Half a spectrum: the other half is its conjugate, mirrored in each dimension.
      int64_t rest = i, step = 1, mirrored = 0, own = 0;
      for (size_t dimension = plan.n.size(); dimension-- > 0; step *= plan.n[dimension]) {
        const int64_t at = rest % half[dimension];
        rest /= half[dimension];
        own += at * step, mirrored += (plan.n[dimension] - at) % plan.n[dimension] * step;
      }
      data[mirrored] = std::conj(value), data[own] = value;
    }
    transform_all(data, plan.n, sign);
    for (size_t i = 0; i < out.size(); ++i) {
      int64_t at = i;
      if (from_parts == 1) at = int64_t(i) / half.back() * plan.n.back() + int64_t(i) % half.back();
      T* number = elements<T>(name + " writes its output", target + out[i] * to_parts, to_parts, false);
      number[0] = T(data[at].real());
      if (to_parts == 2) number[1] = T(data[at].imag());
    }
  }
}

template <class T>
cufftResult execute(const std::string& name, cufftHandle handle, cufftType type, const void* from, void* to,
                    int from_parts, int to_parts, int direction) {
  Plan plan;
  {
    const std::lock_guard<std::mutex> lock(mutex);
    const auto found = plans().find(handle);
    if (found == plans().end() || found->second.n.empty()) return CUFFT_INVALID_PLAN;
    plan = found->second;
  }
  if (plan.type != type) return CUFFT_INVALID_TYPE;
  if (direction != CUFFT_FORWARD && direction != CUFFT_INVERSE) return CUFFT_INVALID_VALUE;
  const cudaError_t error = compute(name, plan.stream, [=] {
    execute<T>(name, plan, static_cast<const T*>(from), static_cast<T*>(to), from_parts, to_parts, direction);
  });
  return error == cudaSuccess ? CUFFT_SUCCESS : CUFFT_EXEC_FAILED;
}

template <class Int>
Layout layout(int rank, const Int* extents, Int step, Int distance) {
  if (!extents) return {};
  return {Extents(extents, extents + rank), step, distance};
}

template <class Int>
cufftResult make(cufftHandle handle, int rank, const Int* n, const Layout& in, const Layout& out, cufftType type,
                 Int batch, size_t* bytes) {
  const std::lock_guard<std::mutex> lock(mutex);
  const auto found = plans().find(handle);
  if (found == plans().end()) return CUFFT_INVALID_PLAN;
  if (rank < 1 || rank > 3 || batch < 1) return CUFFT_INVALID_VALUE;
  for (int i = 0; i < rank; ++i) {
    if (n[i] < 1) return CUFFT_INVALID_SIZE;
  }
  Plan& plan = found->second;
  plan.n.assign(n, n + rank), plan.in = in, plan.out = out, plan.type = type, plan.batch = batch;
  if (bytes) *bytes = 0;
  return CUFFT_SUCCESS;
}

cufftResult make_packed(cufftHandle plan, const Extents& n, cufftType type, int64_t batch, size_t* bytes) {
  return make<int64_t>(plan, n.size(), n.data(), {}, {}, type, batch, bytes);
}

cufftResult made(cufftHandle* plan, const std::function<cufftResult()>& rest) {
  const cufftResult result = cufftCreate(plan);
  return result == CUFFT_SUCCESS ? rest() : result;
}

}  // namespace

extern "C" {
cufftResult cufftCreate(cufftHandle* plan) {
  const std::lock_guard<std::mutex> lock(mutex);
  *plan = plans().empty() ? 1 : plans().rbegin()->first + 1;
  plans()[*plan];
  return CUFFT_SUCCESS;
}
cufftResult cufftDestroy(cufftHandle plan) {
  const std::lock_guard<std::mutex> lock(mutex);
  return plans().erase(plan) ? CUFFT_SUCCESS : CUFFT_INVALID_PLAN;
}
cufftResult cufftMakePlan1d(cufftHandle plan, int n, cufftType type, int batch, size_t* bytes) {
  return make_packed(plan, {n}, type, batch, bytes);
}
cufftResult cufftMakePlan2d(cufftHandle plan, int n0, int n1, cufftType type, size_t* bytes) {
  return make_packed(plan, {n0, n1}, type, 1, bytes);
}
cufftResult cufftMakePlan3d(cufftHandle plan, int n0, int n1, int n2, cufftType type, size_t* bytes) {
  return make_packed(plan, {n0, n1, n2}, type, 1, bytes);
}
cufftResult cufftMakePlanMany(cufftHandle plan, int rank, int* n, int* inembed, int istride, int idist, int* onembed,
                              int ostride, int odist, cufftType type, int batch, size_t* bytes) {
  return make(plan, rank, n, layout(rank, inembed, istride, idist), layout(rank, onembed, ostride, odist), type,
              batch, bytes);
}
cufftResult cufftXtMakePlanMany(cufftHandle plan, int rank, long long int* n, long long int* inembed,
                                long long int istride, long long int idist, cudaDataType from,
                                long long int* onembed, long long int ostride, long long int odist, cudaDataType to,
                                long long int batch, size_t* bytes, cudaDataType) {
  static const std::map<std::pair<cudaDataType, cudaDataType>, cufftType> types = {
      {{CUDA_C_32F, CUDA_C_32F}, CUFFT_C2C}, {{CUDA_R_32F, CUDA_C_32F}, CUFFT_R2C},
      {{CUDA_C_32F, CUDA_R_32F}, CUFFT_C2R}, {{CUDA_C_64F, CUDA_C_64F}, CUFFT_Z2Z},
      {{CUDA_R_64F, CUDA_C_64F}, CUFFT_D2Z}, {{CUDA_C_64F, CUDA_R_64F}, CUFFT_Z2D}};
  const auto type = types.find({from, to});
  if (type == types.end()) return CUFFT_NOT_SUPPORTED;
  return make(plan, rank, n, layout(rank, inembed, istride, idist), layout(rank, onembed, ostride, odist),
              type->second, batch, bytes);
}
cufftResult cufftPlan1d(cufftHandle* plan, int n, cufftType type, int batch) {
  return made(plan, [=] { return cufftMakePlan1d(*plan, n, type, batch, nullptr); });
}
cufftResult cufftPlan2d(cufftHandle* plan, int n0, int n1, cufftType type) {
  return made(plan, [=] { return cufftMakePlan2d(*plan, n0, n1, type, nullptr); });
}
cufftResult cufftPlan3d(cufftHandle* plan, int n0, int n1, int n2, cufftType type) {
  return made(plan, [=] { return cufftMakePlan3d(*plan, n0, n1, n2, type, nullptr); });
}
cufftResult cufftPlanMany(cufftHandle* plan, int rank, int* n, int* inembed, int istride, int idist, int* onembed,
                          int ostride, int odist, cufftType type, int batch) {
  return made(plan, [=] {
    return cufftMakePlanMany(*plan, rank, n, inembed, istride, idist, onembed, ostride, odist, type, batch, nullptr);
  });
}
cufftResult cufftSetStream(cufftHandle plan, cudaStream_t stream) {
  const std::lock_guard<std::mutex> lock(mutex);
  const auto found = plans().find(plan);
  if (found == plans().end()) return CUFFT_INVALID_PLAN;
  found->second.stream = stream;
  return CUFFT_SUCCESS;
}
cufftResult cufftSetAutoAllocation(cufftHandle, int) { return CUFFT_SUCCESS; }
cufftResult cufftSetWorkArea(cufftHandle, void*) { return CUFFT_SUCCESS; }
cufftResult cufftGetSize(cufftHandle, size_t* bytes) {
  *bytes = 0;
  return CUFFT_SUCCESS;
}
cufftResult cufftGetVersion(int* version) {
  *version = 12000;
  return CUFFT_SUCCESS;
}
cufftResult cufftExecC2C(cufftHandle plan, cufftComplex* from, cufftComplex* to, int direction) {
  return execute<float>("cufftExecC2C", plan, CUFFT_C2C, from, to, 2, 2, direction);
}
cufftResult cufftExecR2C(cufftHandle plan, cufftReal* from, cufftComplex* to) {
  return execute<float>("cufftExecR2C", plan, CUFFT_R2C, from, to, 1, 2, CUFFT_FORWARD);
}
cufftResult cufftExecC2R(cufftHandle plan, cufftComplex* from, cufftReal* to) {
  return execute<float>("cufftExecC2R", plan, CUFFT_C2R, from, to, 2, 1, CUFFT_INVERSE);
}
cufftResult cufftExecZ2Z(cufftHandle plan, cufftDoubleComplex* from, cufftDoubleComplex* to, int direction) {
  return execute<double>("cufftExecZ2Z", plan, CUFFT_Z2Z, from, to, 2, 2, direction);
}
cufftResult cufftExecD2Z(cufftHandle plan, cufftDoubleReal* from, cufftDoubleComplex* to) {
  return execute<double>("cufftExecD2Z", plan, CUFFT_D2Z, from, to, 1, 2, CUFFT_FORWARD);
}
cufftResult cufftExecZ2D(cufftHandle plan, cufftDoubleComplex* from, cufftDoubleReal* to) {
  return execute<double>("cufftExecZ2D", plan, CUFFT_Z2D, from, to, 2, 1, CUFFT_INVERSE);
}
}
