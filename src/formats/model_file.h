// ModelFile: what a GGUF file or a Hugging Face folder holds, in one form.
//
// Nothing is copied: tensors are views of mapped (or embedded) bytes, checked at open so that every
// view lies inside its file and has exactly the bytes that its shape and type need. Immutable after
// open; may be read from any thread. If another process truncates the mapped file, the next read of
// the lost pages terminates this process (base/mapped_file.h).
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/mapped_file.h"
#include "base/result.h"
#include "formats/meta.h"
#include "tensor/dtype.h"
#include "tensor/tensor.h"

namespace vitrine {

enum class FileKind { kGguf, kHuggingFace };

struct TensorInfo {
  std::string name;
  DType dtype = DType::kF32;
  Shape shape;                      // row-major, outermost first (GGUF's order reversed)
  std::span<const std::byte> data;  // exactly the tensor's bytes
};

// Defaults that the model's authors recommend (generation_config.json, GGUF keys).
struct GenerationDefaults {
  std::optional<double> temperature, top_p, min_p, typical_p, repetition_penalty;
  std::optional<std::int64_t> top_k;
  std::optional<bool> do_sample;
  std::vector<std::int32_t> eos_ids;  // every end token: the list, and GGUF's eos, eot and eom
  std::optional<std::int32_t> bos_id;
  // How hidden states become an embedding: "mean", "last", or a kind unknown here.
  std::optional<std::string> pooling;
};

class ModelFile {
 public:
  // `path`: a .gguf file (the first or any one of a split), a folder in Hugging Face layout, or a
  // tokenizer.json. Weights and config may be missing from a folder; what is there is checked.
  static Result<std::unique_ptr<ModelFile>> open(const std::string& path);
  // A GGUF image in memory that outlives the ModelFile.
  static Result<std::unique_ptr<ModelFile>> open_gguf(std::span<const std::byte> bytes,
                                                      const std::string& name);

  FileKind kind() const { return kind_; }
  const std::string& path() const { return path_; }
  // GGUF: general.architecture ("llama"). HF: architectures[0] ("LlamaForCausalLM"). "" if absent.
  const std::string& architecture() const { return architecture_; }
  const Meta& meta() const { return meta_; }
  const GenerationDefaults& generation() const { return generation_; }
  std::span<const TensorInfo> tensors() const { return tensors_; }
  const TensorInfo* find(std::string_view name) const;
  // Hugging Face folders only; empty when the file is not there.
  std::string_view tokenizer_json() const { return tokenizer_json_; }
  std::string_view tokenizer_config_json() const { return tokenizer_config_json_; }
  std::string_view chat_template_jinja() const { return chat_template_jinja_; }
  // What happened to the files behind it since they were opened. Asks the file system.
  std::vector<FileChange> changes() const;

 private:
  friend class GgufLoader;
  friend class HfLoader;
  ModelFile() = default;
  // Sorts the names; an error when one is there twice. After tensors_ is complete.
  Status build_index();

  FileKind kind_ = FileKind::kGguf;
  std::string path_, architecture_;
  Meta meta_;
  GenerationDefaults generation_;
  std::vector<TensorInfo> tensors_;
  std::vector<std::uint32_t> by_name_;  // indices of tensors_ in the order of their names
  std::string_view tokenizer_json_, tokenizer_config_json_, chat_template_jinja_;
  std::vector<MappedFile> files_;
  std::deque<std::string> texts_;  // strings that meta_ points to (HF); they never move
};

}  // namespace vitrine
