// Several ops of a step as one kernel.
//
// A step that is recorded (Backend::repeat) and has few rows is mostly products that are bound by
// the weights' bytes, and between two kernels the memory is idle. So products and attention are not
// launched but collected, and run by one kernel that has a block on every multiprocessor for the
// whole time (program.cu): between two ops the blocks wait for each other, and meanwhile the
// weights of the next ops are already on their way. An op that is of no use in a program is
// launched as always, after what was collected before it.
#pragma once

#include <functional>
#include <vector>

#include "kernels/cuda/attention.h"
#include "kernels/cuda/matmul.h"

namespace vitrine::cuda {

struct Job;
struct Instruction;

class Program {
 public:
  // `memory`: on the device, for the instructions, `bytes` long.
  Program(Context& c, std::byte* memory, std::int64_t bytes);
  ~Program();

  // Whether the op was taken; if not, the caller launches it, which runs what was taken before.
  bool add(const Job& job, DType dtype);
  // Taken together with the attention that follows it.
  bool rope_store(const RopeStore& r, const KvCache& cache, const KvIndex& index);
  bool attention(float* out, const float* q, const KvCache& cache, const KvIndex& index,
                 const AttentionParams& params);
  // Queues what was taken. Called by every launch.
  void flush();
  // Brings the instructions of all flushes to the device; to be queued before they run. Returns
  // their bytes.
  std::int64_t upload();

 private:
  void push(Instruction in, int work_bytes, bool scratch, std::function<void()> alone);

  Context& c_;
  std::byte* memory_;
  std::int64_t room_;  // instructions
  std::vector<Instruction> code_;
  // Since the last flush.
  std::vector<std::function<void()>> alone_;  // the ops as launches
  int work_bytes_ = 0, rows_ = 0;
  bool scratch_ = false;
  struct Rope;
  std::unique_ptr<Rope> rope_;
};

// Before the first program. False where the device cannot run them.
bool prepare_programs(Context& c);

}  // namespace vitrine::cuda
