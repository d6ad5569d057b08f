#include "kernels/cuda/backend.h"

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "kernels/cuda/attention.h"
#include "kernels/cuda/device_memory.h"
#include "kernels/cuda/matmul.h"
#include "kernels/cuda/ops.h"

namespace vitrine {
namespace cuda {

void fail(const Context& c, cudaError_t error, const char* what) {
  std::string shape;
  for (std::int64_t d : c.shape)
    if (d > 0) shape += fmt::format("{}{}", shape.empty() ? "" : ", ", d);
  fmt::print(stderr, "fatal: CUDA: {} ({}): op {} of [{}], step {}, while {}\n",
             cudaGetErrorString(error), cudaGetErrorName(error), c.op, shape, c.step, what);
  std::fflush(stderr);
  std::abort();
}

cudaError_t set_device(int device) {
  thread_local int current = -1;
  if (current == device) return cudaSuccess;
  cudaError_t error = cudaSetDevice(device);
  if (error == cudaSuccess) current = device;
  return error;
}

void enter(const Context& c) { check(c, set_device(c.device), "choosing the device"); }

// Limits of kernels are asked for and set once per process, so that all its backends share a device.
Status claim_device(int device) {
  static std::atomic<int> claimed{-1};
  int found = -1;
  if (claimed.compare_exchange_strong(found, device) || found == device) return Ok{};
  return make_error(
      ErrorCode::kUnsupported,
      "cuda: device {}: this process runs on device {} already; one process takes one", device,
      found);
}

unsigned blocks_for(const Context& c, std::int64_t n, std::int64_t per) {
  std::int64_t blocks = (n + per - 1) / per;
  if (n < 0 || blocks > INT32_MAX) fail(c, cudaErrorInvalidValue, "a launch of too many blocks");
  return static_cast<unsigned>(std::max<std::int64_t>(blocks, 1));
}

Status CudaBackend::start(const BackendOptions& options) {
  auto unavailable = [](std::string_view what, cudaError_t error) {
    return make_error(ErrorCode::kUnavailable, "cuda: {}: {}", what, cudaGetErrorString(error));
  };
  int devices = 0;
  cudaError_t error = cudaGetDeviceCount(&devices);
  if (error != cudaSuccess) return unavailable("no usable device", error);
  if (devices == 0) return make_error(ErrorCode::kUnavailable, "cuda: no device");
  VT_RETURN_IF_ERROR(check_device("cuda", options, devices));
  c_.device = options.device;
  const std::string device = fmt::format("device {}", c_.device);
  cudaDeviceProp properties;
  error = cudaGetDeviceProperties(&properties, c_.device);
  if (error != cudaSuccess) return unavailable(device, error);
  c_.capability = 10 * properties.major + properties.minor;
  c_.sms = properties.multiProcessorCount;
  c_.shared_bytes = static_cast<int>(properties.sharedMemPerBlockOptin);
  if (c_.capability < 80)
    return make_error(ErrorCode::kUnavailable,
                      "cuda: {} has compute capability {}.{}, at least 8.0 is needed",
                      properties.name, properties.major, properties.minor);
  VT_RETURN_IF_ERROR(claim_device(c_.device));
  if ((error = set_device(c_.device)) != cudaSuccess) return unavailable(device, error);
  error = cudaStreamCreateWithFlags(&c_.stream, cudaStreamNonBlocking);
  if (error != cudaSuccess) return unavailable("stream", error);
  c_.deterministic = options.deterministic;
  synchronous_ = options.synchronous;
  c_.pdl = c_.capability >= 90 && !synchronous_;
  c_.workspace_bytes = kMatmulWorkspaceBytes;
  VT_TRY(workspace_, allocate_device(c_.workspace_bytes));
  c_.workspace = static_cast<std::byte*>(workspace_.data());
  // Where every op is waited for, the host may change its output before the next.
  if (!synchronous_) {
    VT_TRY(operands_, allocate_device(kOperandBytes));
    c_.operands = static_cast<std::byte*>(operands_.data());
  }
  VT_TRY(tickets_, allocate_device(std::int64_t{kTickets} * 4));
  c_.tickets = static_cast<unsigned*>(tickets_.data());
  VT_TRY(staging_, allocate_pinned(2 * kStagingHalf));
  for (int i = 0; i < 2; ++i) {
    halves_[i].data = static_cast<std::byte*>(staging_.data()) + i * kStagingHalf;
    check(c_, cudaEventCreateWithFlags(&halves_[i].free, cudaEventDisableTiming), "event");
  }
  for (Step& s : steps_) {
    check(c_, cudaEventCreate(&s.start), "event");
    check(c_, cudaEventCreate(&s.end), "event");
  }
  description_ = fmt::format("cuda ({}, {:.0f} GiB, {} multiprocessors{})", properties.name,
                             static_cast<double>(properties.totalGlobalMem) / (1 << 30), c_.sms,
                             c_.deterministic ? ", deterministic" : "");
  return Ok{};
}

Result<std::unique_ptr<Backend>> CudaBackend::create(const BackendOptions& options) {
  auto backend = std::unique_ptr<CudaBackend>(new CudaBackend());
  VT_RETURN_IF_ERROR(backend->start(options));
  return std::unique_ptr<Backend>(std::move(backend));
}

CudaBackend::~CudaBackend() {
  if (c_.stream == nullptr) return;
  enter(c_);
  forget_recordings();
  for (Step& s : steps_) {
    if (s.start != nullptr) cudaEventDestroy(s.start);
    if (s.end != nullptr) cudaEventDestroy(s.end);
  }
  for (Half& h : halves_)
    if (h.free != nullptr) cudaEventDestroy(h.free);
  cudaStreamDestroy(c_.stream);
}

// Many rows of any type are multiplied as bf16 or fp16, at the same rate.
Peak CudaBackend::measure_peak(DType) {
  enter(c_);
  check(c_, cudaStreamSynchronize(c_.stream), "waiting");
  return cuda::measure_peak(c_);
}

// ---- memory

std::optional<std::int64_t> CudaBackend::free_memory() const {
  enter(c_);
  std::size_t free = 0, total = 0;
  if (cudaMemGetInfo(&free, &total) != cudaSuccess) return std::nullopt;
  return static_cast<std::int64_t>(free);
}

Result<Buffer> CudaBackend::allocate(std::int64_t bytes) {
  enter(c_);
  return allocate_device(bytes);
}

Result<Buffer> CudaBackend::allocate_shared(std::int64_t bytes) {
  enter(c_);
  return allocate_pinned(bytes);
}

void CudaBackend::write(void* to, const void* from, std::int64_t bytes) {
  enter(c_);
  forget_operands(c_);
  auto size = static_cast<std::size_t>(bytes);
  if (bytes > kStagingHalf) {
    check(c_, cudaMemcpyAsync(to, from, size, cudaMemcpyHostToDevice, c_.stream), "write");
    check(c_, cudaStreamSynchronize(c_.stream), "write");
    return;
  }
  if (halves_[half_].used + bytes > kStagingHalf) {
    check(c_, cudaEventRecord(halves_[half_].free, c_.stream), "write");
    half_ = 1 - half_;
    check(c_, cudaEventSynchronize(halves_[half_].free), "waiting for steps before this one");
    halves_[half_].used = 0;
  }
  Half& half = halves_[half_];
  std::byte* place = half.data + half.used;
  std::memcpy(place, from, size);
  half.used += (bytes + 63) / 64 * 64;
  check(c_, cudaMemcpyAsync(to, place, size, cudaMemcpyHostToDevice, c_.stream), "write");
}

const void* CudaBackend::read(const void* from, std::int64_t bytes, void* staging) {
  enter(c_);
  forget_operands(c_);  // the host may write to shared memory afterwards
  auto size = static_cast<std::size_t>(bytes);
  check(c_, cudaMemcpyAsync(staging, from, size, cudaMemcpyDeviceToHost, c_.stream), "read");
  check(c_, cudaStreamSynchronize(c_.stream), "waiting for the ops before a read");
  return staging;
}

void CudaBackend::read_later(void* to, const void* from, std::int64_t bytes) {
  enter(c_);
  check(
      c_,
      cudaMemcpyAsync(to, from, static_cast<std::size_t>(bytes), cudaMemcpyDeviceToHost, c_.stream),
      "read_later");
}

void CudaBackend::copy(void* to, const void* from, std::int64_t bytes) {
  enter(c_);
  forget_operands(c_);
  check(c_,
        cudaMemcpyAsync(to, from, static_cast<std::size_t>(bytes), cudaMemcpyDeviceToDevice,
                        c_.stream),
        "copy");
}

std::int64_t CudaBackend::packed_bytes(DType dtype, std::int64_t rows, std::int64_t cols,
                                       WeightUse use) const {
  return cuda::packed_bytes(dtype, rows, cols, use);
}

Result<std::unique_ptr<Weight>> CudaBackend::pack(const MatrixSource& m, WeightUse use) {
  enter(c_);
  return pack_weight(c_, m, use);
}

Status CudaBackend::check_kv(const KvLayout& layout) const {
  return check_uniform_kv(name(), layout, kMaxHeadDim);
}

// ---- steps

void CudaBackend::begin_step(std::uint64_t step, bool follows) {
  enter(c_);
  c_.step = step;
  Step& s = steps_[begun_ % kSteps];
  s.follows = follows && begun_ > 0;
  check(c_, cudaEventRecord(s.start, c_.stream), "begin_step");
}

int CudaBackend::end_step() {
  enter(c_);
  int ticket = static_cast<int>(begun_++ % kSteps);
  check(c_, cudaEventRecord(steps_[ticket].end, c_.stream), "end_step");
  return ticket;
}

StepTimes CudaBackend::wait(int ticket) {
  enter(c_);
  forget_operands(c_);  // as in read()
  Step& s = steps_[ticket];
  check(c_, cudaEventSynchronize(s.end), "waiting for a step");
  auto between = [](cudaEvent_t from, cudaEvent_t to) {
    float ms = 0;
    if (cudaEventElapsedTime(&ms, from, to) != cudaSuccess) return std::int64_t{0};
    return static_cast<std::int64_t>(ms * 1e6);
  };
  StepTimes times;
  times.busy_ns = between(s.start, s.end);
  if (s.follows) times.idle_ns = between(steps_[(ticket + kSteps - 1) % kSteps].end, s.start);
  return times;
}

// Sizes come and go over a server's life; what is asked for again is recorded again.
void CudaBackend::forget_recordings() {
  check(c_, cudaStreamSynchronize(c_.stream), "waiting");
  for (auto& [key, recording] : recordings_)
    if (recording.graph != nullptr) cudaGraphExecDestroy(recording.graph);
  recordings_.clear();
}

void CudaBackend::repeat_(std::uint64_t key, const std::function<void()>& calls) {
  enter(c_);
  if (recordings_.size() >= kMostRecordings && !recordings_.contains(key)) forget_recordings();
  Recording& r = recordings_[key];
  // Recorded calls take nothing from what came before them, nor what comes after them from these.
  auto call = [&] {
    forget_operands(c_);
    calls();
    forget_operands(c_);
  };
  if (synchronous_ || r.seen++ == 0) return call();
  if (r.graph == nullptr) {
    check(c_, cudaStreamBeginCapture(c_.stream, cudaStreamCaptureModeThreadLocal), "recording");
    call();
    cudaGraph_t graph = nullptr;
    check(c_, cudaStreamEndCapture(c_.stream, &graph), "recording");
    check(c_, cudaGraphInstantiate(&r.graph, graph, 0), "recording");
    check(c_, cudaGraphDestroy(graph), "recording");
  }
  forget_operands(c_);
  c_.op = "a recorded step";
  check(c_, cudaGraphLaunch(r.graph, c_.stream), "replay");
}

}  // namespace cuda

extern const BackendDef kBackend_cuda;
const BackendDef kBackend_cuda{"cuda", 20, cuda::CudaBackend::create};

}  // namespace vitrine
