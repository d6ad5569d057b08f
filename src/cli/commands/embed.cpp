// vitrine embed: a vector for each text.
#include <deque>
#include <fstream>
#include <iostream>

#include "cli/command.h"
#include "cli/flags.h"
#include "cli/output.h"

namespace vitrine {
namespace {

constexpr int kTogether = 8;  // texts

struct Flags {
  ModelFlag model;
  EngineFlags engine;
  std::vector<std::string> texts;
  std::string file, ids, pooling;
  int dimensions = 0;
  bool json = false;
};

// Texts one by one: arguments, lines of a file, lines of stdin.
class Texts {
 public:
  explicit Texts(const Flags& f) : flags_(f) {
    if (!f.file.empty()) file_.open(f.file, std::ios::binary);
  }
  Status status() const {
    if (flags_.file.empty() || file_.is_open()) return Ok{};
    return make_error(ErrorCode::kUnavailable, "{}: cannot be read", flags_.file);
  }
  std::optional<std::string> next() {
    std::string line;
    bool more = false;
    if (!flags_.texts.empty()) {
      more = count_ < flags_.texts.size();
      if (more) line = flags_.texts[count_];
    } else {
      more = static_cast<bool>(std::getline(flags_.file.empty() ? std::cin : file_, line));
      if (line.ends_with('\r')) line.pop_back();
    }
    if (!more) return std::nullopt;
    ++count_;
    return line;
  }

 private:
  const Flags& flags_;
  std::ifstream file_;
  std::size_t count_ = 0;
};

struct Embedder {
  const Flags& flags;
  Engine& engine;
  const Tokenizer* tokenizer;
  Pooling pooling;
  int dimensions;
  std::deque<std::shared_ptr<TokenStream>> running;
  json::array data;  // with --json
  std::int64_t done = 0, tokens = 0;

  Status submit(std::vector<std::int32_t> ids) {
    Request request;
    request.prompt = std::move(ids);
    request.max_tokens = 0;
    request.pooling = pooling;
    VT_TRY(auto stream, engine.submit(std::move(request)));
    running.push_back(std::move(stream));
    return Ok{};
  }
  // The oldest that runs.
  Status take() {
    const Finish& finish = running.front()->wait();
    if (finish.reason == FinishReason::kError)
      return make_error(ErrorCode::kInvalid, "text {}: {}", done + 1, finish.error);
    std::vector<float> vector = running.front()->embedding();
    vector.resize(dimensions);
    normalise(vector);
    json::array values;
    for (float x : vector) values.push_back(static_cast<double>(x));
    json::object one{{"index", done},
                     {"tokens", finish.account.usage.prompt_tokens},
                     {"embedding", std::move(values)}};
    tokens += finish.account.usage.prompt_tokens;
    ++done;
    running.pop_front();
    if (flags.json)
      data.push_back(std::move(one));
    else
      print_json(one);
    return Ok{};
  }
  Status all() {
    Texts texts(flags);
    VT_RETURN_IF_ERROR(texts.status());
    std::int64_t count = 0;
    while (auto text = texts.next()) {
      ++count;
      if (text->empty())
        return make_error(ErrorCode::kInvalid, "text {}: is empty, allowed is text", count);
      if (static_cast<int>(running.size()) == 2 * kTogether) VT_RETURN_IF_ERROR(take());
      auto submitted = submit(tokenizer->encode(*text));
      if (!submitted.ok())
        return make_error(submitted.error().code, "text {}: {}", count, submitted.error().message);
    }
    while (!running.empty()) VT_RETURN_IF_ERROR(take());
    return Ok{};
  }
};

Result<int> embed(Flags& f) {
  VT_TRY(auto file, f.model.open());
  VT_TRY(auto tokenizer, load_tokenizer(*file));
  VT_TRY(Pooling pooling, pooling_flag(f.pooling, *file));
  if (!tokenizer && f.ids.empty())
    return make_error(ErrorCode::kNotFound, "{}: has no tokenizer, so a text has no tokens; --ids",
                      f.model.path);
  f.engine.options.sequences = std::max(f.engine.options.sequences, kTogether);
  VT_TRY(auto engine, f.engine.start(file));
  int dim = engine->info().dim;
  if (f.dimensions > dim)
    return make_error(ErrorCode::kInvalid, "--dimensions: found {}, allowed 1 to {}", f.dimensions,
                      dim);
  Embedder embedder{f,  *engine, tokenizer.get(), pooling, f.dimensions > 0 ? f.dimensions : dim,
                    {}, {}};
  if (!f.ids.empty()) {
    VT_TRY(auto ids, parse_ids(f.ids, "--ids"));
    VT_RETURN_IF_ERROR(embedder.submit(std::move(ids)));
    VT_RETURN_IF_ERROR(embedder.take());
  } else {
    VT_RETURN_IF_ERROR(embedder.all());
  }
  if (f.json)
    print_json(json::object{{"pooling", pooling_name(pooling)},
                            {"dimensions", embedder.dimensions},
                            {"tokens", embedder.tokens},
                            {"data", std::move(embedder.data)}});
  return 0;
}

Action add(const CommandLine& line) {
  auto f = std::make_shared<Flags>();
  f->model.add(line);
  Option texts = line.option("text", f->texts, "texts; default: the lines of --file or stdin");
  Option file = line.option("--file", f->file, "a text file, a text per line").excludes(texts);
  line.option("--ids", f->ids, "one text as token ids: 5,6,7").excludes(texts).excludes(file);
  add_pooling_flag(line, f->pooling);
  line.option("--dimensions", f->dimensions, {1, 1 << 20},
              "only the first so many values, brought to length 1 again");
  line.flag("--json", f->json, "print one JSON document instead of one per text");
  f->engine.add(line);
  return [f] { return embed(*f); };
}

}  // namespace

extern const Command kCommand_embed;
const Command kCommand_embed{"embed", 25, "a vector for each text", add};

}  // namespace vitrine
