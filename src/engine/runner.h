// From a batch to hidden states: fills the model's input tensors, owns the K and V of all layers,
// and calls the model. Engine thread only; nothing allocates after create().
//
// On an asynchronous backend run() only queues the step, with the scorer's part of it. Steps that
// only decode are padded to a few sizes, so that the backend can replay them.
#pragma once

#include <array>
#include <memory>
#include <vector>

#include "engine/batch.h"
#include "engine/memory_plan.h"
#include "engine/scorer.h"
#include "kernels/backend.h"
#include "nn/model.h"

namespace vitrine {

class Runner {
 public:
  // All arguments must outlive it. `which`: of the runners on this backend, so that what one records is not
  // replayed for another.
  static Result<std::unique_ptr<Runner>> create(Model& model, Backend& backend, Scorer& scorer,
                                                const MemoryPlan& plan, int step_tokens,
                                                int which = 0);

  // Fills the pages that the batch is the first to write to with NaN (EngineOptions::poison_pages).
  void poison(const Batch& batch);
  // Computes the batch, or queues it: see Scorer::deferred(). `follows`: see Device::begin_step.
  void run(Batch& batch, std::uint64_t step, bool follows);
  // Waits until the batch is through.
  StepTimes wait(const Batch& batch) { return b_.wait(tickets_[batch.flight]); }

 private:
  Runner(Model& model, Backend& backend, Scorer& scorer, const MemoryPlan& plan, int step_tokens,
         int which);
  Status allocate();
  void fill(const Batch& batch);
  void pad();
  void lay_out();
  void upload();
  void set_input();
  void compute();
  void forward_and_score();
  void copy_pages(const Batch& batch);

  Model& model_;
  Backend& b_;
  Scorer& scorer_;
  const MemoryPlan& plan_;
  const int step_tokens_;
  const int which_;
  const bool async_;
  std::vector<Buffer> buffers_;

  // The step at work: its rows, sequences, rows whose hidden states are wanted (padded), and the
  // pages of its longest table.
  const Batch* batch_ = nullptr;
  int T_ = 0, S_ = 0, M_ = 0, B_ = 0;
  bool replayable_ = false;

  // On the backend. The step's integers are one block, laid out by its sizes: steps of equal sizes
  // have them at equal addresses, and one copy brings them there.
  Tensor inputs_;
  std::vector<std::int32_t> host_inputs_;
  struct Layout {
    std::int64_t draws = 0, ids = 0, positions = 0, offsets = 0, rows = 0, groups = 0, end = 0;
    std::int64_t group_stride = 0;  // slots (T), then the table (S,B)
  } at_;
  ModelInput input_;
  std::vector<KvCache> caches_;   // by layer
  std::vector<KvIndex> indexes_;  // by group, of the step

  // Host side of a step, before it is laid out.
  std::vector<std::int32_t> ids_, positions_, offsets_, rows_;
  std::vector<std::vector<std::int32_t>> slots_;  // by group
  std::vector<const Sequence*> sequences_;        // with rows; null: padding
  std::array<int, Backend::kStepsInFlight> tickets_{};
  std::uint64_t runs_ = 0;
};

}  // namespace vitrine
