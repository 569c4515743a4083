// FAULT race: the stage is released before it has been read.
#include <cooperative_groups.h>
#include <cuda/pipeline>
#include "check.h"
namespace cg = cooperative_groups;
constexpr int STAGES = 2, N = 128;
__global__ void smooth(const int *in, int *out, int tiles) {
  __shared__ alignas(16) int s[STAGES][N];
  __shared__ cuda::pipeline_shared_state<cuda::thread_scope_block, STAGES> state;
  auto block = cg::this_thread_block();
  auto pipe = cuda::make_pipeline(block, &state);
  int t = threadIdx.x;
  for (int fetch = 0, k = 0; k < tiles; k++) {
    for (; fetch < tiles && fetch < k + STAGES; fetch++) {
      pipe.producer_acquire();
      cuda::memcpy_async(block, s[fetch % STAGES], in + fetch * N, cuda::aligned_size_t<16>(N * sizeof(int)), pipe);  //@
      pipe.producer_commit();
    }
    pipe.consumer_wait();
#ifdef FAULT
    pipe.consumer_release();
    int v = s[k % STAGES][t] + s[k % STAGES][(t + 33) % N];  //@
#else
    int v = s[k % STAGES][t] + s[k % STAGES][(t + 33) % N];
    pipe.consumer_release();
#endif
    out[k * N + t] = v;
  }
}
int main() {
  const int T = 6;
  std::vector<int> v(T * N), want;
  for (int i = 0; i < T * N; i++) v[i] = i * i % 71;
  for (int i = 0; i < T * N; i++) want.push_back(v[i] + v[i / N * N + (i + 33) % N]);
  int *o = zeros<int>(T * N);
  smooth<<<1, N>>>(to_device(v), o, T);
  CK(cudaDeviceSynchronize());
  return verdict(to_host(o, T * N) == want);
}
