// vitrine perplexity: how well a model predicts a text, per token and per byte.
#include <cmath>

#include "cli/command.h"
#include "cli/logits_file.h"
#include "cli/output.h"
#include "cli/scoring.h"
#include "sampling/logprobs.h"

namespace vitrine {
namespace {

constexpr int kTogether = 8;  // windows

struct Flags {
  ModelFlag model;
  ScoringFlags scoring;
  EngineFlags engine;
  std::string save;
  bool json = false;
};

Result<double> score(Engine& engine, const Windows& windows) {
  std::vector<std::shared_ptr<TokenStream>> streams;
  double nats = 0;
  for (std::size_t i = 0; i < windows.prompts.size(); ++i) {
    while (streams.size() < std::min(windows.prompts.size(), i + 2 * kTogether)) {
      Request request;
      request.prompt = windows.prompts[streams.size()];
      request.max_tokens = 0;
      request.prompt_logprobs = true;
      VT_TRY(auto stream, engine.submit(std::move(request)));
      streams.push_back(std::move(stream));
    }
    const Finish& finish = streams[i]->wait();
    if (finish.reason == FinishReason::kError)
      return make_error(ErrorCode::kInvalid, "window {}: {}", i, finish.error);
    const auto& logprobs = streams[i]->prompt_logprobs().logprobs;
    for (std::size_t t = 1; t < logprobs.size(); ++t) nats -= static_cast<double>(logprobs[t]);
    streams[i].reset();
    show_progress(i + 1, windows.prompts.size());
  }
  return nats;
}

// The same, and keeps the logits.
Result<double> score_and_save(Engine& engine, const Windows& windows, const std::string& path) {
  VT_TRY(LogitsWriter out, LogitsWriter::create(path, engine.info().vocab, windows.prompts.size(),
                                                windows.tokens, windows.bytes));
  double nats = 0;
  for (std::size_t i = 0; i < windows.prompts.size(); ++i) {
    const auto& prompt = windows.prompts[i];
    VT_TRY(auto stream, submit_for_logits(engine, prompt));
    const Finish& finish = stream->wait();
    if (finish.reason == FinishReason::kError)
      return make_error(ErrorCode::kInvalid, "window {}: {}", i, finish.error);
    out.begin_window(prompt);
    for (std::size_t t = 0; t + 1 < prompt.size(); ++t) {
      const std::vector<float>& row = stream->logits().at(static_cast<int>(t));
      const LogitsScan scan = scan_logits(row);
      if (scan.status != LogitsStatus::kOk)
        return make_error(ErrorCode::kInvalid, "window {}, position {}: {}", i, t,
                          logits_status_text(scan.status));
      nats -= static_cast<double>(LogSoftmax(row, scan).logprob(row[prompt[t + 1]]));
      out.add_row(row);
    }
    show_progress(i + 1, windows.prompts.size());
  }
  VT_RETURN_IF_ERROR(out.finish());
  return nats;
}

Result<int> perplexity(Flags& f) {
  VT_TRY(auto file, f.model.open());
  VT_TRY(auto tokenizer, load_tokenizer(*file));
  VT_RETURN_IF_ERROR(f.scoring.choose_window(*file, f.engine));
  VT_TRY(Windows windows, f.scoring.read(tokenizer.get(), f.model.path));
  f.engine.options.sequences = kTogether;
  VT_TRY(auto engine, f.engine.start(file));
  auto start = std::chrono::steady_clock::now();
  VT_TRY(double nats,
         f.save.empty() ? score(*engine, windows) : score_and_save(*engine, windows, f.save));
  double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  auto tokens = static_cast<double>(windows.tokens), bytes = static_cast<double>(windows.bytes);
  double bits = nats / std::log(2.0);
  if (f.json)
    print_json(json::object{{"tokens", windows.tokens},
                            {"bytes", windows.bytes},
                            {"window", f.scoring.window},
                            {"perplexity", std::exp(nats / tokens)},
                            {"nats_per_token", nats / tokens},
                            {"bits_per_token", bits / tokens},
                            {"bits_per_byte", bits / bytes},
                            {"seconds", seconds},
                            {"tok_s", tokens / seconds}});
  else
    fmt::print(
        "{} tokens, {} bytes, windows of {}\nperplexity {:.4f} per token\n{:.4f} bits per "
        "token\n{:.4f} bits per byte\n{:.1f} s, {:.0f} tok/s\n",
        windows.tokens, windows.bytes, f.scoring.window, std::exp(nats / tokens), bits / tokens,
        bits / bytes, seconds, tokens / seconds);
  return 0;
}

Action add(const CommandLine& line) {
  auto f = std::make_shared<Flags>();
  f->model.add(line);
  f->scoring.add(line);
  line.option("--save-logits", f->save,
              "write the logits of every position to this file, for vitrine compare");
  line.flag("--json", f->json, "print one JSON document");
  f->engine.add(line);
  return [f] { return perplexity(*f); };
}

}  // namespace

extern const Command kCommand_perplexity;
const Command kCommand_perplexity{"perplexity", 62, "how well a model predicts a text", add};

}  // namespace vitrine
