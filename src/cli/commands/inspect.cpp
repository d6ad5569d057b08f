// vitrine inspect: what is in a model file, and the memory it would take. Works on files of unknown
// architectures and on folders without weights, as far as they tell.
#include <map>

#include "cli/command.h"
#include "cli/flags.h"
#include "cli/output.h"
#include "engine/kept_lives.h"
#include "engine/planning.h"
#include "formats/storage.h"
#include "grammar/compiler.h"
#include "tokenizer/tokenizer.h"
#if __has_include("server/texts.h")
#include "server/texts.h"
#endif

namespace vitrine {
namespace {

// Of recorded requests; a build without the server (VITRINE_SERVER=OFF) keeps none.
#if __has_include("server/texts.h")
constexpr std::size_t kRecordBytes = Texts::kDefaultBytes;
#else
constexpr std::size_t kRecordBytes = 0;
#endif

struct Flags {
  ModelFlag model;
  EngineFlags engine;
  bool tensors = false, json = false;
};

struct TypeTotal {
  int count = 0;
  std::int64_t weights = 0, bytes = 0;
};

// The draft model's part.
json::value draft_json(const MemoryPlan& p) {
  if (p.draft.empty()) return nullptr;
  const MemoryPlan& d = p.draft.front();
  return json::object{{"context", d.context},
                      {"sequences", d.sequences},
                      {"kv_bytes", d.kv_bytes},
                      {"packed_weight_bytes", d.packed_bytes},
                      {"activation_bytes", d.activation_bytes},
                      {"mapped_file_bytes", d.file_bytes},
                      {"total_bytes", d.total()}};
}

json::object plan_json(const MemoryPlan& p) {
  json::array groups;
  for (const CacheGroup& g : p.groups)
    groups.push_back(json::object{{"layers", g.layers.size()},
                                  {"kv_heads", g.spec.layout.heads},
                                  {"head_dim", g.spec.layout.k.width},
                                  {"window", g.spec.window},
                                  {"pages", g.pages},
                                  {"page_bytes", g.page_bytes}});
  return {{"context", p.context},
          {"sequences", p.sequences},
          {"page_size", p.page_size},
          {"kv_type", dtype_name(p.kv_dtype)},
          {"kv_bytes_per_token", p.kv_bytes_per_token},
          {"kv_bytes", p.kv_bytes},
          {"packed_weight_bytes", p.packed_bytes},
          {"activation_bytes", p.activation_bytes},
          {"mapped_file_bytes", p.file_bytes},
          {"total_bytes", p.total()},
          {"constraint_cache_bytes_most", ConstraintCompiler::kMostBytes},
          {"tokenizer_cache_bytes_most", Tokenizer::kCacheBytes},
          {"record_bytes_most", kRecordBytes},
          {"lives_bytes_most", kLivesBytesMost},
          {"trace_bytes", p.trace_bytes},
          {"spec_bytes", p.spec_bytes},
          {"draft", draft_json(p)},
          {"cache_groups", std::move(groups)}};
}

Result<MemoryPlan> plan(const ModelFile& file, EngineOptions options, ModelInfo* info) {
  options.threads = 1;  // nothing is computed
  VT_TRY(auto backend, create_backend(options.backend, backend_options(options)));
  return plan_memory(file, *backend, options, info);
}

json::object describe(const ModelFile& file, const Flags& f, EngineOptions options) {
  json::object out{{"path", file.path()},
                   {"kind", file.kind() == FileKind::kGguf ? "gguf" : "hugging-face"},
                   {"architecture", file.architecture()}};
  std::map<std::string, TypeTotal> types;
  std::int64_t weights = 0;
  for (const TensorInfo& t : file.tensors()) {
    TypeTotal& total = types[dtype_name(t.dtype)];
    ++total.count;
    total.weights += t.shape.elements();
    total.bytes += static_cast<std::int64_t>(t.data.size());
    weights += t.shape.elements();
  }
  json::array by_type;
  for (const auto& [name, t] : types)
    by_type.push_back(json::object{
        {"type", name}, {"tensors", t.count}, {"weights", t.weights}, {"bytes", t.bytes}});
  out["weights"] = weights;
  out["tensor_types"] = std::move(by_type);
  ModelInfo info;
  auto memory = plan(file, options, &info);
  if (memory.ok()) {
    out["model"] =
        json::object{{"arch", info.arch},   {"layers", info.layers}, {"dim", info.dim},
                     {"heads", info.heads}, {"vocab", info.vocab},   {"context", info.context}};
    out["memory"] = plan_json(*memory);
  } else {
    out["model"] = nullptr;
    out["memory"] = nullptr;
    out["not_runnable"] = memory.error().message;
  }
  auto tokenizer = Tokenizer::load(file);
  if (tokenizer.ok()) {
    auto id = [](std::optional<std::int32_t> x) {
      return x ? json::value(*x) : json::value(nullptr);
    };
    out["tokenizer"] = json::object{{"kind", (*tokenizer)->kind()},
                                    {"vocab", (*tokenizer)->vocab_size()},
                                    {"bos", id((*tokenizer)->bos())},
                                    {"eos", id((*tokenizer)->eos())}};
  } else {
    out["tokenizer"] = nullptr;
    if (tokenizer.error().code != ErrorCode::kNotFound)
      out["tokenizer_error"] = tokenizer.error().message;
  }
  const auto& eos = file.generation().eos_ids;
  out["eos_ids"] = json::array(eos.begin(), eos.end());
  if (f.tensors) {
    json::array list;
    for (const TensorInfo& t : file.tensors()) {
      json::array shape;
      for (int i = 0; i < t.shape.rank(); ++i) shape.push_back(t.shape[i]);
      list.push_back(json::object{{"name", t.name},
                                  {"type", dtype_name(t.dtype)},
                                  {"shape", std::move(shape)},
                                  {"bytes", t.data.size()}});
    }
    out["tensors"] = std::move(list);
  }
  return out;
}

void print_table(const json::object& o) {
  auto text = [](const json::value& v) {
    return v.is_string() ? std::string(std::string_view(v.as_string())) : to_json(v);
  };
  fmt::print("{}\n  kind          {}\n  architecture  {}\n", text(o.at("path")), text(o.at("kind")),
             text(o.at("architecture")));
  if (o.at("model").is_object()) {
    const json::object& m = o.at("model").as_object();
    fmt::print("  model         {}: {} layers, width {}, {} heads, vocabulary {}, context {}\n",
               text(m.at("arch")), text(m.at("layers")), text(m.at("dim")), text(m.at("heads")),
               text(m.at("vocab")), text(m.at("context")));
  } else {
    fmt::print("  not runnable  {}\n", text(o.at("not_runnable")));
  }
  if (o.at("tokenizer").is_object()) {
    const json::object& t = o.at("tokenizer").as_object();
    fmt::print("  tokenizer     {}, {} tokens, bos {}, eos {}\n", text(t.at("kind")),
               text(t.at("vocab")), text(t.at("bos")), text(t.at("eos")));
  } else {
    fmt::print("  tokenizer     {}\n",
               o.contains("tokenizer_error") ? text(o.at("tokenizer_error")) : "none");
  }
  fmt::print("  weights       {}\n", with_commas(o.at("weights").to_number<std::int64_t>()));
  for (const json::value& v : o.at("tensor_types").as_array())
    fmt::print("    {:<10}  {:>5} tensors {:>16} weights {:>12}\n", text(v.at("type")),
               text(v.at("tensors")), with_commas(v.at("weights").to_number<std::int64_t>()),
               human_bytes(v.at("bytes").to_number<std::int64_t>()));
  if (o.contains("tensors"))
    for (const json::value& v : o.at("tensors").as_array())
      fmt::print("    {:<48} {:<6} {}\n", text(v.at("name")), text(v.at("type")),
                 text(v.at("shape")));
  if (!o.at("memory").is_object()) return;
  const json::object& p = o.at("memory").as_object();
  auto bytes = [&](const char* key) { return human_bytes(p.at(key).to_number<std::int64_t>()); };
  fmt::print("  memory plan for {} sequence(s) of {} tokens, KV in {}\n", text(p.at("sequences")),
             text(p.at("context")), text(p.at("kv_type")));
  fmt::print("    packed weights  {:>12}   (and {} mapped from the file)\n",
             bytes("packed_weight_bytes"), bytes("mapped_file_bytes"));
  fmt::print("    KV pages        {:>12}   ({} a token)\n", bytes("kv_bytes"),
             bytes("kv_bytes_per_token"));
  fmt::print("    activations     {:>12}\n", bytes("activation_bytes"));
  if (p.at("draft").is_object()) {
    const json::object& d = p.at("draft").as_object();
    auto part = [&](const char* key) { return human_bytes(d.at(key).to_number<std::int64_t>()); };
    fmt::print("    draft model     {:>12}   ({} of weights, {} of KV pages for {} sequence(s))\n",
               part("total_bytes"), part("packed_weight_bytes"), part("kv_bytes"),
               text(d.at("sequences")));
  }
  fmt::print("    total           {:>12}\n", bytes("total_bytes"));
  fmt::print(
      "  caches that grow with use, at most: {} of compiled constraints and their masks, {} of "
      "words, {} of recorded requests (serve --record-mib), {} of the last requests' lives, {} of "
      "the "
      "log of steps (--trace-mib), {} of texts for guesses (--spec-mib)\n",
      bytes("constraint_cache_bytes_most"), bytes("tokenizer_cache_bytes_most"),
      bytes("record_bytes_most"), bytes("lives_bytes_most"), bytes("trace_bytes"),
      bytes("spec_bytes"));
}

Result<int> inspect(const Flags& f) {
  VT_TRY(auto file, f.model.open());
  VT_TRY(EngineOptions options, f.engine.resolve(*file));
  VT_RETURN_IF_ERROR(check_options(options));
  json::object out = describe(*file, f, options);
  if (f.json)
    print_json(out);
  else
    print_table(out);
  return 0;
}

Action add(const CommandLine& line) {
  auto f = std::make_shared<Flags>();
  f->model.add(line);
  line.flag("--tensors", f->tensors, "list every tensor");
  line.flag("--json", f->json, "print one JSON document");
  f->engine.add(line);
  return [f] { return inspect(*f); };
}

}  // namespace

extern const Command kCommand_inspect;
const Command kCommand_inspect{"inspect", 50, "what is in a model file, and its memory plan", add};

}  // namespace vitrine
