#include "support/golden.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <filesystem>
#include <limits>

#include "kernels/backend.h"

namespace vitrine::test {

using ::testing::AssertionFailure;
using ::testing::AssertionResult;
using ::testing::AssertionSuccess;

std::vector<std::string> golden_names() {
  std::vector<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator(VT_FIXTURES "/golden"))
    names.push_back(entry.path().filename().string());
  std::sort(names.begin(), names.end());
  return names;
}

Golden load_golden(const std::string& name) {
  Golden g;
  g.name = name;
  g.folder = std::string(VT_FIXTURES "/golden/") + name;
  json::object j = json::parse(read_text(g.folder + "/golden.json")).as_object();
  g.ids = json::value_to<std::vector<std::int32_t>>(j.at("ids"));
  g.greedy = json::value_to<std::vector<std::int32_t>>(j.at("greedy"));
  g.margins = json::value_to<std::vector<double>>(j.at("margins"));
  for (const auto& [position, row] : j.at("logits").as_object())
    g.logits[std::stoi(std::string(position))] = json::value_to<std::vector<float>>(row);
  if (j.contains("context")) g.context = static_cast<int>(j.at("context").as_int64());
  return g;
}

ModelPtr open_model(const std::string& path) {
  auto file = ModelFile::open(path);
  VT_CHECK(file.ok(), "{}", file.error().message);
  return std::move(file).value();
}

ModelPtr open_image(const Bytes& image) {
  auto file = ModelFile::open_gguf(image, "test.gguf");
  VT_CHECK(file.ok(), "{}", file.error().message);
  return std::move(file).value();
}

Outcome run_model(const ModelPtr& model, const EngineOptions& options,
                  const std::vector<std::int32_t>& ids, int max_tokens) {
  auto engine = Engine::create(model, options);
  VT_CHECK(engine.ok(), "{}", engine.error().message);
  Request request;
  request.prompt = ids;
  for (std::size_t i = 0; i < ids.size(); ++i)
    request.logit_positions.push_back(static_cast<int>(i));
  request.max_tokens = max_tokens;
  request.ignore_eos = true;
  VT_CHECK(request.sampling.set("temperature", 0).ok());
  auto stream = (*engine)->submit(std::move(request));
  VT_CHECK(stream.ok(), "{}", stream.error().message);
  while ((*engine)->step()) {
  }
  Outcome out;
  while (auto event = (*stream)->next()) out.tokens.push_back(event->token);
  const Finish& finish = (*stream)->wait();
  EXPECT_EQ(finish.reason, FinishReason::kLength) << finish.error;
  out.logits = (*stream)->logits();
  return out;
}

std::vector<std::string> cpu_isas() {
  std::vector<std::string> isas;
  for (const char* isa : {"avx2", "avx512", "vnni", "bf16", "amx"})
    if (create_backend("cpu", {.threads = 1, .isa = isa}).ok()) isas.push_back(isa);
  return isas;
}

EngineOptions ref_options() {
  EngineOptions o;
  o.backend = "ref";
  o.kv_dtype = DType::kF32;
  return o;
}

const char* no_cuda() {
  static const std::string reason = [] {
    auto backend = create_backend("cuda", {});
    return backend.ok() ? std::string() : backend.error().message;
  }();
  return reason.empty() ? nullptr : reason.c_str();
}

EngineOptions cuda_options(DType kv_dtype, bool deterministic) {
  EngineOptions o;
  o.backend = "cuda", o.kv_dtype = kv_dtype, o.deterministic = deterministic;
  return o;
}

EngineOptions cpu_options(const std::string& isa, DType kv_dtype) {
  EngineOptions o;
  o.backend = "cpu";
  o.threads = 2;
  o.isa = isa;
  o.kv_dtype = kv_dtype;
  return o;
}

double max_difference(const std::map<int, std::vector<float>>& a,
                      const std::map<int, std::vector<float>>& b) {
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  double worst = -1;
  for (const auto& [position, row] : a) {
    auto other = b.find(position);
    if (other == b.end()) continue;
    if (other->second.size() != row.size()) return kInfinity;
    for (std::size_t i = 0; i < row.size(); ++i) {
      double d = std::fabs(static_cast<double>(row[i]) - other->second[i]);
      if (!(d <= worst)) worst = std::isnan(d) ? kInfinity : d;
    }
  }
  return worst < 0 ? kInfinity : worst;
}

AssertionResult same_bits(const Outcome& a, const Outcome& b) {
  if (a.logits.size() != b.logits.size()) return AssertionFailure() << "different positions";
  for (const auto& [position, row] : a.logits) {
    auto other = b.logits.find(position);
    if (other == b.logits.end() || other->second.size() != row.size())
      return AssertionFailure() << "position " << position << " is missing or has another size";
    if (std::memcmp(row.data(), other->second.data(), row.size() * sizeof(float)) != 0)
      return AssertionFailure() << "position " << position << " differs by "
                                << max_difference({{0, row}}, {{0, other->second}});
  }
  if (a.tokens != b.tokens) return AssertionFailure() << "different tokens";
  return AssertionSuccess();
}

AssertionResult agrees(const Golden& golden, const Outcome& outcome, double tolerance,
                       double margin) {
  for (const auto& [position, row] : golden.logits) {
    auto found = outcome.logits.find(position);
    if (found == outcome.logits.end()) return AssertionFailure() << "no position " << position;
    double d = max_difference({{0, row}}, {{0, found->second}});
    if (!(d <= tolerance))
      return AssertionFailure() << "logits of position " << position << " are off by " << d
                                << ", allowed " << tolerance;
  }
  if (outcome.tokens.size() != golden.greedy.size())
    return AssertionFailure() << outcome.tokens.size() << " tokens, not " << golden.greedy.size();
  for (std::size_t i = 0; i < golden.greedy.size(); ++i) {
    if (outcome.tokens[i] == golden.greedy[i]) continue;
    if (golden.margins[i] <= margin) break;  // from here on it is another text
    return AssertionFailure() << "token " << i << " is " << outcome.tokens[i] << ", not "
                              << golden.greedy[i] << ", with a margin of " << golden.margins[i];
  }
  return AssertionSuccess();
}

}  // namespace vitrine::test
