// One kernel of SGEMM_CUDA on square matrices, by its own runner: arguments NUMBER SIZE.
#include <vector>

#include "runner.cu"

int main(int, char** argv) {
    const int number = atoi(argv[1]), n = atoi(argv[2]);
    const size_t count = size_t(n) * n;
    std::vector<float> host(count);
    float* device[3];
    for (float*& matrix : device) {
        for (float& value : host) value = float(rand() % 5) + 0.01f * (rand() % 5);
        cudaMalloc(&matrix, count * sizeof(float));
        cudaMemcpy(matrix, host.data(), count * sizeof(float), cudaMemcpyHostToDevice);
    }
    run_kernel(number, n, n, n, 0.5f, device[0], device[1], 3.0f, device[2], nullptr);
    return cudaDeviceSynchronize();
}

// Of cuBLAS, which is not linked: only the kernel with number 0 takes it.
extern "C" cublasStatus_t cublasGemmEx(cublasHandle_t, cublasOperation_t, cublasOperation_t, int,
                                       int, int, const void*, const void*, cudaDataType, int,
                                       const void*, cudaDataType, int, const void*, void*,
                                       cudaDataType, int, cublasComputeType_t, cublasGemmAlgo_t) {
    return CUBLAS_STATUS_NOT_SUPPORTED;
}
