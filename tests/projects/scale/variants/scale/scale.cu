// y = factor * x, WIDTH floats per thread.
#include "export.cuh"
#include "vector.cuh"

enum class Order { forward, backward };

constexpr int WIDTH = KX_WIDTH;
constexpr Order ORDER = Order::KX_ORDER;
constexpr int THREADS = 256;

KX_EXPORT(threads, THREADS);
KX_EXPORT(dynamic_smem_bytes, 0);

extern "C" __global__ void __launch_bounds__(THREADS)
    scale(const Vector<WIDTH>* x, Vector<WIDTH>* y, float factor, int count) {
    int i = blockIdx.x * THREADS + threadIdx.x;
    if (i >= count) return;
    if constexpr (ORDER == Order::backward) i = count - 1 - i;
    Vector<WIDTH> v = x[i];
    for (float& each : v.at) each *= factor;
    y[i] = v;
}
