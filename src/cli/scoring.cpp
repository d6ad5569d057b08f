#include "cli/scoring.h"

#include <unistd.h>

#include <fstream>

#include "engine/planning.h"

namespace vitrine {

void ScoringFlags::add(const CommandLine& line) {
  line.option("text", text_file, "a text file").required();
  line.option("--window", window, {2, 1 << 20},
              "tokens of a window; default: 1024, or the model's context");
  line.option("--limit", limit, {0, INT32_MAX}, "use only so many tokens of the text; 0: all");
  line.flag("--parse-special", parse_special,
            "special tokens spelt in the text become those tokens");
}

Status ScoringFlags::choose_window(const ModelFile& file, EngineFlags& engine) {
  if (window == 0) {
    VT_TRY(EngineOptions options, engine.resolve(file));
    ModelInfo info;
    VT_RETURN_IF_ERROR(check_options(options));
    options.threads = 1;  // nothing is computed
    VT_TRY(auto backend, create_backend(options.backend, backend_options(options)));
    VT_TRY(MemoryPlan plan, plan_memory(file, *backend, options, &info));
    window = std::min(1024, info.context);
  }
  engine.options.context = window;
  return Ok{};
}

Result<Windows> ScoringFlags::read(const Tokenizer* tokenizer, const std::string& model) const {
  if (tokenizer == nullptr)
    return make_error(ErrorCode::kNotFound, "{}: has no tokenizer, so a text has no tokens", model);
  std::ifstream in(text_file, std::ios::binary);
  std::string text{std::istreambuf_iterator<char>(in), {}};
  if (!in) return make_error(ErrorCode::kUnavailable, "{}: cannot be read", text_file);
  auto ids = tokenizer->encode(text, {.add_special = false, .parse_special = parse_special});
  Windows out;
  out.bytes = static_cast<std::int64_t>(text.size());
  if (limit > 0 && static_cast<std::int64_t>(ids.size()) > limit) {
    ids.resize(static_cast<std::size_t>(limit));
    out.bytes = static_cast<std::int64_t>(tokenizer->decode(ids).size());
  }
  auto size = static_cast<std::size_t>(window), bos = std::size_t{tokenizer->bos() ? 1u : 0u};
  std::size_t overlap = 1 - bos;
  for (std::size_t at = 0; at + overlap < ids.size(); at += size - 1) {
    std::size_t end = std::min(ids.size(), at + size - bos);
    std::vector<std::int32_t> prompt(bos + end - at);
    if (bos > 0) prompt[0] = *tokenizer->bos();
    std::copy(ids.begin() + static_cast<std::ptrdiff_t>(at),
              ids.begin() + static_cast<std::ptrdiff_t>(end),
              prompt.begin() + static_cast<std::ptrdiff_t>(bos));
    out.tokens += static_cast<std::int64_t>(prompt.size()) - 1;
    out.prompts.push_back(std::move(prompt));
  }
  if (out.tokens == 0)
    return make_error(ErrorCode::kInvalid, "{}: has no token to score", text_file);
  return out;
}

Result<std::shared_ptr<TokenStream>> submit_for_logits(Engine& engine,
                                                       const std::vector<std::int32_t>& prompt) {
  Request request;
  request.prompt = prompt;
  request.max_tokens = 0;
  for (int i = 0; i + 1 < static_cast<int>(prompt.size()); ++i)
    request.logit_positions.push_back(i);
  return engine.submit(std::move(request));
}

void show_progress(std::size_t done, std::size_t all) {
  if (isatty(STDERR_FILENO) == 0) return;
  fmt::print(stderr, "\r{} of {} windows{}", done, all, done == all ? "\r\033[K" : "");
  std::fflush(stderr);
}

}  // namespace vitrine
