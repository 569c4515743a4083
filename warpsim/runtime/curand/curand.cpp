// The functions of curand.h. Whatever generator is asked for, pseudorandom numbers are Philox
// 4x32-10's and quasirandom ones Sobol's of Joe and Kuo's directions: not the sequences of
// NVIDIA's library.
#include "curand.h"

#include <array>
#include <cmath>
#include <cstdint>
#include <random>
#include <vector>

#include "../cudart/operands.hpp"

using namespace warpsim;

struct curandGenerator_st {
  bool quasi = false, on_host = false;
  cudaStream_t stream = nullptr;
  uint64_t seed = 0, offset = 0;
  unsigned dimensions = 1;
};

namespace {

using Generator = curandGenerator_st;

uint64_t philox(uint64_t seed, uint64_t index) {
  std::array<uint32_t, 4> counter = {uint32_t(index), uint32_t(index >> 32), 0, 0};
  uint32_t key[2] = {uint32_t(seed), uint32_t(seed >> 32)};
  for (int round = 0; round < 10; ++round) {
    const uint64_t left = uint64_t(0xD2511F53) * counter[0], right = uint64_t(0xCD9E8D57) * counter[2];
    counter = {uint32_t(right >> 32) ^ counter[1] ^ key[0], uint32_t(right),
               uint32_t(left >> 32) ^ counter[3] ^ key[1], uint32_t(left)};
    key[0] += 0x9E3779B9, key[1] += 0xBB67AE85;
  }
  return counter[0] | uint64_t(counter[1]) << 32;
}

// Of dimensions 2 to 10: the degree and coefficients of the polynomial, and the first numbers.
struct Direction {
  int degree, coefficients;
  std::array<uint32_t, 5> first;
};
constexpr Direction kDirections[] = {
    {1, 0, {1}}, {2, 1, {1, 3}}, {3, 1, {1, 3, 1}}, {3, 2, {1, 1, 1}}, {4, 1, {1, 1, 3, 3}},
    {4, 4, {1, 3, 5, 13}}, {5, 2, {1, 1, 5, 5, 17}}, {5, 4, {1, 1, 5, 5, 5}}, {5, 7, {1, 1, 7, 11, 19}}};
constexpr unsigned kDimensions = 1 + std::size(kDirections);

uint64_t sobol(unsigned dimension, uint64_t index) {
  std::array<uint64_t, 64> v{};
  for (int i = 0; i < 64; ++i) {
    if (dimension == 0) {
      v[i] = uint64_t(1) << (63 - i);
      continue;
    }
    const Direction& own = kDirections[dimension - 1];
    const int s = own.degree;
    if (i < s) {
      v[i] = uint64_t(own.first[i]) << (63 - i);
      continue;
    }
    v[i] = v[i - s] ^ (v[i - s] >> s);
    for (int k = 1; k < s; ++k) v[i] ^= (own.coefficients >> (s - 1 - k) & 1) * v[i - k];
  }
  uint64_t result = 0;
  const uint64_t gray = index ^ index >> 1;
  for (int i = 0; i < 64; ++i) result ^= (gray >> i & 1) * v[i];
  return result;
}

// The bits of the i-th of n numbers; those of quasirandom dimensions follow each other.
uint64_t bits(const Generator& g, uint64_t i, uint64_t n, int draw = 0) {
  if (!g.quasi) return philox(g.seed + 0x9E3779B97F4A7C15 * uint64_t(draw), g.offset + i);
  const uint64_t each = n / g.dimensions;
  return sobol(unsigned(i / each), g.offset + i % each);
}

// Above 0, 1 among them.
double uniform(uint64_t bits) { return (double(bits >> 11) + 1) * 0x1p-53; }

// The inverse of the normal distribution, by Newton's method.
double normal(double probability) {
  if (probability >= 1) probability = 1 - 0x1p-53;
  double x = 0;
  for (int step = 0; step < 60; ++step) {
    const double error = 0.5 * std::erfc(-x / std::sqrt(2.0)) - probability;
    const double slope = std::exp(-x * x / 2) / std::sqrt(2 * M_PI);
    const double change = std::clamp(error / slope, -1.0, 1.0);
    x -= change;
    if (std::abs(change) < 1e-13) break;
  }
  return x;
}

template <class T, class F>
curandStatus_t generate(const char* name, curandGenerator_t generator, T* to, size_t n, F number) {
  if (!generator) return CURAND_STATUS_NOT_INITIALIZED;
  if (generator->quasi && n % generator->dimensions) return CURAND_STATUS_LENGTH_NOT_MULTIPLE;
  const Generator g = *generator;
  generator->offset += g.quasi ? n / g.dimensions : n;
  const auto fill = [=](T* first) {
    for (size_t i = 0; i < n; ++i) first[i] = number(g, i, n);
  };
  if (g.on_host) {
    fill(to);
    return CURAND_STATUS_SUCCESS;
  }
  const std::string what = std::string(name) + " writes its numbers";
  const cudaError_t error = compute(name, g.stream, [=] { fill(elements<T>(what, to, n, false)); });
  return error == cudaSuccess ? CURAND_STATUS_SUCCESS : CURAND_STATUS_LAUNCH_FAILURE;
}

template <class T>
curandStatus_t give(curandGenerator_t generator, T Generator::*field, T value) {
  if (!generator) return CURAND_STATUS_NOT_INITIALIZED;
  generator->*field = value;
  return CURAND_STATUS_SUCCESS;
}

curandStatus_t create(curandGenerator_t* generator, curandRngType_t type, bool on_host) {
  *generator = new Generator;
  (*generator)->quasi = type >= CURAND_RNG_QUASI_DEFAULT;
  (*generator)->on_host = on_host;
  return CURAND_STATUS_SUCCESS;
}

template <class T>
T unit(const Generator& g, size_t i, size_t n) {
  return T(uniform(bits(g, i, n)));
}

}  // namespace

extern "C" {
curandStatus_t curandCreateGenerator(curandGenerator_t* generator, curandRngType_t type) {
  return create(generator, type, false);
}
curandStatus_t curandCreateGeneratorHost(curandGenerator_t* generator, curandRngType_t type) {
  return create(generator, type, true);
}
curandStatus_t curandDestroyGenerator(curandGenerator_t generator) {
  delete generator;
  return generator ? CURAND_STATUS_SUCCESS : CURAND_STATUS_NOT_INITIALIZED;
}
curandStatus_t curandGetVersion(int* version) {
  *version = 10400;
  return CURAND_STATUS_SUCCESS;
}
curandStatus_t curandSetStream(curandGenerator_t generator, cudaStream_t stream) {
  return give(generator, &Generator::stream, stream);
}
curandStatus_t curandSetPseudoRandomGeneratorSeed(curandGenerator_t generator, unsigned long long seed) {
  if (generator && generator->quasi) return CURAND_STATUS_TYPE_ERROR;
  if (generator) generator->offset = 0;
  return give(generator, &Generator::seed, uint64_t(seed));
}
curandStatus_t curandSetGeneratorOffset(curandGenerator_t generator, unsigned long long offset) {
  return give(generator, &Generator::offset, uint64_t(offset));
}
curandStatus_t curandSetGeneratorOrdering(curandGenerator_t generator, curandOrdering_t) {
  return generator ? CURAND_STATUS_SUCCESS : CURAND_STATUS_NOT_INITIALIZED;
}
curandStatus_t curandSetQuasiRandomGeneratorDimensions(curandGenerator_t generator, unsigned int dimensions) {
  if (generator && !generator->quasi) return CURAND_STATUS_TYPE_ERROR;
  if (dimensions < 1 || dimensions > kDimensions) return CURAND_STATUS_OUT_OF_RANGE;
  return give(generator, &Generator::dimensions, dimensions);
}
curandStatus_t curandGenerateSeeds(curandGenerator_t generator) {
  return generator ? CURAND_STATUS_SUCCESS : CURAND_STATUS_NOT_INITIALIZED;
}
curandStatus_t curandGenerate(curandGenerator_t generator, unsigned int* to, size_t n) {
  return generate("curandGenerate", generator, to, n,
                  [](const Generator& g, size_t i, size_t all) { return unsigned(bits(g, i, all) >> 32); });
}
curandStatus_t curandGenerateLongLong(curandGenerator_t generator, unsigned long long* to, size_t n) {
  return generate("curandGenerateLongLong", generator, to, n,
                  [](const Generator& g, size_t i, size_t all) { return (unsigned long long)bits(g, i, all); });
}
curandStatus_t curandGenerateUniform(curandGenerator_t generator, float* to, size_t n) {
  return generate("curandGenerateUniform", generator, to, n, unit<float>);
}
curandStatus_t curandGenerateUniformDouble(curandGenerator_t generator, double* to, size_t n) {
  return generate("curandGenerateUniformDouble", generator, to, n, unit<double>);
}
curandStatus_t curandGenerateNormal(curandGenerator_t generator, float* to, size_t n, float mean, float deviation) {
  return generate("curandGenerateNormal", generator, to, n, [=](const Generator& g, size_t i, size_t all) {
    return float(mean + deviation * normal(unit<double>(g, i, all)));
  });
}
curandStatus_t curandGenerateNormalDouble(curandGenerator_t generator, double* to, size_t n, double mean,
                                          double deviation) {
  return generate("curandGenerateNormalDouble", generator, to, n, [=](const Generator& g, size_t i, size_t all) {
    return mean + deviation * normal(unit<double>(g, i, all));
  });
}
curandStatus_t curandGenerateLogNormal(curandGenerator_t generator, float* to, size_t n, float mean,
                                       float deviation) {
  return generate("curandGenerateLogNormal", generator, to, n, [=](const Generator& g, size_t i, size_t all) {
    return float(std::exp(mean + deviation * normal(unit<double>(g, i, all))));
  });
}
curandStatus_t curandGenerateLogNormalDouble(curandGenerator_t generator, double* to, size_t n, double mean,
                                             double deviation) {
  return generate("curandGenerateLogNormalDouble", generator, to, n, [=](const Generator& g, size_t i, size_t all) {
    return std::exp(mean + deviation * normal(unit<double>(g, i, all)));
  });
}
curandStatus_t curandGeneratePoisson(curandGenerator_t generator, unsigned int* to, size_t n, double lambda) {
  return generate("curandGeneratePoisson", generator, to, n, [=](const Generator& g, size_t i, size_t all) {
    std::mt19937_64 engine(bits(g, i, all));
    return unsigned(std::poisson_distribution<int>(lambda)(engine));
  });
}
}
