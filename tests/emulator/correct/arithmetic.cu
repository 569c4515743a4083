// Instructions that nvcc emits rarely.

#include "driver.cuh"
#include <cuda_bf16.h>
#include <cuda_fp16.h>

KERNEL(dot_products_of_bytes) {
  const unsigned t = threadIdx.x, a = in[t], b = in[64 + t];
  out[t] = __dp4a(a, b, 7u) + __dp4a(static_cast<int>(a), static_cast<int>(b), -3) + __dp2a_lo(a, b, 1u) +
           __dp2a_hi(static_cast<int>(a), static_cast<int>(b), 5);
}

KERNEL(fields_and_permutations) {
  const unsigned t = threadIdx.x, a = in[t], b = in[64 + t];
  unsigned inserted, field, logic, picked;
  asm("prmt.b32 %0, %1, %2, 0x9153;" : "=r"(picked) : "r"(a), "r"(b));
  asm("bfi.b32 %0, %1, %2, 5, 9;" : "=r"(inserted) : "r"(a), "r"(b));
  asm("bfe.s32 %0, %1, %2, 7;" : "=r"(field) : "r"(a), "r"(t % 32));
  asm("lop3.b32 %0, %1, %2, %3, 0x6a;" : "=r"(logic) : "r"(a), "r"(b), "r"(t));
  out[t] = inserted ^ field ^ logic ^ picked ^ __funnelshift_l(a, b, t) ^
           __funnelshift_rc(a, b, t % 40) ^ __brev(a) ^ __clz(b >> t % 32) ^ __ffs(a & b) ^
           __popcll(static_cast<unsigned long long>(a) * b);
}

KERNEL(nth_set_bit) {
  const unsigned t = threadIdx.x;
  out[t] = __fns(in[t], t % 32, static_cast<int>(t % 7) - 3);
}

KERNEL(sums_of_differences_and_averages) {
  const unsigned t = threadIdx.x, a = in[t], b = in[64 + t];
  out[t] = __sad(a, b, t) + __usad(a, b, t) + __hadd(a, b) + __rhadd(a, b) + __uhadd(a, b) +
           __mulhi(a, b) + __umul24(a, b) + __mul24(a, b);
}

KERNEL(wide_products) {
  const unsigned t = threadIdx.x;
  const unsigned long long a = reinterpret_cast<const unsigned long long *>(in)[t], b = a * 0x9E3779B97F4A7C15ull + t;
  const unsigned long long high = __umul64hi(a, b), low = __mul64hi(a, b);
  unsigned __int128 whole = static_cast<unsigned __int128>(a) * b + high;
  out[t] = static_cast<unsigned>(high ^ low >> 32 ^ whole >> 64 ^ whole % 1000003);
}

KERNEL(carries_over_four_words) {
  const unsigned t = threadIdx.x;
  unsigned a, b, c, d;
  asm("add.cc.u32 %0, %4, %5; addc.cc.u32 %1, %4, %5; madc.lo.cc.u32 %2, %4, %5, %4; addc.u32 %3, %5, 0;"
      : "=r"(a), "=r"(b), "=r"(c), "=r"(d) : "r"(in[t]), "r"(in[64 + t]));
  out[t] = a ^ b ^ c ^ d;
}

KERNEL(double_precision_functions) {
  const unsigned t = threadIdx.x;
  const double x = in[t] * (1.0 / 4294967296.0) + 0.25;
  const double y = x / 3 + sqrt(x) + fma(x, x, 1.0) + fmod(x * 7, 0.3);
  out[t] = __double2hiint(y) ^ __double2loint(y);
}

KERNEL(functions_of_the_library) {
  const unsigned t = threadIdx.x;
  const float x = in[t] * (1.0f / 4294967296.0f);
  float s, c;
  sincosf(x * 3, &s, &c);
  out[t] = fabsf(s * s + c * c - 1) < 1e-5f && fabsf(expf(logf(x + 1)) - x - 1) < 1e-5f &&
           fabsf(powf(x + 1, 3) - (x + 1) * (x + 1) * (x + 1)) < 1e-4f && fabsf(tanhf(x) - __tanhf(x)) < 1e-2f &&
           fabs(exp(log(x + 1.0)) - x - 1) < 1e-12 && fabsf(erff(0.0f)) == 0 && cbrtf(27.0f) > 2.99f;
}

KERNEL(division_by_numbers_of_every_size) {
  const unsigned t = threadIdx.x, a = in[t], b = in[64 + t] % 97 + 1;
  const long long c = static_cast<long long>(a) * 77777 - 5000000000, d = static_cast<int>(b) - 50;
  out[t] = a / b + a % b + static_cast<unsigned>(c / (d ? d : 1)) + static_cast<unsigned>(c % (d ? d : 7)) +
           static_cast<int>(a) / -7 + static_cast<int>(a) % 13;
}

KERNEL(bytes_and_halves_in_one_word) {
  const unsigned t = threadIdx.x, a = in[t], b = in[64 + t];
  out[t] = __vadd4(a, b) ^ __vabsdiffu4(a, b) ^ __vmaxs2(a, b) ^ __vcmpgtu4(a, b) ^ __vavgu4(a, b);
}

KERNEL(halves_in_pairs) {
  // Small integers: exact in f16 and in bf16.
  const unsigned t = threadIdx.x;
  const __half2 a = __floats2half2_rn(in[t] % 17, in[t] % 5), b = __floats2half2_rn(t % 8, -3);
  const __half2 c = __hfma2_relu(a, b, __hneg2(__hmax2(a, b)));
  const __nv_bfloat162 d = __floats2bfloat162_rn(in[t] % 13, t % 9);
  const __nv_bfloat162 e = __hfma2(d, d, __habs2(__hsub2(d, __float2bfloat162_rn(9))));
  out[t] = static_cast<unsigned>(__low2float(c)) + 1000 * static_cast<unsigned>(__high2float(c));
  out[64 + t] = static_cast<unsigned>(__low2float(e)) + 1000 * static_cast<unsigned>(__high2float(e));
}
