// From a batch to logits: fills the model's input tensors, which stay at fixed addresses, and calls
// the model. Engine thread only; nothing allocates after construction.
#pragma once

#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "engine/memory_plan.h"
#include "engine/sequence.h"
#include "engine/step_record.h"
#include "models/model.h"

namespace vitrine {

class Runner {
 public:
  static Result<std::unique_ptr<Runner>> create(Model& model, Backend& backend,
                                                const MemoryPlan& plan, int step_tokens);

  // Fills the pages that the batch is the first to write to with NaN (EngineOptions::poison_pages).
  void poison(const Batch& batch);
  // Computes the batch; afterwards the hidden states of its wanted rows are ready.
  void run(const Batch& batch);
  // Calls `use` with the logits of every wanted row, a slice of rows at a time: (batch entry,
  // position of the row, logits (V)). The row of a sampled entry comes last among that entry's.
  using UseLogits = std::function<void(int entry, int position, std::span<const float> logits)>;
  void for_each_logits(const Batch& batch, const UseLogits& use);
  // The token that a later step feeds to the sequence in this slot.
  void set_last_token(int slot, std::int32_t token) { last_tokens_[slot] = token; }
  // FLOPs and bytes of the batch.
  void count(Batch& batch, StepRecord& record) const;
  int wanted_rows() const { return static_cast<int>(wanted_.size()); }

 private:
  struct Wanted {
    int entry, position;
  };
  Runner(Model& model, Backend& backend, const MemoryPlan& plan, int step_tokens);
  Status allocate();
  Result<Tensor> make(DType dtype, Shape shape);
  void fill(const Batch& batch);
  void copy_pages(const Batch& batch);

  Model& model_;
  Backend& b_;
  const MemoryPlan& plan_;
  int step_tokens_, slice_rows_;
  int sequences_ = 0;  // of the step
  std::vector<Buffer> buffers_;

  // On the backend, at fixed addresses.
  Tensor ids_, positions_, row_offsets_, out_rows_, hidden_, logits_;
  std::vector<KvIndex> indexes_;  // by group, at full size
  std::vector<KvCache> caches_;   // by layer

  // Host side of a step.
  std::vector<std::int32_t> host_ids_, host_positions_, host_offsets_, host_rows_;
  std::vector<std::vector<std::int32_t>> host_slots_, host_tables_;  // by group
  std::vector<std::int32_t> last_tokens_;                            // by slot
  std::vector<Wanted> wanted_;
  std::vector<KvIndex> step_indexes_;
  std::vector<float> staging_;
};

}  // namespace vitrine
