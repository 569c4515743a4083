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
