// cuda: one NVIDIA GPU. Weights, activations and KV pages are in its memory; ops queue kernels on
// one stream. Steps that repeat (Backend::repeat) are recorded as graphs and replayed.
#pragma once

#include <array>
#include <unordered_map>

#include "kernels/backend.h"
#include "kernels/cuda/attention.h"
#include "kernels/cuda/context.h"

namespace vitrine::cuda {

class CudaBackend final : public Backend {
 public:
  // An error says why this machine cannot use it.
  static Result<std::unique_ptr<Backend>> create(const BackendOptions& options);
  ~CudaBackend() override;

  std::string name() const override { return "cuda"; }
  bool exact() const override { return c_.deterministic; }
  std::string description() const override { return description_; }
  Peak measure_peak(DType weights) override;
  bool asynchronous() const override { return true; }
  std::optional<std::int64_t> free_memory() const override;
  int head_rows() const override { return 256; }
  Result<Buffer> allocate(std::int64_t bytes) override;
  Result<Buffer> allocate_shared(std::int64_t bytes) override;
  void write(void* to, const void* from, std::int64_t bytes) override;
  const void* read(const void* from, std::int64_t bytes, void* staging) override;
  std::int64_t packed_bytes(DType dtype, std::int64_t rows, std::int64_t cols,
                            WeightUse use) const override;
  Result<std::unique_ptr<Weight>> pack(const MatrixSource& source, WeightUse use) override;
  Status check_kv(const KvLayout& layout) const override;
  std::int64_t kv_page_bytes(const KvShape& shape) const override {
    return plain_page_bytes(shape);
  }
  void copy(void* to, const void* from, std::int64_t bytes) override;
  void begin_step(std::uint64_t step, bool follows) override;
  int end_step() override;
  StepTimes wait(int ticket) override;
  void read_later(void* to, const void* from, std::int64_t bytes) override;

 protected:
  void repeat_(std::uint64_t key, const std::function<void()>& calls) override;
  void embed_(Tensor out, const Weight& table, Tensor ids, float scale) override;
  void matmul_(Tensor out, Tensor x, const Weight& w, Tensor bias) override;
  void rms_norm_(Tensor out, Tensor x, Tensor w, float eps) override;
  void layer_norm_(Tensor out, Tensor x, Tensor w, Tensor b, float eps) override;
  void rope_table_(Tensor table, Tensor positions, Tensor inv_freq, float scale) override;
  void rope_(Tensor x, Tensor table) override;
  void store_kv_(Tensor k, Tensor v, const KvCache& cache, const KvIndex& index) override;
  void attention_(Tensor out, Tensor q, const KvCache& cache, const KvIndex& index,
                  const AttentionParams& params) override;
  void add_(Tensor out, Tensor a, Tensor b) override;
  void activate_(Tensor x, Activation activation) override;
  void glu_(Tensor out, Tensor gate, Tensor up, Activation activation) override;
  void softcap_(Tensor x, float cap) override;
  void gather_rows_(Tensor out, Tensor x, Tensor rows) override;
  void add_rms_norm_(Tensor out, Tensor residual, Tensor delta, Tensor w, float eps) override;
  void gather_rms_norm_(Tensor out, Tensor x, Tensor rows, Tensor w, float eps) override;
  void matmul_group_(std::span<const MatmulPart> parts, Tensor x, const InputNorm& norm) override;
  void matmul_glu_(Tensor out, Tensor scratch, Tensor x, const InputNorm& norm, const Weight& gate,
                   Tensor gate_bias, const Weight& up, Tensor up_bias,
                   Activation activation) override;
  void matmul_add_(Tensor out, Tensor scratch, Tensor x, const Weight& w, Tensor bias) override;
  void rope_store_kv_(Tensor q, Tensor k, Tensor v, const HeadNorms& norms, Tensor table,
                      const KvCache& cache, const KvIndex& index) override;
  void attend_(Tensor out, Tensor q, Tensor k, Tensor v, const HeadNorms& norms, Tensor table,
               const KvCache& cache, const KvIndex& index, const AttentionParams& params) override;
  void feed_from_(Tensor last) override { c_.last = last.i32(); }
  void draw_(DrawnRow* drawn, Tensor last, const DrawRow* rows, Tensor logits,
             bool greedy) override;

 private:
  CudaBackend() = default;
  Status start(const BackendOptions& options);
  void forget_recordings();
  static RopeStore rope_store(Tensor q, Tensor k, Tensor v, const HeadNorms& norms, Tensor table);
  // Names the op that is about to queue kernels; in synchronous mode, waits for it at the end.
  class Op;

  // write() goes through pinned memory: two halves, each free again when its event has passed.
  static constexpr std::int64_t kStagingHalf = 4 << 20;
  struct Half {
    std::byte* data = nullptr;
    std::int64_t used = 0;
    cudaEvent_t free = nullptr;
  };
  // The end of the step before is asked for while the step after may be there already.
  static constexpr int kSteps = kStepsInFlight + 2;
  struct Step {
    cudaEvent_t start = nullptr, end = nullptr;
    bool follows = false;
  };
  // Recorded calls. They run once as they are, so that whatever a first call sets up is not part of
  // the record, are recorded at the second time and replayed from then on.
  static constexpr std::size_t kMostRecordings = 128;
  struct Recording {
    int seen = 0;
    cudaGraphExec_t graph = nullptr;
  };

  Context c_;
  std::string description_;
  bool synchronous_ = false;
  Buffer workspace_, operands_, tickets_, staging_;
  std::array<Half, 2> halves_;
  int half_ = 0;
  std::array<Step, kSteps> steps_;
  std::uint64_t begun_ = 0;  // steps
  std::unordered_map<std::uint64_t, Recording> recordings_;
};

}  // namespace vitrine::cuda
