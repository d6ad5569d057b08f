// From a batch to tokens: fills the model's input tensors and calls the model. Engine thread only;
// nothing allocates after construction.
//
// On an asynchronous backend run() only queues the step. Sampled tokens stay on the device, in a
// table by slot, and feed the next step from there; what comes back is ids, and the logits of rows
// that the host asks for. Steps that only decode are padded to a few sizes, so that the backend can
// replay them.
#pragma once

#include <array>
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
  // Computes the batch, or queues it. `follows`: see Backend::begin_step.
  void run(Batch& batch, std::uint64_t step, bool follows);
  // After run(): the results can wait while further steps run. Otherwise they must be taken, and on
  // an asynchronous backend committed, before the next run().
  bool deferred() const { return current_->deferred; }
  // Waits until the batch is through.
  StepTimes wait(const Batch& batch);
  // Of a batch that is through: calls `use` with the logits of every row that the host wants (batch
  // entry, position of the row, logits (V)), the row of a sampled entry last among that entry's.
  // Tokens that the device drew are in the batch before the first call.
  // Then `pool`, with the hidden states (E) of rows that embeddings are made of, by position.
  using UseRow = std::function<void(int entry, int position, std::span<const float> row)>;
  void results(Batch& batch, const UseRow& use, const UseRow& pool);
  // The token that a later step feeds to the sequence in this slot.
  void set_last_token(int slot, std::int32_t token) { last_tokens_[slot] = token; }
  // FLOPs and bytes of the batch that ran last.
  void count(Batch& batch, StepRecord& record) const;

 private:
  // A row whose logits are computed.
  struct Wanted {
    int entry, position;
    bool draw;     // on the device
    int host_row;  // its place among the rows that the host gets; -1: it gets none
  };
  // A row whose hidden state is wanted; behind those of `wanted` in hidden_.
  struct Pooled {
    int entry, position, row;
  };
  // What is needed to take a step's results when it is through.
  struct Flight {
    int ticket = 0;
    bool deferred = false;
    std::vector<Wanted> wanted;
    std::vector<Pooled> pooled;
    Buffer drawn, logits;  // shared memory: DrawnRow (T); f32 (kHostRows,V)
    DrawnRow* drawn_rows() const { return static_cast<DrawnRow*>(drawn.data()); }
  };
  // Rows of logits that may come back late; a step that wants more is waited for.
  static constexpr int kHostRows = 32;

  Runner(Model& model, Backend& backend, const MemoryPlan& plan, int step_tokens);
  Status allocate();
  Result<Tensor> make(DType dtype, Shape shape);
  void want(const BatchEntry& entry, int index, int position, int row);
  void fill(const Batch& batch);
  void pad();
  void lay_out();
  void upload();
  ModelInput input() const;
  void compute(const Batch& batch);
  void compute_heads(std::int64_t M, bool greedy);
  void pool_rows(const Flight& flight, const UseRow& pool);
  void copy_pages(const Batch& batch);

  Model& model_;
  Backend& b_;
  const MemoryPlan& plan_;
  int step_tokens_, slice_rows_;
  bool async_;
  std::vector<Buffer> buffers_;

  // The step at work: its rows, sequences, wanted rows (padded), and the pages of its longest
  // table.
  int T_ = 0, S_ = 0, M_ = 0, B_ = 0;
  int host_rows_ = 0;  // whose logits come back
  bool replayable_ = false;

  // On the backend. The step's integers are one block, laid out by its sizes: steps of equal sizes
  // have them at equal addresses, and one copy brings them there.
  Tensor inputs_, last_, hidden_, logits_;
  std::vector<std::int32_t> host_inputs_;
  struct Layout {
    std::int64_t draws = 0, ids = 0, positions = 0, offsets = 0, rows = 0, groups = 0, end = 0;
    std::int64_t group_stride = 0;  // slots (T), then the table (S,B)
  } at_;
  std::vector<KvCache> caches_;   // by layer
  std::vector<KvIndex> indexes_;  // by group, of the step

  // Host side of a step, before it is laid out.
  std::vector<std::int32_t> ids_, positions_, offsets_, rows_;
  std::vector<std::vector<std::int32_t>> slots_;  // by group
  std::vector<const Sequence*> sequences_;        // with rows
  std::vector<DrawRow> draws_;
  std::vector<std::int32_t> last_tokens_;  // by slot; backends that are not asynchronous
  std::array<Flight, Backend::kStepsInFlight> flights_;
  Flight* current_ = nullptr;
  std::uint64_t runs_ = 0;
  std::vector<float> staging_;
};

}  // namespace vitrine
