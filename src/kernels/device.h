// Device: where weights, activations and K and V live, and how steps are queued on it. What it can
// compute is in ops.h; a backend is both (backend.h).
//
//  - Threads: const functions may be called from any thread. The others are called by the thread
//    that loads the model and, after that, by the engine thread only; measure_peak() by any thread
//    while the engine runs no step. Never by two at a time.
//  - Units: sizes are in bytes, times in nanoseconds.
//  - Errors: a Result says what the machine lacks. A wrong argument is our mistake and fails a
//    VT_CHECK. A device that fails while it runs has lost its memory, so it ends the process with
//    the op and the step in the message.
//  - Order: an asynchronous device queues ops, write(), copy() and read_later() and returns; they
//    run in the order of the calls. read() and wait() return when what they ask for is done.
//  - Lifetime: buffers and weights are dropped before the device.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "base/result.h"
#include "kernels/kv_cache.h"
#include "kernels/measures.h"
#include "kernels/weight.h"

namespace vitrine {

// Memory of a device: 64-byte aligned, zeroed when it was allocated, released by the destructor.
class Buffer {
 public:
  Buffer() = default;
  Buffer(void* data, std::int64_t bytes, std::function<void(void*)> release)
      : data_(data, std::move(release)), bytes_(bytes) {}
  void* data() const { return data_.get(); }
  std::int64_t bytes() const { return bytes_; }

 private:
  std::unique_ptr<void, std::function<void(void*)>> data_{nullptr, [](void*) {}};
  std::int64_t bytes_ = 0;
};

class Device {
 public:
  virtual ~Device() = default;

  // ---- what it is
  virtual std::string name() const = 0;         // "ref", "cpu", "cuda"
  virtual std::string description() const = 0;  // with what was found: "cpu (avx512, 2 threads)"
  virtual int threads() const { return 1; }
  virtual bool asynchronous() const { return false; }
  // Whether a row's bits do not depend on the other rows of its batch, so that two runs agree.
  virtual bool exact() const { return true; }
  // Bytes that allocate() can still give, if known. By default the host's.
  virtual std::optional<std::int64_t> free_memory() const;
  // Rows of logits that are computed at once: enough to share one pass over the head's weights, few
  // enough that the buffer stays small for any vocabulary.
  virtual int head_rows() const { return 32; }
  // Takes about a second, all threads and up to 512 MiB; cuda up to 4 GiB of the device's memory,
  // where it has them. `weights`: the type that is multiplied.
  virtual Peak measure_peak(DType weights) = 0;

  // ---- memory and weights; allocated at load, never in a step
  virtual Result<Buffer> allocate(std::int64_t bytes) = 0;
  // Memory that host code may use too, for results that come back by read_later().
  virtual Result<Buffer> allocate_shared(std::int64_t bytes) { return allocate(bytes); }
  // Host memory to the device's. `from` may change as soon as the call returns.
  virtual void write(void* to, const void* from, std::int64_t bytes) = 0;
  // The device's memory to the host. Returns where the bytes can be read until the next op: `from`
  // itself where that is host memory, otherwise `staging` (at least `bytes` long), filled.
  virtual const void* read(const void* from, std::int64_t bytes, void* staging) = 0;
  // Within the device's memory; the ranges do not overlap.
  virtual void copy(void* to, const void* from, std::int64_t bytes) = 0;
  // Bytes that pack() will keep for such a matrix (for the memory plan).
  virtual std::int64_t packed_bytes(DType dtype, std::int64_t rows, std::int64_t cols,
                                    WeightUse use) const = 0;
  // The source may be dropped afterwards; if its rows are a view of the model file, the file must
  // stay open as long as the weight, which may read from it.
  virtual Result<std::unique_ptr<Weight>> pack(const MatrixSource& source, WeightUse use) = 0;
  // An error names what of the layout cannot be stored; asked when memory is planned. Everything
  // that takes a KvShape or KvCache takes layouts that passed.
  virtual Status check_kv(const KvLayout& layout) const = 0;
  virtual std::int64_t kv_page_bytes(const KvShape& shape) const = 0;
  // One page of one layer to another of the same cache.
  void copy_kv_page(const KvCache& cache, std::int64_t from, std::int64_t to);

  // ---- steps
  // What is queued between begin_step() and end_step() is one step. end_step() gives a ticket, and
  // wait(ticket) returns when the step is done. At most kStepsInFlight tickets are out.
  static constexpr int kStepsInFlight = 2;
  // `step`: its number, for messages. `follows`: there was work for the device since the step
  // before, so that a gap between the two counts as idle.
  virtual void begin_step(std::uint64_t /*step*/, bool /*follows*/) {}
  virtual int end_step() { return 0; }
  virtual StepTimes wait(int /*ticket*/) { return {}; }
  // Queues a copy to memory of allocate_shared(); it is there when wait() of its step returns.
  virtual void read_later(void* to, const void* from, std::int64_t bytes) { copy(to, from, bytes); }
};

}  // namespace vitrine
