// FAULT race: a vertex's distance is looked at and then set by plain accesses, so two parents may enqueue it.
#include "check.h"
__global__ void expand(const int *row, const int *col, int *dist, const int *queue, int count, int *next, int *found, int level) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= count) return;
  int u = queue[i];
  for (int e = row[u]; e < row[u + 1]; e++) {
    int v = col[e];
#ifdef FAULT
    if (dist[v] < 0) {  //@
      dist[v] = level + 1;  //@
      next[atomicAdd(found, 1)] = v;
    }
#else
    if (atomicCAS(&dist[v], -1, level + 1) == -1) next[atomicAdd(found, 1)] = v;
#endif
  }
}
int main() {
  const int n = 128;  // i -> 2i+1, 2i+2, i/2: a vertex may have several parents in one level
  std::vector<int> row(1), col, dist(n, -1), want(n, -1);
  for (int i = 0; i < n; i++) {
    for (int v : {2 * i + 1, 2 * i + 2, 2 * i + 3}) if (v < n) col.push_back(v);
    row.push_back(int(col.size()));
  }
  std::vector<int> q{0}; want[0] = dist[0] = 0;
  for (size_t h = 0; h < q.size(); h++) for (int e = row[q[h]]; e < row[q[h] + 1]; e++) if (want[col[e]] < 0) want[col[e]] = want[q[h]] + 1, q.push_back(col[e]);
  int *r = to_device(row), *c = to_device(col), *d = to_device(dist), *a = zeros<int>(4 * n), *b = zeros<int>(4 * n), *f = zeros<int>(1), count = 1;
  for (int level = 0; count; level++) {
    CK(cudaMemset(f, 0, sizeof(int)));
    expand<<<(count + 31) / 32, 32>>>(r, c, d, a, count, b, f, level);
    CK(cudaMemcpy(&count, f, sizeof(int), cudaMemcpyDeviceToHost));
    std::swap(a, b);
  }
  return verdict(to_host(d, n) == want);
}
