#include "formats/random_model.h"

#include <sys/mman.h>

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <cstring>
#include <map>
#include <random>
#include <thread>
#include <vector>

#include "quant/format.h"

namespace vitrine {
namespace {

struct ModelShape {
  const char* name;
  const char* arch;
  int layers, dim, heads, kv_heads, head_dim, ffn, vocab, context;
  float rope_base;
  bool tied;  // the output matrix is the embedding
};
constexpr ModelShape kShapes[] = {
    {"llama-1b", "llama", 16, 2048, 32, 8, 64, 8192, 128256, 131072, 5e5f, true},
    {"llama-3b", "llama", 28, 3072, 24, 8, 128, 8192, 128256, 131072, 5e5f, true},
    {"llama-8b", "llama", 32, 4096, 32, 8, 128, 14336, 128256, 131072, 5e5f, false},
    {"qwen3-0.6b", "qwen3", 28, 1024, 16, 8, 128, 3072, 151936, 40960, 1e6f, true},
    {"qwen3-4b", "qwen3", 36, 2560, 32, 8, 128, 9728, 151936, 40960, 1e6f, true},
    {"qwen3-8b", "qwen3", 36, 4096, 32, 8, 128, 12288, 151936, 40960, 1e6f, false},
    {"qwen3-14b", "qwen3", 40, 5120, 40, 8, 128, 17408, 151936, 40960, 1e6f, false},
};

// Which format a tensor has. The mixes "_m" give the output matrix and, in the layers that matter
// most, v and down more bits, in the proportions of the files people use: formats of blocks of 256
// are mixed with the widest of these.
struct TypeMix {
  std::string name;
  const Format* base;
  const Format* more;
};

std::vector<TypeMix> all_mixes() {
  std::vector<TypeMix> mixes;
  const Format* widest = nullptr;
  for (const Format& f : all_formats()) {
    mixes.push_back({f.info.name, &f, &f});
    if (f.info.block == 256 && (widest == nullptr || f.info.bytes > widest->info.bytes))
      widest = &f;
  }
  for (const Format& f : all_formats())
    if (f.info.block == 256 && &f != widest)
      mixes.push_back({std::string(f.info.name) + "_m", &f, widest});
  return mixes;
}

bool gets_more_bits(int layer, int layers) {
  int eighth = layers / 8;
  return layer < eighth || layer >= 7 * eighth || (layer - eighth) % 3 == 2;
}

struct NamedTensor {
  std::string name;
  const Format* format;
  std::int64_t rows, cols;  // rows 0: a vector, all ones
  std::int64_t bytes() const {
    return format_bytes(format->info, std::max<std::int64_t>(rows, 1) * cols);
  }
};

std::vector<NamedTensor> tensors_of(const ModelShape& s, const TypeMix& mix) {
  const Format* f32 = find_format(DType::kF32);
  std::int64_t q = std::int64_t{s.heads} * s.head_dim, kv = std::int64_t{s.kv_heads} * s.head_dim;
  std::vector<NamedTensor> out;
  out.push_back({"token_embd.weight", s.tied ? mix.more : mix.base, s.vocab, s.dim});
  for (int i = 0; i < s.layers; ++i) {
    const Format* more = gets_more_bits(i, s.layers) ? mix.more : mix.base;
    auto add = [&](const char* name, const Format* format, std::int64_t rows, std::int64_t cols) {
      out.push_back({fmt::format("blk.{}.{}.weight", i, name), format, rows, cols});
    };
    add("attn_norm", f32, 0, s.dim);
    add("ffn_norm", f32, 0, s.dim);
    if (std::string_view(s.arch) == "qwen3") {
      add("attn_q_norm", f32, 0, s.head_dim);
      add("attn_k_norm", f32, 0, s.head_dim);
    }
    add("attn_q", mix.base, q, s.dim);
    add("attn_k", mix.base, kv, s.dim);
    add("attn_v", more, kv, s.dim);
    add("attn_output", mix.base, s.dim, q);
    add("ffn_gate", mix.base, s.ffn, s.dim);
    add("ffn_up", mix.base, s.ffn, s.dim);
    add("ffn_down", more, s.dim, s.ffn);
  }
  out.push_back({"output_norm.weight", f32, 0, s.dim});
  if (!s.tied) out.push_back({"output.weight", mix.more, s.vocab, s.dim});
  return out;
}

// The head of a GGUF file.
class GgufHead {
 public:
  template <typename T>
  GgufHead& number(T v) {
    bytes_.append(reinterpret_cast<const char*>(&v), sizeof(v));
    return *this;
  }
  GgufHead& text(std::string_view s) {
    number(static_cast<std::uint64_t>(s.size()));
    bytes_ += s;
    return *this;
  }
  GgufHead& key(const std::string& name, std::uint32_t value) {
    return ++keys_, text(name).number(std::uint32_t{4}).number(value);
  }
  GgufHead& key(const std::string& name, float value) {
    return ++keys_, text(name).number(std::uint32_t{6}).number(value);
  }
  GgufHead& key(const std::string& name, const char* value) {
    return ++keys_, text(name).number(std::uint32_t{8}).text(value);
  }
  std::string build(std::uint64_t tensors) const {
    GgufHead start;
    start.bytes_ = "GGUF";
    start.number(std::uint32_t{3}).number(tensors).number(keys_);
    std::string out = start.bytes_ + bytes_;
    out.append((32 - out.size() % 32) % 32, '\0');
    return out;
  }

 private:
  std::string bytes_;
  std::uint64_t keys_ = 0;
};

std::int64_t aligned(std::int64_t n) { return (n + 31) / 32 * 32; }

std::string head_of(const ModelShape& s, const std::vector<NamedTensor>& tensors) {
  GgufHead head;
  auto key = [&](const char* name) { return fmt::format("{}.{}", s.arch, name); };
  auto count = [&](const char* name, int value) {
    head.key(key(name), static_cast<std::uint32_t>(value));
  };
  head.key("general.architecture", s.arch);
  count("block_count", s.layers), count("context_length", s.context);
  count("embedding_length", s.dim), count("feed_forward_length", s.ffn);
  count("attention.head_count", s.heads), count("attention.head_count_kv", s.kv_heads);
  count("attention.key_length", s.head_dim), count("attention.value_length", s.head_dim);
  head.key(key("attention.layer_norm_rms_epsilon"), 1e-5f).key(key("rope.freq_base"), s.rope_base);
  std::int64_t offset = 0;
  for (const NamedTensor& t : tensors) {
    head.text(t.name).number(std::uint32_t{t.rows > 0 ? 2U : 1U}).number(t.cols);
    if (t.rows > 0) head.number(t.rows);
    head.number(static_cast<std::uint32_t>(t.format->info.dtype)).number(offset);
    offset += aligned(t.bytes());
  }
  return head.build(tensors.size());
}

// A stock of encoded random weights, of which tensors are cut: encoding every block would take
// minutes. Rows begin at places that a hash scatters, so no two look alike.
class Stock {
 public:
  // Weights of a size that keeps activations near 1 through a matrix of `cols` inputs.
  Stock(const Format& format, std::int64_t cols) : row_(format_bytes(format.info, cols)) {
    block_ = format.info.bytes;
    blocks_ = std::max<std::int64_t>((1 << 18) / block_, 2 * row_ / block_);
    std::vector<float> values(static_cast<std::size_t>(blocks_ * format.info.block));
    std::mt19937 rng(static_cast<unsigned>(cols));
    float range = std::sqrt(3.0f / static_cast<float>(cols));
    for (float& v : values) v = range * (static_cast<float>(rng()) * 0x1p-31f - 1);
    bytes_.resize(static_cast<std::size_t>(blocks_ * block_));
    format.encode(values.data(), blocks_, bytes_.data());
  }
  void row(std::uint64_t number, std::byte* to) const {
    std::uint64_t hash = (number + 1) * 0x9E3779B97F4A7C15;
    hash = (hash ^ (hash >> 29)) * 0xBF58476D1CE4E5B9;
    auto places = static_cast<std::uint64_t>(blocks_ - row_ / block_ + 1);
    auto place = static_cast<std::int64_t>((hash >> 32) % places);
    std::memcpy(to, bytes_.data() + place * block_, static_cast<std::size_t>(row_));
  }
  std::int64_t row_bytes() const { return row_; }

 private:
  std::int64_t row_, block_ = 0, blocks_ = 0;
  std::vector<std::byte> bytes_;
};

using Stocks = std::map<std::pair<const Format*, std::int64_t>, Stock>;

void fill(const NamedTensor& t, std::uint64_t seed, Stocks& stocks, std::byte* to) {
  if (t.rows == 0) {
    std::vector<float> ones(static_cast<std::size_t>(t.cols), 1.0f);
    return t.format->encode(ones.data(), t.cols / t.format->info.block, to);
  }
  const Stock& stock = stocks.try_emplace({t.format, t.cols}, *t.format, t.cols).first->second;
  constexpr std::int64_t kMostThreads = 16;
  std::int64_t n = std::clamp<std::int64_t>(t.bytes() >> 24, 1, kMostThreads);
  n = std::min<std::int64_t>(n, std::max(1U, std::thread::hardware_concurrency()));
  auto part = [&](std::int64_t i) {
    for (std::int64_t r = t.rows * i / n; r < t.rows * (i + 1) / n; ++r)
      stock.row((seed << 32) + static_cast<std::uint64_t>(r), to + r * stock.row_bytes());
  };
  std::vector<std::jthread> threads;
  for (std::int64_t i = 1; i < n; ++i) threads.emplace_back(part, i);
  part(0);
}

// Anonymous memory: zeroed, and given back as a whole.
class Pages {
 public:
  explicit Pages(std::size_t size) : size_(size) {
    void* p = ::mmap(nullptr, size, PROT_READ | PROT_WRITE,
                     MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (p == MAP_FAILED) return;
    data_ = static_cast<std::byte*>(p);
    ::madvise(p, size, MADV_HUGEPAGE);
  }
  ~Pages() {
    if (data_ != nullptr) ::munmap(data_, size_);
  }
  Pages(const Pages&) = delete;
  Pages& operator=(const Pages&) = delete;
  std::byte* data() const { return data_; }

 private:
  std::size_t size_;
  std::byte* data_ = nullptr;
};

struct RandomFile {
  explicit RandomFile(std::size_t size) : pages(size) {}
  Pages pages;
  std::unique_ptr<ModelFile> file;
};

template <typename Items, typename Name>
std::string names(const Items& items, Name name) {
  std::string out;
  for (const auto& item : items) out += fmt::format("{}{}", out.empty() ? "" : ", ", name(item));
  return out;
}

}  // namespace

std::string random_model_shapes() {
  return names(kShapes, [](const ModelShape& s) { return s.name; });
}

std::string random_model_types() {
  return names(all_mixes(), [](const TypeMix& m) { return m.name; });
}

Result<std::shared_ptr<const ModelFile>> random_model(std::string_view spec) {
  std::size_t colon = std::min(spec.find(':'), spec.size());
  std::string_view shape_name = spec.substr(0, colon);
  std::string_view type_name = colon < spec.size() ? spec.substr(colon + 1) : "";
  auto shape = std::find_if(std::begin(kShapes), std::end(kShapes),
                            [&](const ModelShape& s) { return s.name == shape_name; });
  auto mixes = all_mixes();
  auto mix = std::find_if(mixes.begin(), mixes.end(),
                          [&](const TypeMix& m) { return m.name == type_name; });
  if (shape == std::end(kShapes) || mix == mixes.end())
    return make_error(ErrorCode::kInvalid,
                      "random model: found '{}', expected SHAPE:TYPE with a shape of {} and a type "
                      "of {}",
                      spec, random_model_shapes(), random_model_types());
  std::vector<NamedTensor> tensors = tensors_of(*shape, *mix);
  std::string head = head_of(*shape, tensors);
  std::int64_t data = 0;
  for (const NamedTensor& t : tensors) data += aligned(t.bytes());
  std::size_t size = head.size() + static_cast<std::size_t>(data);
  auto out = std::make_shared<RandomFile>(size);
  std::byte* to = out->pages.data();
  if (to == nullptr)
    return make_error(ErrorCode::kUnavailable, "cannot allocate {} MiB for a random model: {}",
                      size >> 20, std::strerror(errno));
  std::memcpy(to, head.data(), head.size());
  to += head.size();
  Stocks stocks;
  for (std::size_t i = 0; i < tensors.size(); ++i) {
    fill(tensors[i], i, stocks, to);
    to += aligned(tensors[i].bytes());
  }
  VT_TRY(out->file, ModelFile::open_gguf({out->pages.data(), size}, std::string(spec)));
  return std::shared_ptr<const ModelFile>(out, out->file.get());
}

}  // namespace vitrine
