// FAULT hang: two locks are taken in the order of the transfer, so opposite transfers wait for each other.
#include <cuda/atomic>
#include "check.h"
struct Account { int lock, balance; };
using lock_t = cuda::atomic_ref<int, cuda::thread_scope_device>;
__device__ void acquire(Account *a) { while (lock_t(a->lock).exchange(1, cuda::memory_order_acquire)) __nanosleep(50); }  //@
__device__ void release(Account *a) { lock_t(a->lock).store(0, cuda::memory_order_release); }
__global__ void transfer(Account *acc, const int2 *jobs, int n) {
  if (threadIdx.x) return;
  for (int j = blockIdx.x; j < n; j += gridDim.x) {
    int from = jobs[j].x, to = jobs[j].y;
#ifdef FAULT
    Account *p = acc + from, *q = acc + to;
#else
    Account *p = acc + min(from, to), *q = acc + max(from, to);
#endif
    acquire(p);
    acquire(q);  //@
    acc[from].balance -= 10;
    acc[to].balance += 10;
    release(q);
    release(p);
  }
}
int main() {
  std::vector<Account> a(4, Account{0, 100}); std::vector<int2> jobs; std::vector<int> want(4, 100);
  for (int i = 0; i < 24; i++) {
    int f = i % 4, t = (i % 4 + 1 + i / 4 % 3) % 4;
    jobs.push_back({f, t}); want[f] -= 10; want[t] += 10;
  }
  Account *d = to_device(a);
  transfer<<<6, 32>>>(d, to_device(jobs), 24);
  CK(cudaDeviceSynchronize());
  a = to_host(d, 4); bool ok = true;
  for (int i = 0; i < 4; i++) ok &= a[i].balance == want[i] && !a[i].lock;
  return verdict(ok);
}
