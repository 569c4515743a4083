// Calls of cuFFT and cuRAND, and a kernel that NVRTC compiles: prints what is wrong, and how many
// there were.
#include <cuda.h>
#include <cuda_runtime.h>
#include <cufft.h>
#include <curand.h>
#include <nvrtc.h>

#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <complex>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <string>
#include <vector>

using Complex = std::complex<double>;
int calls = 0;

std::vector<Complex> naive(const std::vector<Complex>& from, int rows, int columns, int sign) {
  std::vector<Complex> to(from.size());
  for (int u = 0; u < rows; ++u) {
    for (int v = 0; v < columns; ++v) {
      for (int i = 0; i < rows; ++i) {
        for (int j = 0; j < columns; ++j) {
          to[u * columns + v] += from[i * columns + j] * std::polar(1.0, sign * 2 * M_PI * (double(u * i) / rows + double(v * j) / columns));
        }
      }
    }
  }
  return to;
}

void expect(const char* name, double got, double wanted) {
  ++calls;
  if (!(std::fabs(got - wanted) <= 1e-4)) printf("%s: %g, not %g\n", name, got, wanted);
}

int main() {
  for (auto [rows, columns] : {std::pair{1, 16}, {1, 15}, {6, 8}, {4, 7}}) {
    const int n = rows * columns, half = columns / 2 + 1;
    std::vector<Complex> from(n), real(n);
    std::vector<cufftComplex> data(n);
    std::vector<float> reals(n), padded(rows * 2 * half);
    for (int i = 0; i < n; ++i) {
      data[i] = {rand() / float(RAND_MAX), rand() / float(RAND_MAX)};
      from[i] = {data[i].x, data[i].y}, real[i] = reals[i] = data[i].x;
      padded[i / columns * 2 * half + i % columns] = reals[i];
    }
    cufftHandle plan, forth, back;
    cufftComplex *all, *spectrum;
    float *place, *values;
    cudaMalloc(&all, n * sizeof(cufftComplex));
    cudaMalloc(&spectrum, rows * half * sizeof(cufftComplex));
    cudaMalloc(&place, padded.size() * sizeof(float));
    cudaMalloc(&values, n * sizeof(float));
    cudaMemcpy(all, data.data(), n * sizeof(cufftComplex), cudaMemcpyHostToDevice);
    cudaMemcpy(place, padded.data(), padded.size() * sizeof(float), cudaMemcpyHostToDevice);
    cudaMemcpy(values, reals.data(), n * sizeof(float), cudaMemcpyHostToDevice);
    rows == 1 ? cufftPlan1d(&plan, n, CUFFT_C2C, 1) : cufftPlan2d(&plan, rows, columns, CUFFT_C2C);
    cufftPlan2d(&forth, rows, columns, CUFFT_R2C);
    cufftPlan2d(&back, rows, columns, CUFFT_C2R);
    cufftExecC2C(plan, all, all, CUFFT_FORWARD);
    cudaMemcpy(data.data(), all, n * sizeof(cufftComplex), cudaMemcpyDeviceToHost);
    const auto wanted = naive(from, rows, columns, -1), of_real = naive(real, rows, columns, -1);
    double worst = 0;
    for (int i = 0; i < n; ++i) worst = std::max(worst, std::abs(Complex(data[i].x, data[i].y) - wanted[i]));
    expect("C2C", worst, 0);
    cufftExecR2C(forth, values, spectrum);
    cufftExecR2C(forth, place, (cufftComplex*)place);
    std::vector<cufftComplex> here(rows * half), there(rows * half);
    cudaMemcpy(here.data(), spectrum, rows * half * sizeof(cufftComplex), cudaMemcpyDeviceToHost);
    cudaMemcpy(there.data(), place, rows * half * sizeof(cufftComplex), cudaMemcpyDeviceToHost);
    worst = 0;
    for (int i = 0; i < rows * half; ++i) {
      const Complex right = of_real[i / half * columns + i % half];
      worst = std::max({worst, std::abs(Complex(here[i].x, here[i].y) - right), std::abs(Complex(there[i].x, there[i].y) - right)});
    }
    expect("R2C", worst, 0);
    cufftExecC2R(back, spectrum, values);
    std::vector<float> again(n);
    cudaMemcpy(again.data(), values, n * sizeof(float), cudaMemcpyDeviceToHost);
    worst = 0;
    for (int i = 0; i < n; ++i) worst = std::max(worst, std::fabs(double(again[i]) / n - reals[i]));
    expect("C2R", worst, 0);
  }
  // Every third of 24 numbers, in two batches of 4.
  std::vector<cufftComplex> data(24);
  for (int i = 0; i < 24; ++i) data[i] = {float(i), 0};
  cufftComplex* all;
  cudaMalloc(&all, sizeof(cufftComplex) * 24);
  cudaMemcpy(all, data.data(), sizeof(cufftComplex) * 24, cudaMemcpyHostToDevice);
  cufftHandle plan;
  int n = 4;
  cufftPlanMany(&plan, 1, &n, &n, 3, 12, &n, 3, 12, CUFFT_C2C, 2);
  cufftExecC2C(plan, all, all, CUFFT_FORWARD);
  cudaMemcpy(data.data(), all, sizeof(cufftComplex) * 24, cudaMemcpyDeviceToHost);
  expect("batch", data[12].x, 12 + 15 + 18 + 21);
  expect("between", data[13].x, 13);

  const int count = 30000;
  for (auto type : {CURAND_RNG_PSEUDO_DEFAULT, CURAND_RNG_QUASI_SOBOL32}) {
    curandGenerator_t generator;
    std::vector<float> numbers(2 * count), normals(2 * count);
    float* to;
    cudaMalloc(&to, numbers.size() * sizeof(float));
    curandCreateGenerator(&generator, type);
    if (type == CURAND_RNG_PSEUDO_DEFAULT) curandSetPseudoRandomGeneratorSeed(generator, 7);
    else curandSetQuasiRandomGeneratorDimensions(generator, 2);
    curandGenerateUniform(generator, to, numbers.size());
    cudaMemcpy(numbers.data(), to, numbers.size() * sizeof(float), cudaMemcpyDeviceToHost);
    curandGenerateNormal(generator, to, normals.size(), 3, 2);
    cudaMemcpy(normals.data(), to, normals.size() * sizeof(float), cudaMemcpyDeviceToHost);
    double inside = 0, sum = 0, squares = 0, least = 1;
    for (int i = 0; i < count; ++i) {
      inside += numbers[i] * numbers[i] + numbers[count + i] * numbers[count + i] < 1;
      least = std::min<double>(least, numbers[i]);
    }
    for (float each : normals) sum += each, squares += (each - 3) * (each - 3);
    expect("a quarter of a circle", std::fabs(inside / count - M_PI / 4) < 0.01, 1);
    expect("above 0", least > 0 && least < 0.01, 1);
    expect("mean", std::fabs(sum / normals.size() - 3) < 0.05, 1);
    expect("deviation", std::fabs(std::sqrt(squares / normals.size()) - 2) < 0.05, 1);
  }

  const char* source = "#include \"by.h\"\n#include \"beside.h\"\ntemplate <int N> __global__ void scale(float* x) { x[threadIdx.x] *= N * BY * BESIDE; }";
  char folder[] = "/tmp/transforms-XXXXXX";  // where the source says that it is from
  const std::string place = mkdtemp(folder);
  std::ofstream(place + "/beside.h") << "#define BESIDE 5\n";
  const char *text = "#define BY 2\n", *header = "by.h", *option = "--gpu-architecture=sm_90";
  nvrtcProgram program;
  nvrtcCreateProgram(&program, source, (place + "/scale").c_str(), 1, &text, &header);
  nvrtcAddNameExpression(program, "scale<3>");
  if (nvrtcCompileProgram(program, 1, &option) != NVRTC_SUCCESS) {
    size_t size;
    nvrtcGetProgramLogSize(program, &size);
    std::vector<char> log(size);
    nvrtcGetProgramLog(program, log.data());
    printf("%s\n", log.data());
  }
  size_t size;
  nvrtcGetCUBINSize(program, &size);
  std::vector<char> code(size);
  nvrtcGetCUBIN(program, code.data());
  const char* name = "";
  nvrtcGetLoweredName(program, "scale<3>", &name);
  CUmodule module;
  CUfunction function;
  cuModuleLoadData(&module, code.data());
  expect("function", cuModuleGetFunction(&function, module, name), 0);
  std::vector<float> four = {1, 2, 3, 4};
  float* x;
  cudaMalloc(&x, 16);
  cudaMemcpy(x, four.data(), 16, cudaMemcpyHostToDevice);
  void* arguments[] = {&x};
  cuLaunchKernel(function, 1, 1, 1, 4, 1, 1, 0, nullptr, arguments, nullptr);
  cudaMemcpy(four.data(), x, 16, cudaMemcpyDeviceToHost);
  expect("scaled", four[3], 120);
  nvrtcProgram wrong;
  nvrtcCreateProgram(&wrong, "__global__ void k( {", "wrong", 0, nullptr, nullptr);
  expect("refused", nvrtcCompileProgram(wrong, 0, nullptr), NVRTC_ERROR_COMPILATION);
  remove((place + "/beside.h").c_str()), rmdir(folder);
  printf("%d calls\n", calls);
}
