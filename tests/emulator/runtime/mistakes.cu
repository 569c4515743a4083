// A program with one mistake for each word that it is given; "none" makes none.
#include <cooperative_groups.h>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include <sys/mman.h>

__constant__ float factors[2];
__device__ int counter = 7;
__managed__ int shared_by_all = 1;

__global__ void fill(float* out, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) out[i] = i * factors[0] + factors[1];
}

void fill_in_a_cluster(float* out, int n, bool optional) {
  if (optional) cudaFuncSetAttribute(fill, cudaFuncAttributeNonPortableClusterSizeAllowed, 1);
  cudaLaunchAttribute cluster;
  cluster.id = cudaLaunchAttributeClusterDimension;
  cluster.val.clusterDim = {16, 1, 1};
  cudaLaunchConfig_t config = {};
  config.gridDim = 16, config.blockDim = 128, config.attrs = &cluster, config.numAttrs = 1;
  printf("%s ", cudaGetErrorName(cudaLaunchKernelEx(&config, fill, out, n)));
  cudaGetLastError();
}

__global__ void fill_too_much(float* out, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i <= n) out[i] = i;
}

__global__ void add(const float* a, float* b, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) b[i] += a[i];
}

__global__ void past_the_tile(float* out) {
  __shared__ float tile[31];
  tile[threadIdx.x] = threadIdx.x;
  out[threadIdx.x] = tile[threadIdx.x];
}

__global__ void neighbours(float* out) {
  __shared__ float tile[64];
  tile[threadIdx.x] = threadIdx.x;
  out[threadIdx.x] = tile[63 - threadIdx.x];  // no barrier
}

__global__ void count() {
  atomicAdd(&counter, 1);
  atomicAdd(&shared_by_all, 1);
}

__global__ void raise(int* flag, float* out) {
  out[0] = 3;
  __threadfence_system();
  atomicExch_system(flag, 1);
}

__global__ void say() { printf("thread %d says so\n", threadIdx.x); }

__global__ void whole_grid(int* out) {
  auto grid = cooperative_groups::this_grid();
  atomicAdd(out, 1);
  grid.sync();
  if (grid.thread_rank() == 0) out[1] = out[0];
}

static const int N = 100;
static float host[N];

static void ask_for_all() {
  size_t available, all;
  void* never = nullptr;
  cudaMemGetInfo(&available, &all);
  cudaMalloc(&never, available + 1);
  printf("%zu %s\n", all, cudaGetErrorName(cudaGetLastError()));
}

// A host that looks at a flag waits for what came before it.
static void poll(float* pinned) {
  volatile int* flag;
  cudaMallocHost((void**)&flag, sizeof(int));
  *flag = 0;
  raise<<<1, 1>>>((int*)flag, pinned);
  while (!*flag) {
  }
  printf("%g\n", pinned[0]);
  cudaDeviceSynchronize();
  cudaFreeHost((void*)flag);
}

static void* unmapped() {
  void* pages = mmap(nullptr, sizeof(host), PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  munmap(pages, sizeof(host));
  return pages;
}

static void run_in_graph(float* data) {
  cudaStream_t stream;
  cudaGraph_t graph;
  cudaGraphExec_t ready;
  cudaStreamCreate(&stream);
  cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal);
  add<<<1, 128, 0, stream>>>(data, data, N);
  cudaStreamEndCapture(stream, &graph);
  cudaGraphInstantiate(&ready, graph, 0);
  for (int i = 0; i < 3; i++) cudaGraphLaunch(ready, stream);
  cudaStreamSynchronize(stream);
  cudaGraphExecDestroy(ready);
  cudaGraphDestroy(graph);
  cudaStreamDestroy(stream);
}

// A node whose launch is another one's in the executable graph.
static void change_node(float* data) {
  cudaGraph_t graph;
  cudaGraphExec_t ready;
  cudaGraphNode_t node;
  int n = N, none = 0;
  void *doubled[] = {&data, &data, &n}, *kept[] = {&data, &data, &none};
  cudaKernelNodeParams of = {(void*)add, {1, 1, 1}, {128, 1, 1}, 0, doubled, nullptr};
  cudaGraphCreate(&graph, 0);
  cudaGraphAddKernelNode(&node, graph, nullptr, 0, &of);
  cudaGraphInstantiate(&ready, graph, 0);
  cudaGraphLaunch(ready, 0);
  of.kernelParams = kept;
  cudaGraphExecKernelNodeSetParams(ready, node, &of);
  cudaGraphLaunch(ready, 0);
}

static void capture_allocation() {
  cudaStream_t stream;
  void* memory;
  cudaStreamCreate(&stream);
  cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal);
  cudaMallocAsync(&memory, 4, stream);
}

// The host has waited for the stream's work once its function is called.
static void wait_for_callback(const float* pinned) {
  static volatile bool called = false;
  cudaLaunchHostFunc(0, [](void*) { called = true; }, nullptr);
  while (!called) {
  }
  host[0] = pinned[5];
}

// In the middle of a page, with the program's own bytes on both sides.
static void fill_registered(int written) {
  static float memory[3 * N];
  for (float& value : memory) value = -1;
  float *own = memory + N, *seen, *inner;
  printf("%s ", cudaGetErrorName(cudaHostGetDevicePointer(&seen, own, 0)));
  cudaGetLastError();
  cudaHostRegister(own, N * sizeof(float), cudaHostRegisterMapped);
  printf("%s ", cudaGetErrorName(cudaHostRegister(own + N - 1, 4, 0)));
  cudaHostGetDevicePointer(&seen, own, 0), cudaHostGetDevicePointer(&inner, own + 9, 0);
  own[0] = 5;
  fill_too_much<<<1, 128>>>(seen, written);
  cudaDeviceSynchronize();
  printf("%g %g %ld ", own[0], own[N - 1], inner - seen);
  cudaHostUnregister(own);
  printf("%g %g %g ", own[-1], own[1], own[N]);
  printf("%s\n", cudaGetErrorName(cudaHostUnregister(own)));
  cudaGetLastError();
}

static char* block(size_t bytes) { return (char*)malloc(bytes); }

// Up to the last byte, from the middle too, after blocks that were freed.
static void use_blocks(char* large) {
  for (size_t bytes : {1 << 20, 400000, 4096, 24, 8, 1}) {
    char *one = block(bytes), *freed = block(bytes), *other = block(bytes);
    memset(one, 1, bytes), free(freed);
    cudaMemcpy(large, one, bytes, cudaMemcpyHostToDevice);
    cudaMemcpy(other, large, bytes, cudaMemcpyDeviceToHost);
    cudaMemcpy(other + bytes / 2, large, bytes - bytes / 2, cudaMemcpyDeviceToHost);
    free(one), free(other);
  }
  float on_stack[64];
  cudaMemset(large, 0, 2 << 20);
  cudaMemcpy(on_stack, large, sizeof(on_stack), cudaMemcpyDeviceToHost);
}

int main(int, char** words) {
  const char* mistake = words[1];
  auto is = [&](const char* name) { return !strcmp(mistake, name); };
  float coefficients[2] = {2, 1}, *data, *more, *pinned;
  cudaMemcpyToSymbol(factors, coefficients, sizeof(coefficients));
  cudaMalloc(&data, sizeof(host));
  cudaMalloc(&more, sizeof(host));
  char* large;
  cudaMalloc(&large, 2 << 20);
  cudaMallocHost(&pinned, sizeof(host));
  pinned[5] = 0;
  fill<<<1, 128>>>(data, N);
  if (is("out-of-bounds")) fill_too_much<<<1, 128>>>(more, N);
  if (is("ended")) {
    fill_too_much<<<1, 1024>>>(more + (1 << 24), 1024);
    printf("%s\n", cudaGetErrorString(cudaDeviceSynchronize()));
  }
  if (is("past-tile")) past_the_tile<<<1, 32>>>(more);
  if (is("uninitialised")) add<<<1, 128>>>(data, more, N);
  if (is("race")) neighbours<<<1, 64>>>(data);
  if (is("kernel-after-free")) cudaFree(more), fill<<<1, 128>>>(more, N), more = nullptr;
  if (is("double-free")) cudaFree(more), cudaFree(more), more = nullptr;
  if (is("wrong-free")) cudaFree(host);
  if (is("copy-beyond")) cudaMemcpy(data, host, sizeof(host) + 4, cudaMemcpyHostToDevice);
  if (is("copy-unwritten")) cudaMemcpy(host, more, sizeof(host), cudaMemcpyDeviceToHost);
  if (is("wrong-kind")) cudaMemcpy(host, data, sizeof(host), cudaMemcpyHostToDevice);
  if (is("copy-unmapped")) cudaMemcpy(data, unmapped(), sizeof(host), cudaMemcpyHostToDevice);
  if (is("past-block")) cudaMemcpy(block(sizeof(host) - 64), data, sizeof(host), cudaMemcpyDeviceToHost);
  if (is("past-inside")) cudaMemcpy(block(sizeof(host)) + 128, data, sizeof(host), cudaMemcpyDeviceToHost);
  if (is("past-large-block")) cudaMemcpy(large, block(1 << 20), (1 << 20) + 4096, cudaMemcpyHostToDevice);
  if (is("whole-blocks")) use_blocks(large);
  if (is("early-read")) fill<<<1, 128>>>(pinned, N), host[0] = pinned[5];
  if (is("late-read")) fill<<<1, 128>>>(pinned, N), cudaDeviceSynchronize(), host[0] = pinned[5];
  if (is("early-write")) cudaMemcpyAsync(data, pinned, sizeof(host), cudaMemcpyDefault), pinned[5] = 1;
  if (is("poll")) poll(pinned);
  if (is("device-read")) host[0] = data[0];
  if (is("read-after-free")) cudaFreeHost(pinned), host[0] = pinned[0];
  if (is("too-many-threads")) fill<<<1, 2048>>>(data, N);
  if (is("cluster")) fill_in_a_cluster(data, N, false), fill_in_a_cluster(data, N, true);
  if (is("graph")) run_in_graph(data);
  if (is("changed-node")) change_node(data);
  if (is("memory-node")) capture_allocation();
  if (is("callback")) fill<<<1, 128>>>(pinned, N), wait_for_callback(pinned);
  if (is("memory")) ask_for_all();
  if (is("printf")) say<<<1, 2>>>();
  if (is("registered")) fill_registered(N - 1);
  if (is("past-registered")) fill_registered(N);
  if (is("cooperative")) {
    int* counts;
    cudaMalloc(&counts, 8);
    cudaMemset(counts, 0, 8);
    void* arguments[] = {&counts};
    cudaLaunchCooperativeKernel((void*)whole_grid, 4, 32, arguments, 0, 0);
    int seen[2];
    cudaMemcpy(seen, counts, 8, cudaMemcpyDeviceToHost);
    printf("%d threads\n", seen[1]);
    cudaFree(counts);
  }
  count<<<2, 32>>>();
  cudaDeviceSynchronize();
  int counted = 0;
  cudaMemcpyFromSymbol(&counted, counter, sizeof(counted));
  cudaMemcpy(host, data, sizeof(host), cudaMemcpyDeviceToHost);
  printf("%g %d %d\n", host[N - 1], counted, shared_by_all);
  if (!is("leak")) cudaFree(more);
  cudaFree(data), cudaFree(large);
  cudaFreeHost(pinned);
  return is("failure") ? 3 : 0;
}
