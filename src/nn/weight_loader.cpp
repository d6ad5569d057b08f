#include "nn/weight_loader.h"

#include <cstring>
#include <utility>

#include "formats/storage.h"
#include "quant/format.h"

namespace vitrine {
namespace {

// "model.layers.3." of "model.layers.3.mlp.up_proj.weight"; empty where no part is a number.
std::string_view layer_of(std::string_view name) {
  for (std::size_t begin = 0, end; (end = name.find('.', begin)) != name.npos; begin = end + 1)
    if (end > begin && name.substr(begin, end - begin).find_first_not_of("0123456789") == name.npos)
      return name.substr(0, end + 1);
  return {};
}

// Masks and frequencies that older checkpoints carry along; they are computed.
bool is_leftover(std::string_view name) {
  for (std::string_view end :
       {".inv_freq", ".attn.bias", ".attention.bias", ".masked_bias", ".attn_rot_embd.freqs"})
    if (name.ends_with(end)) return true;
  return false;
}

}  // namespace

const TensorInfo* find_tensor(const ModelFile& file, const Name& name) {
  const std::string& wanted = file.kind() == FileKind::kGguf ? name.gguf : name.hf;
  if (wanted.empty()) return nullptr;
  const TensorInfo* info = file.find(wanted);
  if (info != nullptr || file.kind() == FileKind::kGguf) return info;
  if ((info = file.find("language_model." + wanted)) != nullptr) return info;
  std::string rest = wanted.substr(wanted.find('.') + 1);
  if ((info = file.find("model.language_model." + rest)) != nullptr) return info;
  return file.find(rest);
}

WeightLoader::WeightLoader(const ModelFile& file, Device& device,
                           std::function<void(std::int64_t)> progress)
    : file_(file), device_(device), progress_(std::move(progress)) {}

const TensorInfo* WeightLoader::get(const Name& name, Shape shape) {
  if (error_) return nullptr;
  const TensorInfo* info = find_tensor(file_, name);
  if (info == nullptr) {
    fail(make_error(ErrorCode::kNotFound, "{}: tensor '{}' is missing", file_.path(),
                    gguf() ? name.gguf : name.hf));
    return nullptr;
  }
  Shape found;
  for (int i = 0; i < info->shape.rank(); ++i)
    if (info->shape[i] != 1 || info->shape.rank() == shape.rank()) found.push_back(info->shape[i]);
  if (!(found == shape)) {
    fail(make_error(ErrorCode::kMalformed, "tensor '{}' has shape {}, the configuration needs {}",
                    info->name, info->shape.to_string(), shape.to_string()));
    return nullptr;
  }
  const Format* format = find_format(info->dtype);
  if (format == nullptr) {
    std::string known;
    for (const Format& f : all_formats())
      known += fmt::format("{}{}", known.empty() ? "" : ", ", f.info.name);
    fail(make_error(ErrorCode::kUnsupported, "tensor '{}' has type {}; this build reads {}",
                    info->name, dtype_name(info->dtype), known));
    return nullptr;
  }
  bound_.insert(info->name);
  std::int64_t row = shape[shape.rank() - 1];
  VT_CHECK(row % format->info.block == 0 && static_cast<std::int64_t>(info->data.size()) ==
                                                format_bytes(format->info, shape.elements()),
           "{}: {} bytes for {}", info->name, info->data.size(), shape.to_string());
  return info;
}

MatrixSource WeightLoader::rows_of(const TensorInfo& info, const std::byte* data, std::int64_t rows,
                                   std::int64_t cols) {
  const std::int64_t stride = format_bytes(find_format(info.dtype)->info, cols);
  MatrixSource m{.name = info.name, .dtype = info.dtype, .cols = cols, .row_data = {}, .owner = {}};
  for (std::int64_t r = 0; r < rows; ++r) m.row_data.push_back(data + r * stride);
  return m;
}

MatrixSource WeightLoader::matrix(const Name& name, std::int64_t rows, std::int64_t cols,
                                  bool transposed) {
  const MatrixSource none{.name = {}, .cols = cols, .row_data = {}, .owner = {}};
  const TensorInfo* info = get(name, transposed ? Shape{cols, rows} : Shape{rows, cols});
  if (info == nullptr) return none;
  const std::byte* data = info->data.data();
  if (!transposed) return rows_of(*info, data, rows, cols);
  const FormatInfo& format = find_format(info->dtype)->info;
  if (format.block != 1) {
    fail(make_error(ErrorCode::kUnsupported, "tensor '{}' of type {} would have to be transposed",
                    info->name, format.name));
    return none;
  }
  auto copy = std::make_shared<std::vector<std::byte>>(info->data.size());
  for (std::int64_t r = 0; r < rows; ++r)
    for (std::int64_t c = 0; c < cols; ++c)
      std::memcpy(copy->data() + (r * cols + c) * format.bytes,
                  data + (c * rows + r) * format.bytes, format.bytes);
  MatrixSource m = rows_of(*info, copy->data(), rows, cols);
  m.owner = copy;
  return m;
}

MatrixSource WeightLoader::stacked_matrix(const Name& name, std::int64_t index, std::int64_t count,
                                          std::int64_t rows, std::int64_t cols) {
  VT_CHECK(index >= 0 && index < count, "matrix {} of a stack of {}", index, count);
  const TensorInfo* info = get(name, Shape{count, rows, cols});
  if (info == nullptr) return {.name = {}, .cols = cols, .row_data = {}, .owner = {}};
  const std::int64_t bytes = format_bytes(find_format(info->dtype)->info, rows * cols);
  MatrixSource m = rows_of(*info, info->data.data() + index * bytes, rows, cols);
  m.name += fmt::format("[{}]", index);
  return m;
}

MatrixSource WeightLoader::slice(const MatrixSource& m, std::int64_t first, std::int64_t n) {
  MatrixSource part = m;
  if (m.row_data.empty()) return part;
  VT_CHECK(first >= 0 && first + n <= m.rows());
  part.row_data.assign(m.row_data.begin() + first, m.row_data.begin() + first + n);
  return part;
}

MatrixSource WeightLoader::computed(std::string name, std::vector<float> values,
                                    std::int64_t cols) {
  MatrixSource m;
  m.name = std::move(name);
  m.dtype = DType::kF32;
  m.cols = cols;
  auto owner = std::make_shared<std::vector<float>>(std::move(values));
  for (std::size_t i = 0; i < owner->size(); i += static_cast<std::size_t>(cols))
    m.row_data.push_back(reinterpret_cast<const std::byte*>(owner->data() + i));
  m.owner = owner;
  return m;
}

MatrixSource WeightLoader::unpermute_rotary(const MatrixSource& m, int heads, int head_dim) {
  MatrixSource out = m;
  if (m.row_data.empty()) return out;
  VT_CHECK(m.rows() == static_cast<std::int64_t>(heads) * head_dim);
  for (int h = 0; h < heads; ++h)
    for (int i = 0; i < head_dim; ++i)
      out.row_data[h * head_dim + (i % 2) * (head_dim / 2) + i / 2] = m.row_data[h * head_dim + i];
  return out;
}

void WeightLoader::unpermute_rotary(std::vector<float>& v, int heads, int head_dim) {
  if (v.empty()) return;
  std::vector<float> out(v.size());
  for (int h = 0; h < heads; ++h)
    for (int i = 0; i < head_dim; ++i)
      out[h * head_dim + (i % 2) * (head_dim / 2) + i / 2] = v[h * head_dim + i];
  v = std::move(out);
}

std::vector<float> WeightLoader::floats(const Name& name, std::int64_t n) {
  const TensorInfo* info = get(name, Shape{n});
  if (info == nullptr) return {};
  const Format* format = find_format(info->dtype);
  std::vector<float> values(n);
  format->decode(info->data.data(), n / format->info.block, values.data());
  return values;
}

Linear WeightLoader::pack(const MatrixSource& m, std::vector<float> bias, WeightUse use) {
  if (error_) return {};
  auto packed = device_.pack(m, use);
  if (!packed.ok()) {
    fail(packed.error());
    return {};
  }
  totals_.packed_bytes += device_.packed_bytes(m.dtype, m.rows(), m.cols, use);
  if (progress_) progress_((*packed)->bytes());
  return {std::move(packed).value(), bias.empty() ? Tensor{} : vector(bias)};
}

Linear WeightLoader::linear(const MatrixSource& m, std::vector<float> bias) {
  Linear linear = pack(m, std::move(bias), WeightUse::kMatmul);
  if (const Weight* weight = linear.weight()) {
    const std::int64_t n = weight->rows() * weight->cols();
    totals_.matmul_weights += n;
    if ((matmul_weights_[m.dtype] += n) > matmul_weights_[totals_.matmul_type])
      totals_.matmul_type = m.dtype;
    totals_.matmul_bytes += weight->bytes();
  }
  return linear;
}

Linear WeightLoader::head(const MatrixSource& m, std::vector<float> bias) {
  Linear linear = pack(m, std::move(bias), WeightUse::kHead);
  if (const Weight* weight = linear.weight()) {
    totals_.head_weights += weight->rows() * weight->cols();
    totals_.head_bytes += weight->bytes();
  }
  return linear;
}

Linear WeightLoader::head(const Name& weight, const MatrixSource& embedding) {
  auto tied = file_.meta().get_bool("tie_word_embeddings", true);
  bool own = has(weight) || (tied.ok() && !*tied && !gguf());
  return head(own ? matrix(weight, embedding.rows(), embedding.cols) : embedding);
}

Linear WeightLoader::linear(const Name& weight, std::int64_t rows, std::int64_t cols,
                            const Name& bias, bool transposed) {
  std::vector<float> b = floats_if_any(bias, rows);
  return linear(matrix(weight, rows, cols, transposed), std::move(b));
}

std::shared_ptr<Weight> WeightLoader::table(const MatrixSource& m) {
  if (error_) return nullptr;
  auto packed = device_.pack(m, WeightUse::kTable);
  if (!packed.ok()) {
    fail(packed.error());
    return nullptr;
  }
  totals_.packed_bytes += device_.packed_bytes(m.dtype, m.rows(), m.cols, WeightUse::kTable);
  return std::move(packed).value();
}

Tensor WeightLoader::allocate(Shape shape) {
  auto buffer = device_.allocate(shape.elements() * 4);
  if (!buffer.ok()) {
    fail(buffer.error());
    return {};
  }
  Tensor t{buffer->data(), DType::kF32, shape};
  buffers_.push_back(std::move(buffer).value());
  return t;
}

Tensor WeightLoader::vector(const std::vector<float>& values) {
  if (error_) return {};
  Tensor t = allocate({static_cast<std::int64_t>(values.size())});
  if (t.defined())
    device_.write(t.data, values.data(), static_cast<std::int64_t>(values.size()) * 4);
  return t;
}

Norm WeightLoader::norm(NormKind kind, const Name& weight, std::int64_t n, float eps,
                        const Name& bias, float offset) {
  Norm norm;
  norm.kind = kind;
  std::vector<float> w = floats(weight, n);
  for (float& value : w) value += offset;
  norm.w = vector(w);
  if (has(bias)) norm.b = vector(floats(bias, n));
  norm.eps = eps;
  return norm;
}

Tensor WeightLoader::activations(Shape shape) {
  if (error_) return {};
  totals_.activation_bytes += shape.elements() * 4;
  return allocate(shape);
}

void WeightLoader::refuse_unbound() {
  if (error_) return;
  std::set<std::string_view> layers;
  for (std::string_view name : bound_) layers.insert(layer_of(name));
  layers.erase("");
  for (const TensorInfo& t : file_.tensors())
    if (layers.contains(layer_of(t.name)) && !bound_.contains(t.name) && !is_leftover(t.name))
      return fail(make_error(ErrorCode::kUnsupported,
                             "{}: tensor '{}' has no place in this architecture", file_.path(),
                             t.name));
}

void WeightLoader::fail(Error error) {
  if (!error_) error_ = std::move(error);
}

Status WeightLoader::status() const {
  if (error_) return *error_;
  return Ok{};
}

}  // namespace vitrine
