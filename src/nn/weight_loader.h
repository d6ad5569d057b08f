// Binds a ModelFile's tensors to a device: by name, with the shape checked, undoing what the
// file's kind did to them. After this no code knows which kind it was.
//
// Errors stick, as in ConfigReader: ask status() once at the end.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "formats/model_file.h"
#include "kernels/device.h"
#include "nn/layers.h"

namespace vitrine {

// One tensor's name in each spelling. An empty name: not in such files.
struct Name {
  std::string gguf, hf;
};

// Also finds HF's variants of a name: a text model inside a multimodal one ("language_model." put
// before, or put in after "model."), and a bare model saved without its first part ("h.0." for
// "transformer.h.0.").
const TensorInfo* find_tensor(const ModelFile& file, const Name& name);

class WeightLoader {
 public:
  WeightLoader(const ModelFile& file, Device& device,
               std::function<void(std::int64_t bytes)> progress = {});

  bool gguf() const { return file_.kind() == FileKind::kGguf; }
  bool has(const Name& name) const { return find_tensor(file_, name) != nullptr; }

  // The rows of a matrix, (rows, cols). `transposed`: the file holds (cols, rows).
  MatrixSource matrix(const Name& name, std::int64_t rows, std::int64_t cols,
                      bool transposed = false);
  // The rows of matrix `index` of a stack (count, rows, cols), as files hold the experts of a layer.
  MatrixSource stacked_matrix(const Name& name, std::int64_t index, std::int64_t count,
                              std::int64_t rows, std::int64_t cols);
  // Rows [first, first + n) of a matrix.
  static MatrixSource slice(const MatrixSource& m, std::int64_t first, std::int64_t n);
  // Undoes GGUF's order of llama's q and k: its rotary pairs are neighbours (2i, 2i+1), ours are
  // (i, i + D/2). Row order within each head of `head_dim` rows. Vectors: the same for a bias.
  static MatrixSource unpermute_rotary(const MatrixSource& m, int heads, int head_dim);
  static void unpermute_rotary(std::vector<float>& v, int heads, int head_dim);

  // Rows of `cols` values that are computed, not read.
  static MatrixSource computed(std::string name, std::vector<float> values, std::int64_t cols);

  // A vector as host floats; exactly n of them.
  std::vector<float> floats(const Name& name, std::int64_t n);
  std::vector<float> floats_if_any(const Name& name, std::int64_t n) {
    return has(name) ? floats(name, n) : std::vector<float>{};
  }

  // Onto the device.
  Linear linear(const MatrixSource& m, std::vector<float> bias = {});
  Linear linear(const Name& weight, std::int64_t rows, std::int64_t cols, const Name& bias = {},
                bool transposed = false);
  // The output matrix: its cost is counted apart, because few rows pass it.
  Linear head(const MatrixSource& m, std::vector<float> bias = {});
  // `embedding` where the file has no such tensor, unless its configuration says that the two differ
  // (tie_word_embeddings: false).
  Linear head(const Name& weight, const MatrixSource& embedding);
  std::shared_ptr<Weight> table(const MatrixSource& m);
  Tensor vector(const std::vector<float>& values);
  // `offset` is added to the weights.
  Norm norm(NormKind kind, const Name& weight, std::int64_t n, float eps, const Name& bias = {},
            float offset = 0);
  // An f32 buffer of the model's own (activations).
  Tensor activations(Shape shape);

  // Refuses a file with tensors that nothing asked for in a layer of which others were bound: the
  // model is not the one that was computed.
  void refuse_unbound();
  void fail(Error error);
  Status status() const;

  // What has been bound so far.
  struct Totals {
    std::int64_t matmul_weights = 0, matmul_bytes = 0;  // all but the head
    DType matmul_type = DType::kF32;                    // of most of them
    std::int64_t head_weights = 0, head_bytes = 0;
    std::int64_t activation_bytes = 0;
    std::int64_t packed_bytes = 0;  // memory the device holds for weights, beyond the file
  };
  const Totals& totals() const { return totals_; }
  std::vector<Buffer> take_buffers() { return std::move(buffers_); }

 private:
  // The tensor with exactly this shape and a known format, or null with the error kept.
  const TensorInfo* get(const Name& name, Shape shape);
  // `rows` rows from `data` on.
  static MatrixSource rows_of(const TensorInfo& info, const std::byte* data, std::int64_t rows,
                              std::int64_t cols);
  Tensor allocate(Shape shape);
  Linear pack(const MatrixSource& m, std::vector<float> bias, WeightUse use);

  const ModelFile& file_;
  Device& device_;
  std::function<void(std::int64_t)> progress_;
  std::optional<Error> error_;
  std::set<std::string_view> bound_;
  Totals totals_;
  std::map<DType, std::int64_t> matmul_weights_;  // by type
  std::vector<Buffer> buffers_;
};

}  // namespace vitrine
