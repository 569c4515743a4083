// Instructions that SASS has in compiled code: see test_compiled_sass.py.
extern "C" __global__ void words(const int *x, int *out, int n) {
  __shared__ int s[128];
  const int t = threadIdx.x, i = blockIdx.x * 128 + t;
  int a = x[i], b = x[i ^ 1];
  s[t] = a * 3 + b;
  __syncthreads();
  int c = s[127 - t];
  if (a < n) c = (c & 0x0FF0F00F) ^ b;
  out[i] = (unsigned(c) >= unsigned(b) ? c : a - b) + (a == b) + (c != a || b > 7);
}
extern "C" __global__ void bytes(const signed char *x, int *out, int n) {
  __shared__ signed char s[128];
  const int i = blockIdx.x * 128 + threadIdx.x;
  s[threadIdx.x] = x[i];
  __syncthreads();
  if (i % 3) out[i] = s[127 - threadIdx.x] * n;
}
extern "C" __global__ void reals(const float4 *x, float4 *out, float n) {
  const int i = blockIdx.x * 128 + threadIdx.x;
  const float4 a = x[i];
  out[i] = {a.x * n + a.y, fmaf(-a.x, a.y, a.z), a.z - n, fabsf(a.w) * a.x};
}
extern "C" __global__ void more(const int *x, int *out, int n) {
  const int i = blockIdx.x * 128 + threadIdx.x;
  const unsigned a = x[i], b = x[i ^ 1], every = 0xFFFFFFFF;
  const long long wide = (long long)int(a) * int(b) + ((long long)(int)b << 7) - (long long)a * n;
  const unsigned long long wider = (unsigned long long)a * b + (wide >> (b & 31));
  unsigned result = __funnelshift_l(a, b, n) ^ __funnelshift_rc(a, b, a & 63) ^ unsigned(wide >> 37);
  result += __byte_perm(a, b, a & 0x7777) ^ __popc(~a) ^ unsigned(wider >> 32) ^ unsigned(wider << (a & 7));
  const bool p = a > b, q = int(a) < n, r = (b & 5) == 4;
  if ((p && !q) || (q && r) || (!p && !r)) result ^= a - b;
  result += __ballot_sync(every, p ^ r) + __any_sync(every, q) + 3 * __all_sync(every, p | r);
  result ^= __shfl_xor_sync(every, a, 5) + __shfl_up_sync(every, b, 3);
  const unsigned of_warp = __shfl_sync(every, threadIdx.x / 32, 0);
  for (unsigned turn = 0; turn < of_warp * n % 7; ++turn) result = result * 5 + blockIdx.x * turn;
  const float f = int(a) * 1e-8f, g = int(b) * -3e-9f;
  unsigned pair;
  asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(pair) : "f"(f), "f"(-g));
  const float sum = fminf(f, -g) + fmaxf(fabsf(g), f) * exp2f(-f) + __saturatef(f * g + 0.5f);
  result += pair ^ __float_as_int(sum + __fmaf_rd(f, f, g) + __frcp_rn(f + 3.0f));
  float low, high;
  asm("{.reg .b16 l, h; mov.b32 {l, h}, %2; cvt.f32.f16 %0, l; cvt.f32.f16 %1, h;}"
      : "=f"(low), "=f"(high) : "r"(a));
  result ^= __float_as_int(low) + 3 * __float_as_int(high);
  if (i % 3) out[i] = result + *(const unsigned char *)((const char *)x + (wider % 1021)) + int(f < -g);
}
