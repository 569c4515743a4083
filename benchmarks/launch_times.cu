// Preloaded into a program: times its first launch on the card, prints a line, ends the program.
//
// All that the program has allocated is put back as it was, L2 is filled with other data by reading
// them, and the launch stands between two events behind that, without a pause of the host's.
#include <cuda_runtime.h>
#include <dlfcn.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <map>
#include <mutex>
#include <vector>

namespace {

constexpr size_t OTHER = size_t(256) << 20;  // bytes: more than L2 has
constexpr int WARM = 5, COUNTED = 30;

__global__ void kx_read(const uint4* other, size_t count, unsigned* sink) {
    unsigned sum = 0;
    for (size_t i = blockIdx.x * size_t(blockDim.x) + threadIdx.x; i < count;
         i += size_t(gridDim.x) * blockDim.x) {
        uint4 x = other[i];
        sum += x.x ^ x.y ^ x.z ^ x.w;
    }
    if (sum == 0x12345) *sink = sum;
}

__global__ void kx_empty() {}

__global__ void kx_clock(unsigned long long* out) {
    unsigned long long t0, t1, c0 = clock64();
    asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(t0));
    while (clock64() - c0 < 400000) {
    }
    unsigned long long c1 = clock64();
    asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(t1));
    out[0] = c1 - c0;
    out[1] = t1 - t0;
}

std::map<char*, size_t> live;
std::mutex guard;
thread_local bool own = false;

template <typename F>
F next(const char* name) {
    void* found = dlsym(RTLD_NEXT, name);
    if (!found) {
        fprintf(stderr, "launch_times: no %s\n", name);
        _exit(90);
    }
    return reinterpret_cast<F>(found);
}

void allocated(void* p, size_t size) {
    std::lock_guard<std::mutex> lock(guard);
    if (p && size) live[static_cast<char*>(p)] = size;
}

void require(cudaError_t error, const char* what) {
    if (error) {
        printf("\nlaunch_times: %s: %s\n", what, cudaGetErrorString(error));
        fflush(stdout);
        _exit(91);
    }
}

double median(std::vector<float> x) {
    std::sort(x.begin(), x.end());
    size_t half = x.size() / 2;
    return x.size() % 2 ? x[half] : (x[half - 1] + x[half]) / 2;
}

[[noreturn]] void timed(const char* symbol, dim3 grid, dim3 block, cudaStream_t stream,
                        const std::function<cudaError_t()>& launch) {
    own = true;
    require(cudaDeviceSynchronize(), "before the launch");
    cudaGetLastError();
    std::vector<std::pair<char*, char*>> copies;
    for (auto& [p, size] : live) {
        char* copy;
        require(cudaMalloc(&copy, size), "room for what the program has");
        require(cudaMemcpy(copy, p, size, cudaMemcpyDefault), "a copy of what it has");
        copies.push_back({p, copy});
    }
    std::map<char*, size_t> kept = live;
    uint4* other;
    unsigned* sink;
    unsigned long long* clocks;
    require(cudaMalloc(&other, OTHER), "other data");
    require(cudaMemset(other, 1, OTHER), "other data");
    require(cudaMalloc(&sink, 4), "a word");
    require(cudaMallocManaged(&clocks, 16), "clocks");
    cudaEvent_t begin, end;
    cudaEventCreate(&begin);
    cudaEventCreate(&end);
    auto once = [&](const std::function<cudaError_t()>& work) {
        for (auto& [p, copy] : copies)
            require(cudaMemcpyAsync(p, copy, kept[p], cudaMemcpyDefault, stream), "restored");
        kx_read<<<132 * 8, 256, 0, stream>>>(other, OTHER / 16, sink);
        cudaEventRecord(begin, stream);
        require(work(), "the launch");
        cudaEventRecord(end, stream);
        require(cudaEventSynchronize(end), "the launch");
        float ms;
        cudaEventElapsedTime(&ms, begin, end);
        return ms * 1e3f;
    };
    std::vector<float> us, empty;
    for (int i = 0; i < WARM; ++i) once(launch);
    for (int i = 0; i < COUNTED; ++i) us.push_back(once(launch));
    kx_clock<<<1, 1, 0, stream>>>(clocks);
    require(cudaStreamSynchronize(stream), "the clock");
    double mhz = 1e3 * clocks[0] / clocks[1];
    auto nothing = [&] {
        kx_empty<<<1, 32, 0, stream>>>();
        return cudaGetLastError();
    };
    for (int i = 0; i < 15; ++i) {
        float x = once(nothing);
        if (i >= WARM) empty.push_back(x);
    }
    cudaDeviceProp card;
    require(cudaGetDeviceProperties(&card, 0), "the card");
    printf("\n{\"us\":%.3f,\"least\":%.3f,\"most\":%.3f,\"mhz\":%.0f,\"empty_us\":%.3f,"
           "\"card\":\"%s\",\"symbol\":\"%s\",\"grid\":[%u,%u,%u],\"block\":[%u,%u,%u]}\n",
           median(us), *std::min_element(us.begin(), us.end()),
           *std::max_element(us.begin(), us.end()), mhz, median(empty), card.name, symbol, grid.x,
           grid.y, grid.z, block.x, block.y, block.z);
    fflush(stdout);
    _exit(0);
}

}  // namespace

extern "C" {

// By another name, as the headers define these two for the device.
cudaError_t own_malloc(void** p, size_t size) __asm__("cudaMalloc");
cudaError_t own_free(void* p) __asm__("cudaFree");

cudaError_t own_malloc(void** p, size_t size) {
    static auto real = next<cudaError_t (*)(void**, size_t)>("cudaMalloc");
    cudaError_t error = real(p, size);
    if (!error && !own) allocated(*p, size);
    return error;
}

cudaError_t cudaMallocManaged(void** p, size_t size, unsigned flags) {
    static auto real = next<cudaError_t (*)(void**, size_t, unsigned)>("cudaMallocManaged");
    cudaError_t error = real(p, size, flags);
    if (!error && !own) allocated(*p, size);
    return error;
}

cudaError_t cudaMallocAsync(void** p, size_t size, cudaStream_t stream) {
    static auto real = next<cudaError_t (*)(void**, size_t, cudaStream_t)>("cudaMallocAsync");
    cudaError_t error = real(p, size, stream);
    if (!error && !own) allocated(*p, size);
    return error;
}

cudaError_t cudaMallocPitch(void** p, size_t* pitch, size_t width, size_t height) {
    static auto real =
        next<cudaError_t (*)(void**, size_t*, size_t, size_t)>("cudaMallocPitch");
    cudaError_t error = real(p, pitch, width, height);
    if (!error && !own) allocated(*p, *pitch * height);
    return error;
}

cudaError_t own_free(void* p) {
    static auto real = next<cudaError_t (*)(void*)>("cudaFree");
    if (!own) {
        std::lock_guard<std::mutex> lock(guard);
        live.erase(static_cast<char*>(p));
    }
    return real(p);
}

cudaError_t cudaLaunchKernel(const void* f, dim3 grid, dim3 block, void** args, size_t smem,
                             cudaStream_t stream) {
    static auto real = next<cudaError_t (*)(const void*, dim3, dim3, void**, size_t, cudaStream_t)>(
        "cudaLaunchKernel");
    if (own) return real(f, grid, block, args, smem, stream);
    const char* symbol = "";
    cudaFuncGetName(&symbol, f);
    timed(symbol, grid, block, stream,
          [=] { return real(f, grid, block, args, smem, stream); });
}

cudaError_t __cudaLaunchKernel(cudaKernel_t f, dim3 grid, dim3 block, void** args, size_t smem,
                               cudaStream_t stream) {
    static auto real =
        next<cudaError_t (*)(cudaKernel_t, dim3, dim3, void**, size_t, cudaStream_t)>(
            "__cudaLaunchKernel");
    if (own) return real(f, grid, block, args, smem, stream);
    const char* symbol = "";
    cudaFuncGetName(&symbol, reinterpret_cast<const void*>(f));
    timed(symbol, grid, block, stream,
          [=] { return real(f, grid, block, args, smem, stream); });
}

cudaError_t cudaLaunchCooperativeKernel(const void* f, dim3 grid, dim3 block, void** args,
                                        size_t smem, cudaStream_t stream) {
    static auto real = next<cudaError_t (*)(const void*, dim3, dim3, void**, size_t, cudaStream_t)>(
        "cudaLaunchCooperativeKernel");
    const char* symbol = "";
    cudaFuncGetName(&symbol, f);
    timed(symbol, grid, block, stream,
          [=] { return real(f, grid, block, args, smem, stream); });
}

cudaError_t cudaLaunchKernelExC(const cudaLaunchConfig_t* config, const void* f, void** args) {
    static auto real =
        next<cudaError_t (*)(const cudaLaunchConfig_t*, const void*, void**)>("cudaLaunchKernelExC");
    if (own) return real(config, f, args);
    const char* symbol = "";
    cudaFuncGetName(&symbol, f);
    timed(symbol, config->gridDim, config->blockDim, config->stream,
          [=] { return real(config, f, args); });
}
}
