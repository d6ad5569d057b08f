#include "kernel_tool.h"

#include <algorithm>
#include <cstdlib>

namespace vitrine::cuda {

void* allocate(std::size_t bytes) {
  void* data = nullptr;
  check({}, cudaMalloc(&data, bytes), "cudaMalloc");
  return data;
}

Context make_context() {
  Context c;
  check(c, cudaDeviceGetAttribute(&c.sms, cudaDevAttrMultiProcessorCount, 0), "device");
  check(c, cudaDeviceGetAttribute(&c.shared_bytes, cudaDevAttrMaxSharedMemoryPerBlockOptin, 0),
        "device");
  int major = 0, minor = 0;
  check(c, cudaDeviceGetAttribute(&major, cudaDevAttrComputeCapabilityMajor, 0), "device");
  check(c, cudaDeviceGetAttribute(&minor, cudaDevAttrComputeCapabilityMinor, 0), "device");
  c.capability = 10 * major + minor;
  check(c, cudaStreamCreateWithFlags(&c.stream, cudaStreamNonBlocking), "stream");
  c.pdl = c.capability >= 90 && std::getenv("NO_PDL") == nullptr;
  c.workspace_bytes = kMatmulWorkspaceBytes;
  c.workspace = static_cast<std::byte*>(allocate(kMatmulWorkspaceBytes));
  cudaMemset(c.workspace, 0xff, kMatmulWorkspaceBytes);
  c.operands = static_cast<std::byte*>(allocate(kOperandBytes));
  cudaMemset(c.operands, 0xff, kOperandBytes);
  c.tickets = static_cast<unsigned*>(allocate(kTickets * sizeof(unsigned)));
  cudaMemset(c.tickets, 0, kTickets * sizeof(unsigned));
  check(c, cudaDeviceSynchronize(), "setup");
  return c;
}

void synchronize(Context& c) { check(c, cudaStreamSynchronize(c.stream), "kernel"); }

namespace {
__global__ void fill_kernel(std::uint32_t* out, std::size_t n, std::uint32_t seed) {
  for (std::size_t i = std::size_t{blockIdx.x} * blockDim.x + threadIdx.x; i < n;
       i += std::size_t{gridDim.x} * blockDim.x) {
    std::uint32_t h = static_cast<std::uint32_t>(i) * 2654435761u + seed;
    h = (h ^ h >> 15) * 0x85ebca6bu;
    out[i] = (h ^ h >> 13) & 0xBBFFBBFF;
  }
}
}  // namespace

void fill_random(void* data, std::size_t bytes) {
  static std::uint32_t seed = 1;
  fill_kernel<<<1024, 256>>>(static_cast<std::uint32_t*>(data), bytes / 4, seed += 77);
  check({}, cudaDeviceSynchronize(), "fill");
}

std::unique_ptr<CudaWeight> random_weight(DType dtype, std::int64_t rows, std::int64_t cols) {
  auto formats = all_cuda_formats();
  auto format = std::find_if(formats.begin(), formats.end(),
                             [&](const CudaFormat* f) { return f->dtype == dtype; });
  VT_CHECK(format != formats.end(), "cuda has no kernels of its own for this format");
  std::int64_t bytes = packed_bytes(dtype, rows, cols, WeightUse::kMatmul);
  MatrixSource m{.name = "random",
                 .dtype = dtype,
                 .cols = cols,
                 .row_data = std::vector<const std::byte*>(rows),
                 .owner = {}};
  void* data = allocate(bytes);
  fill_random(data, bytes);
  return std::make_unique<CudaWeight>(m, **format, bytes,
                                      Buffer(data, bytes, [](void* p) { cudaFree(p); }));
}

double graph_time(Context& c, const std::function<void()>& calls) {
  calls();
  synchronize(c);
  cudaGraph_t graph = nullptr;
  cudaGraphExec_t exec = nullptr;
  check(c, cudaStreamBeginCapture(c.stream, cudaStreamCaptureModeThreadLocal), "capture");
  calls();
  check(c, cudaStreamEndCapture(c.stream, &graph), "capture");
  check(c, cudaGraphInstantiate(&exec, graph, 0), "graph");
  cudaEvent_t begin = nullptr, end = nullptr;
  cudaEventCreate(&begin);
  cudaEventCreate(&end);
  std::vector<float> times;
  float warm = 0;
  while (warm < 15 || times.size() < 10) {
    cudaEventRecord(begin, c.stream);
    check(c, cudaGraphLaunch(exec, c.stream), "replay");
    cudaEventRecord(end, c.stream);
    check(c, cudaEventSynchronize(end), "replay");
    float ms = 0;
    cudaEventElapsedTime(&ms, begin, end);
    if (warm < 15)
      warm += ms;
    else
      times.push_back(ms);
  }
  cudaEventDestroy(begin), cudaEventDestroy(end);
  cudaGraphExecDestroy(exec), cudaGraphDestroy(graph);
  std::nth_element(times.begin(), times.begin() + times.size() / 2, times.end());
  return times[times.size() / 2] * 1000.0;
}

}  // namespace vitrine::cuda
